//! From an Envoy node to a [`Proxy`].
//!
//! Istio's node id `type~ip~name.namespace~domain` means what it means in Istio. A plain id
//! (`edge-1`) works too: type from metadata `TYPE`, else router; namespace from `NAMESPACE`, else
//! `default`; labels from `LABELS`, else `app: <node.cluster>`.

use super::{ClientCertificates, Interception, Options, Proxy, Role};
use crate::diag::{Code, Diagnostic};
use crate::model::{EndpointAddress, Labels, Locality, Namespace, ObjectName, Snapshot, Workload};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::sync::Arc;

/// An Envoy node as it is written in a bootstrap, without Envoy's types.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeDescription {
    /// `node.id`.
    pub id: String,
    /// `node.cluster`.
    pub cluster: String,
    /// `node.metadata`.
    pub metadata: Map<String, Value>,
    /// `node.locality`.
    pub locality: Locality,
}

/// Why a node cannot be served. The stream ends with `InvalidArgument`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("node '{id}': {reason}")]
pub struct NodeError {
    /// The node's id.
    pub id: String,
    /// What is wrong and how to mend it.
    pub reason: String,
}

impl NodeError {
    /// The finding for reports.
    pub fn diagnostic(&self) -> Diagnostic {
        Diagnostic::new(Code::NodeInvalid, self.to_string())
    }
}

/// The parts of an id in either form.
struct Id<'a> {
    role: Role,
    address: Option<IpAddr>,
    /// Name and namespace of the workload, for the WorkloadEntry lookup.
    name: &'a str,
    namespace: Option<&'a str>,
    domain: Option<&'a str>,
    default_interception: Interception,
}

impl NodeDescription {
    /// Understands the node. The snapshot completes the picture: a WorkloadEntry with the node's
    /// name, or else with its address, gives labels, locality and network where the node itself
    /// gives none. The labels of one with the node's name beat those that the node states. Those of
    /// another do not: several programs may share an address, a router and a workload for example.
    ///
    /// # Errors
    ///
    /// An empty id, an Istio id with an unknown type or without a usable address, and metadata of
    /// the wrong type.
    pub fn resolve(&self, snapshot: &Snapshot) -> Result<Proxy, NodeError> {
        let id = self.id()?;
        let meta = Metadata { node: self };
        let addresses = match meta.addresses()? {
            Some(addresses) => addresses,
            None => id.address.into_iter().collect(),
        };
        let namespace = meta
            .string("NAMESPACE")?
            .or(id.namespace.map(str::to_owned))
            .map_or_else(|| Namespace::from("default"), Namespace::from);
        let domain = id.domain.map_or_else(
            || Arc::from(format!("{namespace}.svc.{}", snapshot.routing.mesh.domain_suffix)),
            Arc::from,
        );
        let workload = self.workload(&id, &namespace, &addresses, snapshot);
        let addresses = match (addresses.is_empty(), workload.map(|w| &w.address)) {
            (true, Some(Some(EndpointAddress::Ip(ip)))) => vec![*ip],
            _ => addresses,
        };
        let labels = self.labels(&meta, &id, workload)?;
        let interception = match meta.string("INTERCEPTION_MODE")?.as_deref() {
            None => id.default_interception,
            Some("NONE") => Interception::None,
            Some("TPROXY") => Interception::Tproxy,
            // Istio reads every other value as REDIRECT.
            Some(_) => Interception::Redirect,
        };
        Ok(Proxy {
            role: id.role,
            namespace,
            locality: locality(&labels, &self.locality, workload),
            network: meta
                .string("NETWORK")?
                .map(Arc::from)
                .or(workload.map(|w| w.network.clone()))
                .unwrap_or_default(),
            labels,
            addresses,
            domain,
            interception,
            options: Options {
                http_proxy_port: meta.number("HTTP_PROXY_PORT")?,
                idle_timeout: meta.duration("IDLE_TIMEOUT")?,
                http10: meta.string("HTTP10")?.as_deref() == Some("1"),
                unprivileged: meta.flag("UNPRIVILEGED_POD")?,
                client_certificates: meta.client_certificates()?,
            },
        })
    }

