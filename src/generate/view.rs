//! What of a proxy matters: the key under which resources are shared.

use crate::model::{Labels, Locality, Namespace, Snapshot};
use crate::proxy::{Interception, IpMode, Options, Proxy, Role};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything about a proxy that shared generators may read. Two proxies with equal views get the
/// same bytes, so what cannot matter is left out when a view is made: labels that no document asks
/// for, and addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View {
    /// Edge or sidecar.
    pub role: Role,
    /// Namespace whose configuration it gets.
    pub namespace: Namespace,
    /// The labels that some document asks for.
    pub labels: Labels,
    /// DNS domain of its namespace.
    pub domain: Arc<str>,
    /// Address families.
    pub ip_mode: IpMode,
    /// How traffic gets to it.
    pub interception: Interception,
    /// Where it runs.
    pub locality: Locality,
    /// Its network, empty when unknown.
    pub network: Arc<str>,
    /// On a router: target port by service port, from the services that select it. A Gateway port
    /// 80 listens on 8080 when the router's own service maps it so.
    pub gateway_ports: BTreeMap<u16, u16>,
    /// The rest of the metadata that changes configuration.
    pub options: Options,
}

impl View {
    /// The view of a proxy on this snapshot.
    pub fn of(snapshot: &Snapshot, proxy: &Proxy) -> View {
        let matters = |key: &&String| snapshot.proxy_label_keys.contains(*key);
        let labels = proxy.labels.0.iter().filter(|(key, _)| matters(key));
        View {
            role: proxy.role,
            namespace: proxy.namespace.clone(),
            labels: labels.map(|(k, v)| (k.clone(), v.clone())).collect(),
            domain: proxy.domain.clone(),
            ip_mode: proxy.ip_mode(),
            interception: proxy.interception,
            locality: proxy.locality.clone(),
            network: proxy.network.clone(),
            gateway_ports: match proxy.role {
                Role::Router => gateway_ports(snapshot, proxy),
                Role::Sidecar => BTreeMap::new(),
            },
            options: proxy.options.clone(),
        }
    }

    /// The port that a Gateway server with this number listens on.
    pub fn gateway_port(&self, declared: u16) -> u16 {
        self.gateway_ports.get(&declared).copied().unwrap_or(declared)
    }
}

/// Istio's port translation: the first service (by creation) that has this router as an endpoint
/// decides, unless it is labelled to be left alone.
fn gateway_ports(snapshot: &Snapshot, proxy: &Proxy) -> BTreeMap<u16, u16> {
    const DISABLED: &str = "experimental.istio.io/disable-gateway-port-translation";
    let mut ports = BTreeMap::new();
    for address in &proxy.addresses {
        let services = snapshot
            .services_at(*address)
            .filter(|s| s.namespace == proxy.namespace && s.labels.get(DISABLED).is_none());
        for service in services {
            for endpoint in service.endpoints.iter().filter(|e| e.ip() == Some(*address)) {
                ports.entry(endpoint.port_number).or_insert(endpoint.target_port);
            }
        }
    }
    ports
}
