//! WorkloadEntry: one place outside of any scheduler where software runs. ServiceEntry uses the
//! same type for the endpoints that are written in place.

#[cfg(test)]
mod tests;

use super::kind::About;
use super::{Draft, EndpointSpec, Kind, KindSpec, rules};
use crate::config::{Field, Findings, Node, RawDocument, Value};
use crate::diag::{Code, Diagnostic, Severity};
use crate::model::{EndpointAddress, Health, Labels, Locality, MeshSettings, Workload};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// How addresses of Unix domain sockets start.
const UNIX: &str = "unix://";

/// The label that says where a workload runs when the field does not, and its old name.
const LOCALITY_LABELS: [&str; 2] = ["topology.istio.io/locality", "istio-locality"];

/// With this annotation a workload gets no traffic until its status says that it is healthy.
const HEALTH_CHECKS: &str = "proxy.istio.io/health-checks-enabled";

/// Its line in the table of kinds.
pub(super) const KIND: Kind = Kind::of::<WorkloadSpec>();

/// One place where software runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "WorkloadEntry")]
pub struct WorkloadSpec {
    /// IP address, DNS name, or `unix://` and the path of a socket.
    #[serde(default)]
    pub address: String,
    /// Port numbers by the name of the service port.
    #[serde(default)]
    pub ports: BTreeMap<String, u16>,
    /// Labels that selectors and subsets ask for.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Name of the network that the address belongs to.
    #[serde(default)]
    pub network: String,
    /// Where it runs, as `region/zone/subzone`.
    #[serde(default)]
    pub locality: String,
    /// Share of the traffic, relative to its neighbours; unset is 1.
    #[serde(default)]
    pub weight: u32,
    /// Account that it runs as.
    #[serde(default)]
    pub service_account: String,
}

/// Which addresses are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addresses {
    /// IP addresses, DNS names and sockets.
    Any,
    /// IP addresses and sockets.
    NoNames,
    /// IP addresses and DNS names.
    NoSockets,
}

impl WorkloadSpec {
    /// Checks all fields but the port names, which only the ServiceEntry around it knows.
    pub(super) fn check_endpoint(&self, at: &Field<'_>, allowed: Addresses, f: &mut Findings<'_>) {
        let address = at.key("address");
        if self.address.is_empty() {
            self.check_no_address(at, f);
        } else if let Some(path) = self.address.strip_prefix(UNIX) {
            self.check_socket(at, path, allowed, f);
        } else if self.address.parse::<IpAddr>().is_err() {
            match (allowed, rules::fqdn_problem(&self.address)) {
                (Addresses::NoNames, _) => {
                    let message = format!("`{}` is not an IP address", self.address);
                    let help = "use `resolution: DNS` for endpoints that are names";
                    f.report(&address, Diagnostic::new(Code::InvalidValue, message).help(help));
                }
                (Addresses::Any | Addresses::NoSockets, Some(problem)) => {
                    let message = format!(
                        "`{}` is neither an IP address nor a DNS name: {problem}",
                        self.address
                    );
                    f.error(&address, Code::InvalidValue, message);
                }
                (Addresses::Any | Addresses::NoSockets, None) => {}
            }
        }
        let ports = at.key("ports");
        for (name, number) in &self.ports {
            let port = ports.key(name);
            rules::dns_label(f, &port, "a port name", name);
            rules::port(f, &port, *number);
        }
        rules::labels(f, &at.key("labels"), &self.labels);
    }

    fn check_no_address(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if self.network.is_empty() {
            let message = "the required field `address` is missing";
            f.error(at, Code::MissingField, message);
            return;
        }
        let message = "an endpoint without `address` stands for the gateway of its network, and \
                       network gateways are not supported yet; it gets no traffic";
        f.warn(&at.key("network"), Code::NotSupported, message);
    }

    fn check_socket(&self, at: &Field<'_>, path: &str, allowed: Addresses, f: &mut Findings<'_>) {
        let address = at.key("address");
        let problem = if allowed == Addresses::NoSockets {
            Some("an endpoint of a DNS service cannot be a Unix socket; use `resolution: STATIC`")
        } else if path.is_empty() {
            Some("the path of the socket is missing")
        } else if path.starts_with('@') {
            None
        } else if !path.starts_with('/') {
            Some("the path of the socket must be absolute, as in `unix:///run/app.sock`")
        } else if path.ends_with('/') {
            Some("the path of the socket must not end with `/`")
        } else {
            None
        };
        if let Some(problem) = problem {
            f.error(&address, Code::InvalidValue, problem);
        }
        if !self.ports.is_empty() {
            let message = "a Unix socket has no ports; remove them";
            f.error(&at.key("ports"), Code::ConflictingFields, message);
        }
    }

