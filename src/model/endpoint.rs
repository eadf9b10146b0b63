//! Endpoints of services, and workloads.

use super::{Labels, Namespace, ObjectName, Origin};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// One endpoint of one service port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The name of the service port that it serves.
    pub port_name: Arc<str>,
    /// The number of that service port.
    pub port_number: u16,
    /// Where it is.
    pub address: EndpointAddress,
    /// The port to connect to (0 for pipes). Precedence: pipe, the workload's own port of that
    /// name, `targetPort`, the number.
    pub target_port: u16,
    /// Labels of the workload, with the topology labels added as Istio does.
    pub labels: Labels,
    /// Where it runs.
    pub locality: Locality,
    /// Load balancing weight, at least 1.
    pub weight: u32,
    /// Its network, empty when reachable from everywhere.
    pub network: Arc<str>,
    /// Service account, empty when unknown.
    pub service_account: Arc<str>,
    /// `istio`, `disabled` or what the label `security.istio.io/tlsMode` says.
    pub tls_mode: Arc<str>,
    /// The workload's name.
    pub workload: Arc<str>,
    /// The workload's namespace.
    pub namespace: Namespace,
    /// Whether it may get traffic.
    pub health: Health,
}

/// The address of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndpointAddress {
    /// An IP address.
    Ip(IpAddr),
    /// A DNS name, for services resolved by DNS.
    Hostname(Arc<str>),
    /// A Unix domain socket, without the `unix://`.
    Pipe(Arc<str>),
}

impl fmt::Display for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndpointAddress::Ip(ip) => ip.fmt(f),
            EndpointAddress::Hostname(name) => f.write_str(name),
            EndpointAddress::Pipe(path) => write!(f, "unix://{path}"),
        }
    }
}

/// Whether an endpoint takes part in load balancing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// Nothing is known against it.
    Unknown,
    /// Finishes what it has.
    Draining,
}

/// A non-empty label of this name lets a workload finish what it has (istiod's
/// `PILOT_DRAINING_LABEL`).
const DRAINING: &str = "istio.io/draining";

impl Health {
    /// What the labels of a workload say.
    pub fn of(labels: &Labels) -> Health {
        match labels.get(DRAINING) {
            None | Some("") => Health::Unknown,
            Some(_) => Health::Draining,
        }
    }
}

/// `region/zone/subzone`; empty parts are unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locality {
    /// Region.
    pub region: Arc<str>,
    /// Zone.
    pub zone: Arc<str>,
    /// Subzone.
    pub subzone: Arc<str>,
}

impl Locality {
    /// Reads `region/zone/subzone`; missing parts are empty, further parts belong to the subzone.
    pub fn parse(text: &str) -> Locality {
        let mut parts = text.splitn(3, '/').map(Arc::from);
        Locality {
            region: parts.next().unwrap_or_default(),
            zone: parts.next().unwrap_or_default(),
            subzone: parts.next().unwrap_or_default(),
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.region.is_empty() && self.zone.is_empty() && self.subzone.is_empty()
    }
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.region)?;
        if !self.zone.is_empty() || !self.subzone.is_empty() {
            write!(f, "/{}", self.zone)?;
        }
        if !self.subzone.is_empty() {
            write!(f, "/{}", self.subzone)?;
        }
        Ok(())
    }
}

/// A WorkloadEntry: a place where software runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// The document.
    pub origin: Origin,
    /// Its address; `None` only where a network gateway is meant to stand in for it.
    pub address: Option<EndpointAddress>,
    /// Port numbers by service port name.
    pub ports: BTreeMap<String, u16>,
    /// Labels: those of the document over those of the spec.
    pub labels: Labels,
    /// Where it runs.
    pub locality: Locality,
    /// Load balancing weight, at least 1.
    pub weight: u32,
    /// Its network, empty when unknown.
    pub network: Arc<str>,
    /// Service account, empty when unknown.
    pub service_account: Arc<str>,
    /// Whether it may get traffic.
    pub health: Health,
}

impl Workload {
    /// Namespace and name.
    pub fn name(&self) -> &ObjectName {
        &self.origin.name
    }
}

#[cfg(test)]
mod tests {
    use super::Locality;

    #[test]
    fn a_locality_prints_as_it_is_read() {
        for text in ["", "r", "r/z", "r/z/s"] {
            assert_eq!(Locality::parse(text).to_string(), text);
        }
    }
}
