//! Strategies for proxies: of both roles, in every namespace, alike in much and different in
//! anything that resources may depend on.

use super::{NAMES, NAMESPACES};
use crate::support::case::ProxySpec;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

/// What a node says about itself.
#[derive(Debug, Clone)]
struct Node {
    is_plain: bool,
    role: &'static str,
    name: &'static str,
    namespace: &'static str,
    domain: &'static str,
    addresses: &'static str,
    labels: Option<Value>,
    options: Map<String, Value>,
    locality: &'static str,
}

/// Proxies in pairs that differ in one thing.
pub fn proxies(pairs: usize) -> impl Strategy<Value = Vec<ProxySpec>> {
    vec((node(), node(), 0..9u8), pairs).prop_map(|pairs| {
        pairs
            .into_iter()
            .flat_map(|(a, b, thing)| [a.clone(), a.with(b, thing)])
            .map(Node::spec)
            .collect()
    })
}

fn node() -> impl Strategy<Value = Node> {
    let id = (
        any::<bool>(),
        select(vec!["sidecar", "sidecar", "router"]),
        select(&NAMES[..]),
        select(&NAMESPACES[..]),
        select(vec!["svc.cluster.local", "svc.mesh.example", "example"]),
        select(vec!["127.1.0.1", "127.1.0.1,127.1.1.2", "127.1.1.1,fd00::1", "fd00::1", ""]),
    );
    let localities =
        vec!["", "region-0/zone-0", "region-0/zone-1/s", "region-1/zone-0", "region-2"];
    (id, labels(), option::weighted(0.5, options()), select(localities)).prop_map(
        |(id, labels, options, locality)| {
            let (is_plain, role, name, namespace, domain, addresses) = id;
            let options = options.unwrap_or_default();
            Node { is_plain, role, name, namespace, domain, addresses, labels, options, locality }
        },
    )
}

impl Node {
    fn with(self, other: Node, thing: u8) -> Node {
        match thing {
            0 => Node { is_plain: other.is_plain, ..self },
            1 => Node { role: other.role, ..self },
            2 => Node { name: other.name, ..self },
            3 => Node { namespace: other.namespace, ..self },
            4 => Node { domain: other.domain, ..self },
            5 => Node { addresses: other.addresses, ..self },
            6 => Node { labels: other.labels, ..self },
            7 => Node { options: other.options, ..self },
            _ => Node { locality: other.locality, ..self },
        }
    }

    fn spec(self) -> ProxySpec {
        let Node { role, name, namespace, domain, .. } = self;
        let mut metadata = self.options;
        if let Some(labels) = self.labels {
            metadata.insert("LABELS".to_owned(), labels);
        }
        if !self.addresses.is_empty() {
            metadata.insert("INSTANCE_IPS".to_owned(), self.addresses.into());
        }
        let id = if self.is_plain {
            metadata.insert("TYPE".to_owned(), role.into());
            metadata.insert("NAMESPACE".to_owned(), namespace.into());
            name.to_owned()
        } else {
            format!("{role}~127.1.0.2~{name}.{namespace}~{namespace}.{domain}")
        };
        ProxySpec {
            name: format!("{id} {}", Value::Object(metadata.clone())),
            id,
            cluster: "a".to_owned(),
            metadata,
            locality: self.locality.to_owned(),
        }
    }
}

/// Labels that documents ask for, and one that none asks for.
fn labels() -> impl Strategy<Value = Option<Value>> {
    let all = vec![("app", "a"), ("tier", "front"), ("version", "v1"), ("nobody", "asks")];
    option::weighted(0.8, subsequence(all, 0..=4)).prop_map(|labels| {
        let labels = labels?.into_iter().map(|(key, value)| (key.to_owned(), value.into()));
        Some(Value::Object(labels.collect()))
    })
}

/// One or two of the other things that a node can say.
fn options() -> impl Strategy<Value = Map<String, Value>> {
    let all = vec![
        ("INTERCEPTION_MODE", json!("NONE")),
        ("INTERCEPTION_MODE", json!("REDIRECT")),
        ("INTERCEPTION_MODE", json!("TPROXY")),
        ("HTTP10", json!("1")),
        ("IDLE_TIMEOUT", json!("30s")),
        ("HTTP_PROXY_PORT", json!("3128")),
        ("NETWORK", json!("far")),
        ("UNPRIVILEGED_POD", json!("true")),
    ];
    subsequence(all, 1..3)
        .prop_map(|options| options.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}