    /// Whether the address is a Unix domain socket.
    pub(super) fn is_socket(&self) -> bool {
        self.address.starts_with(UNIX)
    }

    /// What it means, with these labels (which may be more than its own).
    pub(super) fn lower_endpoint(&self, mut labels: Labels) -> EndpointSpec {
        let locality = self.locality(&labels);
        augment(&mut labels, &locality, &self.network);
        EndpointSpec {
            address: self.endpoint_address(),
            ports: self.ports.clone(),
            labels,
            network: Arc::from(self.network.as_str()),
            locality,
            weight: self.weight.max(1),
            service_account: Arc::from(self.service_account.as_str()),
        }
    }

    fn endpoint_address(&self) -> Option<EndpointAddress> {
        if self.address.is_empty() {
            return None;
        }
        Some(match (self.address.strip_prefix(UNIX), self.address.parse()) {
            (Some(path), _) => EndpointAddress::Pipe(Arc::from(path)),
            (None, Ok(ip)) => EndpointAddress::Ip(ip),
            (None, Err(_)) => EndpointAddress::Hostname(Arc::from(self.address.as_str())),
        })
    }

    /// The field, else a label. Label values cannot hold slashes, so dots stand for them there
    /// (Istio).
    fn locality(&self, labels: &Labels) -> Locality {
        if !self.locality.is_empty() {
            return Locality::parse(&self.locality);
        }
        let text = LOCALITY_LABELS.iter().find_map(|key| labels.get(key)).unwrap_or_default();
        if text.is_empty() {
            Locality::default()
        } else if text.contains('/') {
            Locality::parse(text)
        } else {
            Locality::parse(&text.replace('.', "/"))
        }
    }
}

/// Adds the labels that say where a workload runs, so that subsets can select by place.
fn augment(labels: &mut Labels, locality: &Locality, network: &str) {
    let places = [
        ("topology.kubernetes.io/region", &*locality.region),
        ("topology.kubernetes.io/zone", &*locality.zone),
        ("topology.istio.io/subzone", &*locality.subzone),
    ];
    for (key, value) in places.into_iter().filter(|(_, value)| !value.is_empty()) {
        labels.0.insert(key.to_owned(), value.to_owned());
    }
    if !network.is_empty() {
        labels
            .0
            .entry("topology.istio.io/network".to_owned())
            .or_insert_with(|| network.to_owned());
    }
}

/// Whether the workload may get traffic at all, by the health that its own agent wrote into the
/// document: with health checks switched on, a missing answer counts as unhealthy (Istio).
fn may_serve(document: &RawDocument) -> bool {
    if document.header.annotations.get(HEALTH_CHECKS).is_none_or(|value| value != "true") {
        return true;
    }
    let conditions = match document.root.get("status").and_then(|s| s.get("conditions")) {
        Some(Node { value: Value::Sequence(items), .. }) => items.as_slice(),
        _ => &[],
    };
    let text = |node: &Node, key: &str| node.get(key).and_then(Node::as_str).map(str::to_owned);
    conditions
        .iter()
        .find(|c| text(c, "type").as_deref() == Some("Healthy"))
        .is_some_and(|c| text(c, "status").as_deref() == Some("True"))
}

fn report_unhealthy(f: &mut Findings<'_>) {
    let message = format!(
        "the workload gets no traffic: `{HEALTH_CHECKS}` is on, and its status has no condition \
         `Healthy` that is `True`"
    );
    let metadata = Field::root("metadata");
    let annotations = metadata.key("annotations");
    let diagnostic =
        Diagnostic { severity: Severity::Info, ..Diagnostic::new(Code::NoEffect, message) };
    f.report(&annotations.key(HEALTH_CHECKS), diagnostic);
}

impl KindSpec for WorkloadSpec {
    const ABOUT: About = About::networking("WorkloadEntry");

    type Share = Workload;

    fn check(&self, f: &mut Findings<'_>) {
        self.check_endpoint(&Field::root("spec"), Addresses::Any, f);
        if !may_serve(f.document()) {
            report_unhealthy(f);
        }
    }

    fn lower(&self, document: &RawDocument) -> Option<Workload> {
        if !may_serve(document) {
            // As if the document were not there (Istio).
            return None;
        }
        let header = &document.header;
        let mut labels = self.labels.clone();
        labels.extend(header.labels.clone());
        let spec = self.lower_endpoint(Labels(labels));
        let health = Health::of(&spec.labels);
        Some(Workload {
            origin: Self::ABOUT.origin(header),
            address: spec.address,
            ports: spec.ports,
            labels: spec.labels,
            locality: spec.locality,
            weight: spec.weight,
            network: spec.network,
            service_account: spec.service_account,
            health,
        })
    }

    fn add(share: &Workload, _: &MeshSettings, draft: &mut Draft) {
        draft.workloads.push(share.clone());
    }
}