    fn id(&self) -> Result<Id<'_>, NodeError> {
        if self.id.trim().is_empty() {
            return Err(self.error("node.id is empty; set it in Envoy's bootstrap"));
        }
        if !self.id.contains('~') {
            let meta = Metadata { node: self };
            let role = match meta.string("TYPE")?.as_deref() {
                None | Some("router") => Role::Router,
                Some("sidecar") => Role::Sidecar,
                Some(other) => {
                    return Err(self.error(format!(
                        "metadata TYPE is '{other}'; it must be 'router' or 'sidecar'"
                    )));
                }
            };
            return Ok(Id {
                role,
                address: None,
                name: &self.id,
                namespace: None,
                domain: None,
                default_interception: Interception::None,
            });
        }
        let parts: Vec<&str> = self.id.split('~').collect();
        let [role, ip, name, domain] = parts[..] else {
            return Err(self.error("an Istio node id has the form 'type~ip~name.namespace~domain'"));
        };
        let role = match role {
            "router" => Role::Router,
            "sidecar" => Role::Sidecar,
            other => {
                return Err(
                    self.error(format!("type '{other}' is not served; use 'router' or 'sidecar'"))
                );
            }
        };
        let address: Option<IpAddr> = ip.parse().ok();
        if address.is_none() && !self.metadata.contains_key("INSTANCE_IPS") {
            return Err(self.error(format!("'{ip}' is not an IP address")));
        }
        // The namespace is the first label of a domain that has more than one (Istio).
        let namespace = domain.split_once('.').map(|(first, _)| first).filter(|n| !n.is_empty());
        let name = match namespace {
            Some(ns) => name.strip_suffix(ns).and_then(|n| n.strip_suffix('.')).unwrap_or(name),
            None => name,
        };
        Ok(Id {
            role,
            address,
            name,
            namespace,
            domain: Some(domain),
            default_interception: Interception::Redirect,
        })
    }

    fn workload<'s>(
        &self,
        id: &Id<'_>,
        namespace: &Namespace,
        addresses: &[IpAddr],
        snapshot: &'s Snapshot,
    ) -> Option<&'s Workload> {
        let workloads = snapshot.endpoints.workloads();
        let by_name = workloads.get(&ObjectName::new(namespace.clone(), id.name));
        let found = by_name.or_else(|| {
            addresses
                .iter()
                .flat_map(|address| workloads.at(*address))
                .find(|w| w.name().namespace == *namespace)
        });
        found.map(|workload| &**workload)
    }

    fn labels(
        &self,
        meta: &Metadata<'_>,
        id: &Id<'_>,
        workload: Option<&Workload>,
    ) -> Result<Labels, NodeError> {
        let stated = meta.labels()?;
        let states_some = stated.as_ref().is_some_and(|labels| !labels.is_empty());
        // As in Istio, the labels of the workload's own document beat those of the metadata. A
        // document of another name may be about a neighbour.
        let counts = |w: &&Workload| *w.name().name == *id.name || !states_some;
        if let Some(workload) = workload.filter(|w| !w.labels.is_empty()).filter(counts) {
            return Ok(workload.labels.clone());
        }
        if let Some(labels) = stated {
            return Ok(labels);
        }
        let own = Some(self.cluster.as_str()).filter(|c| !c.is_empty());
        Ok(own.map(|cluster| ("app", cluster)).into_iter().collect())
    }

    fn error(&self, reason: impl Into<String>) -> NodeError {
        NodeError { id: self.id.clone(), reason: reason.into() }
    }
}

/// Istio's order: topology labels, the locality label, the node; a WorkloadEntry fills the gap.
fn locality(labels: &Labels, node: &Locality, workload: Option<&Workload>) -> Locality {
    let part = |key: &str| Arc::from(labels.get(key).unwrap_or_default());
    let topology = Locality {
        region: part("topology.kubernetes.io/region"),
        zone: part("topology.kubernetes.io/zone"),
        subzone: part("topology.istio.io/subzone"),
    };
    if !topology.is_empty() {
        return topology;
    }
    let label = labels.get("topology.istio.io/locality").or_else(|| labels.get("istio-locality"));
    if let Some(label) = label {
        // Label values cannot hold a slash, so dots stand for it.
        let text = if label.contains('/') { label.to_owned() } else { label.replace('.', "/") };
        return Locality::parse(&text);
    }
    if !node.is_empty() {
        return node.clone();
    }
    workload.map(|w| w.locality.clone()).unwrap_or_default()
}

