//! What of a proxy may matter to resources that proxies share, and what of it really did.
//!
//! A [`View`] is everything about a proxy but its addresses. Nothing in it can be read directly:
//! generators hold a [`Viewer`], which notes each look. What was made for one view is then right for
//! every view that would have given the same answers, so the key under which proxies share is made
//! by the looking itself, and no list of "what can matter" has to be kept.

use crate::model::{Labels, Locality, Namespace, Selector, Snapshot};
use crate::proxy::{Interception, IpMode, Options, Proxy, Role};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Role and namespace.
pub(super) type Class = (Role, Namespace);

/// Everything about a proxy that shared resources may depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    role: Role,
    namespace: Namespace,
    labels: Labels,
    domain: Arc<str>,
    ip_mode: IpMode,
    interception: Interception,
    locality: Locality,
    network: Arc<str>,
    gateway_ports: BTreeMap<u16, u16>,
    options: Options,
}

/// The parts of a view, for tests that make one up.
#[cfg(test)]
#[derive(Debug, Clone)]
pub struct Parts {
    pub role: Role,
    pub namespace: Namespace,
    pub labels: Labels,
    pub domain: Arc<str>,
    pub ip_mode: IpMode,
    pub interception: Interception,
    pub locality: Locality,
    pub network: Arc<str>,
    pub gateway_ports: BTreeMap<u16, u16>,
    pub options: Options,
}

#[cfg(test)]
impl From<Parts> for View {
    fn from(parts: Parts) -> View {
        let Parts { role, namespace, labels, domain, ip_mode, interception, .. } = parts;
        let Parts { locality, network, gateway_ports, options, .. } = parts;
        View {
            role,
            namespace,
            labels,
            domain,
            ip_mode,
            interception,
            locality,
            network,
            gateway_ports,
            options,
        }
    }
}

impl View {
    /// The view of a proxy on this snapshot.
    pub fn of(snapshot: &Snapshot, proxy: &Proxy) -> View {
        View {
            role: proxy.role,
            namespace: proxy.namespace.clone(),
            labels: proxy.labels.clone(),
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

    /// Role and namespace, which decide most: the first key to look under.
    pub(super) fn class(&self) -> Class {
        (self.role, self.namespace.clone())
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
            .filter(|(_, s)| s.namespace == proxy.namespace && s.labels.get(DISABLED).is_none());
        for (id, _) in services {
            let here = snapshot.endpoints.of(id).iter().filter(|e| e.ip() == Some(*address));
            for endpoint in here {
                ports.entry(endpoint.port_number).or_insert(endpoint.target_port);
            }
        }
    }
    ports
}

/// A look at one thing about a proxy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Look {
    Role,
    Namespace,
    Domain,
    /// The part of the domain behind the namespace.
    Cluster,
    IpMode,
    Interception,
    Locality,
    Network,
    GatewayPorts,
    Options,
    Label(Arc<str>),
}

/// The part of a domain like Kubernetes' that begins with `.svc.`.
fn cluster_of(domain: &str) -> Option<&str> {
    domain.find(".svc.").map(|at| &domain[at..])
}

impl Look {
    /// Whether both views answer alike.
    fn agrees(&self, a: &View, b: &View) -> bool {
        match self {
            Look::Role => a.role == b.role,
            Look::Namespace => a.namespace == b.namespace,
            Look::Domain => a.domain == b.domain,
            Look::Cluster => cluster_of(&a.domain) == cluster_of(&b.domain),
            Look::IpMode => a.ip_mode == b.ip_mode,
            Look::Interception => a.interception == b.interception,
            Look::Locality => a.locality == b.locality,
            Look::Network => a.network == b.network,
            Look::GatewayPorts => a.gateway_ports == b.gateway_ports,
            Look::Options => a.options == b.options,
            Look::Label(key) => a.labels.get(key) == b.labels.get(key),
        }
    }
}

/// Everything that was looked at while something was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looks(BTreeSet<Look>);

impl Looks {
    /// Whether what was made for `a` with these looks is right for `b`.
    pub fn agree(&self, a: &View, b: &View) -> bool {
        self.0.iter().all(|look| look.agrees(a, b))
    }
}

/// A view that notes what is read of it.
#[derive(Debug)]
pub struct Viewer<'v> {
    view: &'v Arc<View>,
    looks: RefCell<Looks>,
}

impl<'v> Viewer<'v> {
    /// A viewer that saw nothing yet.
    pub fn new(view: &'v Arc<View>) -> Viewer<'v> {
        Viewer { view, looks: RefCell::default() }
    }

    /// The view itself, to hand on to another viewer. Reading is for viewers only.
    pub fn view(&self) -> &'v Arc<View> {
        self.view
    }

    /// Everything that was looked at so far.
    pub fn looks(&self) -> Looks {
        self.looks.borrow().clone()
    }

    /// Takes over what another viewer looked at: what is made with its result depends on it too.
    pub fn adopt(&self, looks: &Looks) {
        let mut own = self.looks.borrow_mut();
        for look in &looks.0 {
            if !own.0.contains(look) {
                own.0.insert(look.clone());
            }
        }
    }

    fn note(&self, look: Look) {
        let mut looks = self.looks.borrow_mut();
        if !looks.0.contains(&look) {
            looks.0.insert(look);
        }
    }

    /// Edge or sidecar.
    pub fn role(&self) -> Role {
        self.note(Look::Role);
        self.view.role
    }

    /// Namespace whose configuration it gets.
    pub fn namespace(&self) -> &'v Namespace {
        self.note(Look::Namespace);
        &self.view.namespace
    }

    /// DNS domain of its namespace.
    pub fn domain(&self) -> &'v str {
        self.note(Look::Domain);
        &self.view.domain
    }

    /// What follows the namespace in a domain like Kubernetes' (`.svc.cluster.local`); proxies of
    /// all namespaces of a mesh agree in it.
    pub fn cluster_domain(&self) -> Option<&'v str> {
        self.note(Look::Cluster);
        cluster_of(&self.view.domain)
    }

    /// Address families.
    pub fn ip_mode(&self) -> IpMode {
        self.note(Look::IpMode);
        self.view.ip_mode
    }

    /// How traffic gets to it.
    pub fn interception(&self) -> Interception {
        self.note(Look::Interception);
        self.view.interception
    }

    /// Where it runs.
    pub fn locality(&self) -> &'v Locality {
        self.note(Look::Locality);
        &self.view.locality
    }

    /// Its network, empty when unknown.
    pub fn network(&self) -> &'v str {
        self.note(Look::Network);
        &self.view.network
    }

    /// The port that a Gateway server with this number listens on: a Gateway port 80 listens on
    /// 8080 when the router's own service maps it so.
    pub fn gateway_port(&self, declared: u16) -> u16 {
        self.note(Look::GatewayPorts);
        self.view.gateway_ports.get(&declared).copied().unwrap_or(declared)
    }

    /// The rest of the metadata that changes configuration.
    pub fn options(&self) -> &'v Options {
        self.note(Look::Options);
        &self.view.options
    }

    /// The value of one label.
    pub fn label(&self, key: &str) -> Option<&'v str> {
        self.note(Look::Label(Arc::from(key)));
        self.view.labels.get(key)
    }

    /// Whether the proxy has every label of a selector.
    pub fn selected_by(&self, selector: &Selector) -> bool {
        selector.iter().all(|(key, value)| self.label(key) == Some(value))
    }
}