/// Typed access to node metadata. Istio's own agents write booleans and numbers as strings; plain
/// JSON values are read too.
struct Metadata<'a> {
    node: &'a NodeDescription,
}

impl Metadata<'_> {
    fn wrong(&self, key: &str, expected: &str) -> NodeError {
        self.node.error(format!("metadata {key} must be {expected}"))
    }

    fn string(&self, key: &str) -> Result<Option<String>, NodeError> {
        match self.node.metadata.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(s)) if s.is_empty() => Ok(None),
            Some(Value::String(s)) => Ok(Some(s.clone())),
            Some(Value::Bool(b)) => Ok(Some(b.to_string())),
            Some(Value::Number(n)) => Ok(Some(n.to_string())),
            Some(Value::Array(_) | Value::Object(_)) => Err(self.wrong(key, "a string")),
        }
    }

    fn flag(&self, key: &str) -> Result<bool, NodeError> {
        match self.string(key)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(self.wrong(key, "'true' or 'false'")),
        }
    }

    fn number(&self, key: &str) -> Result<Option<u16>, NodeError> {
        let text = self.string(key)?;
        text.map(|t| {
            // A number that went through a protobuf Struct may have come back as 8080.0.
            t.strip_suffix(".0").unwrap_or(&t).parse().map_err(|_| self.wrong(key, "a port number"))
        })
        .transpose()
    }

    fn duration(&self, key: &str) -> Result<Option<std::time::Duration>, NodeError> {
        let text = self.string(key)?;
        text.map(|t| {
            crate::model::parse_duration(&t)
                .ok_or_else(|| self.wrong(key, "a duration such as '30s'"))
        })
        .transpose()
    }

    fn labels(&self) -> Result<Option<Labels>, NodeError> {
        let labels = match self.node.metadata.get("LABELS") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(labels)) => labels,
            Some(_) => return Err(self.wrong("LABELS", "an object of strings")),
        };
        let pairs = labels.iter().map(|(key, value)| match value {
            Value::String(value) => Ok((key.clone(), value.clone())),
            _ => Err(self.wrong(&format!("LABELS.{key}"), "a string")),
        });
        Ok(Some(pairs.collect::<Result<Labels, NodeError>>()?))
    }

    /// The workload's own certificate files; a chain without a key is of no use to anyone.
    fn client_certificates(&self) -> Result<Option<ClientCertificates>, NodeError> {
        let Some(chain) = self.string("TLS_CLIENT_CERT_CHAIN")? else { return Ok(None) };
        let Some(key) = self.string("TLS_CLIENT_KEY")? else {
            return Err(self.wrong("TLS_CLIENT_KEY", "the key of TLS_CLIENT_CERT_CHAIN"));
        };
        let root = self.string("TLS_CLIENT_ROOT_CERT")?.unwrap_or_default();
        Ok(Some(ClientCertificates { chain: chain.into(), key: key.into(), root: root.into() }))
    }

    /// `INSTANCE_IPS`: addresses separated by commas. As in Istio, a list with a bad entry is
    /// refused here rather than ignored, so that a typo does not move a proxy.
    fn addresses(&self) -> Result<Option<Vec<IpAddr>>, NodeError> {
        let Some(text) = self.string("INSTANCE_IPS")? else { return Ok(None) };
        let addresses: Result<Vec<IpAddr>, _> =
            text.split(',').map(|part| part.trim().parse()).collect();
        addresses.map(Some).map_err(|_| self.wrong("INSTANCE_IPS", "IP addresses with commas"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::Workspace;
    use crate::config::SourceFile;
    use crate::proxy::IpMode;
    use serde_json::json;

    fn node(id: &str, metadata: Value) -> NodeDescription {
        let Value::Object(metadata) = metadata else { panic!("metadata is an object") };
        NodeDescription { id: id.into(), cluster: "web".into(), metadata, ..Default::default() }
    }

    fn resolve(id: &str, metadata: Value) -> Result<Proxy, NodeError> {
        node(id, metadata).resolve(&Snapshot::default())
    }

    #[test]
    fn an_istio_id_is_read_as_in_istio() {
        let proxy = resolve("sidecar~10.0.0.1~a-1.shop~shop.svc.cluster.local", json!({}))
            .expect("a valid id");
        assert_eq!(proxy.role, Role::Sidecar);
        assert_eq!(&*proxy.namespace, "shop");
        assert_eq!(proxy.addresses, ["10.0.0.1".parse::<IpAddr>().expect("an address")]);
        assert_eq!(proxy.interception, Interception::Redirect);
    }

    #[test]
    fn a_plain_id_is_a_router_of_the_default_namespace_without_interception() {
        let proxy = resolve("edge-1", json!({})).expect("a valid id");
        assert_eq!(proxy.role, Role::Router);
        assert_eq!(&*proxy.namespace, "default");
        assert_eq!(proxy.labels.get("app"), Some("web"));
        assert_eq!(proxy.interception, Interception::None);
        assert_eq!(&*proxy.domain, "default.svc.cluster.local");
    }

    #[test]
    fn metadata_decides_over_defaults() {
        let metadata = json!({
            "TYPE": "sidecar", "NAMESPACE": "shop", "INTERCEPTION_MODE": "REDIRECT",
            "LABELS": {"app": "cart"}, "INSTANCE_IPS": "10.0.0.1,fd00::1", "HTTP10": "1",
        });
        let proxy = resolve("cart-1", metadata).expect("a valid id");
        assert_eq!(proxy.role, Role::Sidecar);
        assert_eq!(&*proxy.namespace, "shop");
        assert_eq!(proxy.interception, Interception::Redirect);
        assert_eq!(proxy.labels.get("app"), Some("cart"));
        assert_eq!(proxy.ip_mode(), IpMode::Dual);
        assert!(proxy.options.http10);
    }

    /// A mesh with one WorkloadEntry, at 10.0.0.1.
    fn with_entry(name: &str) -> Arc<Snapshot> {
        let entry = format!(
            "{{apiVersion: networking.istio.io/v1, kind: WorkloadEntry, metadata: {{name: {name}}}, \
             spec: {{address: 10.0.0.1, labels: {{app: of-the-entry}}, locality: eu/one}}}}"
        );
        let mut workspace = Workspace::new("cluster.local");
        workspace.replace_file(SourceFile::new("a.yaml", entry));
        workspace.compile().snapshot
    }

    fn app(snapshot: &Snapshot, metadata: Value) -> String {
        let mut node = node("edge-1", metadata);
        node.metadata.insert("INSTANCE_IPS".to_owned(), "10.0.0.1".into());
        let proxy = node.resolve(snapshot).expect("a valid node");
        assert_eq!(proxy.locality.to_string(), "eu/one", "the entry is the node's in any case");
        proxy.labels.get("app").unwrap_or_default().to_owned()
    }

    #[test]
    fn an_entry_of_the_nodes_name_decides_over_the_labels_that_the_node_states() {
        let own = with_entry("edge-1");
        assert_eq!(app(&own, json!({"LABELS": {"app": "edge"}})), "of-the-entry");
        assert_eq!(app(&own, json!({})), "of-the-entry");
    }

    #[test]
    fn a_neighbour_at_the_same_address_gives_labels_only_to_a_node_that_states_none() {
        let neighbour = with_entry("reviews-1");
        assert_eq!(app(&neighbour, json!({"LABELS": {"app": "edge"}})), "edge");
        assert_eq!(app(&neighbour, json!({"LABELS": {}})), "of-the-entry");
        assert_eq!(app(&neighbour, json!({})), "of-the-entry");
    }

    #[test]
    fn nonsense_is_an_error_that_says_what_is_expected() {
        for (id, metadata, expected) in [
            ("", json!({}), "node.id is empty"),
            ("sidecar~10.0.0.1~a", json!({}), "type~ip~name.namespace~domain"),
            ("ztunnel~10.0.0.1~a.b~b.svc", json!({}), "'router' or 'sidecar'"),
            ("sidecar~nope~a.b~b.svc", json!({}), "not an IP address"),
            ("edge", json!({"TYPE": "gateway"}), "'router' or 'sidecar'"),
            ("edge", json!({"LABELS": "app=x"}), "an object of strings"),
            ("edge", json!({"INSTANCE_IPS": "10.0.0.1,x"}), "IP addresses"),
        ] {
            let error = resolve(id, metadata).expect_err("must be refused");
            assert!(error.to_string().contains(expected), "{id}: {error}");
        }
    }
}
