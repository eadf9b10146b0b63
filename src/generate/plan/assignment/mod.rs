//! The endpoints of one cluster, grouped by locality. EDS and the assignments that DNS clusters
//! carry are decided here alike.
//!
//! For EDS a cluster carries a [`Recipe`]: all that its assignments need beside endpoints and the
//! proxy, so that a change of endpoints costs selecting, grouping and arranging them, and nothing of
//! the cluster is decided again.
//!
//! Endpoints carry no metadata: Istio's `istio.workload` and `tlsMode` feed filters and socket
//! matches that stock Envoy and this version do not have.

mod locality;
#[cfg(test)]
mod tests;

pub use locality::Arrangement;
pub(super) use locality::{FailoverOn, LocalitySetting};

use super::cluster::HostAddress;
use crate::generate::Viewer;
use crate::model::{Endpoint, EndpointAddress, Health, Labels, Locality, Service};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// A service with this label keeps sending to draining endpoints those who are bound to them.
const PERSISTENT_SESSION: &str = "istio.io/persistent-session";

/// The hosts of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The cluster.
    pub cluster: Arc<str>,
    /// Its endpoints.
    pub groups: Vec<Group>,
}

/// The endpoints of one locality and priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Where they run.
    pub locality: Locality,
    /// Which they are.
    pub members: Vec<Member>,
    /// The weight of the group, at least 1.
    pub weight: u32,
    /// 0 is tried first.
    pub priority: u32,
}

/// An endpoint in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Where to connect to.
    pub at: HostAddress,
    /// Its weight in the group, at least 1.
    pub weight: u32,
    /// Whether it may get new traffic.
    pub health: Health,
}

/// How the assignments of a cluster are made of endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Which endpoints of the service are the cluster's.
    pub(super) selection: Selection,
    /// What localities do to them.
    pub(super) arrangement: Arrangement,
}

/// Which endpoints of a service are those of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selection {
    /// Those of this port,
    pub(super) port: PortKey,
    /// with these labels, if any are asked for;
    pub(super) labels: Option<Labels>,
    /// draining ones too, if requests can be bound to them;
    pub(super) keeps_draining: bool,
    /// only the first, where Envoy takes exactly one.
    pub(super) only_first: bool,
}

/// How endpoints of a port are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PortKey {
    /// By the name of the service port (EDS).
    Name(Arc<str>),
    /// By its number (DNS).
    Number(u16),
}

/// The endpoints of one locality and priority while they are arranged.
#[derive(Debug, Clone)]
struct Draft<'a> {
    locality: &'a Locality,
    /// Each with its weight.
    members: Vec<(&'a Endpoint, u32)>,
    weight: u32,
    priority: u32,
}

impl<'a> Draft<'a> {
    /// A group whose weight is that of its members.
    fn new(locality: &'a Locality, members: Vec<(&'a Endpoint, u32)>) -> Draft<'a> {
        let weight: u64 = members.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let weight = u32::try_from(weight).unwrap_or(u32::MAX).max(1);
        Draft { locality, members, weight, priority: 0 }
    }

    fn finish(self) -> Group {
        let member = |(endpoint, weight): (&Endpoint, u32)| Member {
            at: HostAddress { address: endpoint.address.clone(), port: endpoint.target_port },
            weight,
            health: endpoint.health,
        };
        Group {
            locality: self.locality.clone(),
            members: self.members.into_iter().map(member).collect(),
            weight: self.weight,
            priority: self.priority,
        }
    }
}

impl Recipe {
    /// The assignment of a cluster that is cooked after this recipe, for a proxy at its place.
    pub fn assignment(
        &self,
        cluster: &Arc<str>,
        endpoints: &[Endpoint],
        view: &Viewer<'_>,
    ) -> Assignment {
        let mut drafts = group(&self.selection.of(endpoints));
        locality::arrange(&mut drafts, &self.arrangement, view);
        let groups = drafts.into_iter().map(Draft::finish).collect();
        Assignment { cluster: cluster.clone(), groups }
    }
}

impl Assignment {
    /// Hosts of equal weight and unknown place.
    pub fn of_hosts(
        cluster: &Arc<str>,
        hosts: impl IntoIterator<Item = HostAddress>,
    ) -> Assignment {
        let member = |at| Member { at, weight: 1, health: Health::Unknown };
        let members: Vec<Member> = hosts.into_iter().map(member).collect();
        let weight = u32::try_from(members.len()).unwrap_or(u32::MAX).max(1);
        let group = Group { locality: Locality::default(), members, weight, priority: 0 };
        Assignment { cluster: cluster.clone(), groups: vec![group] }
    }
}

/// Whether requests to a service can be bound to one endpoint, so that a draining one is kept.
pub(super) fn keeps_sessions(service: &Service) -> bool {
    service.labels.get(PERSISTENT_SESSION).is_some_and(|label| !label.is_empty())
}

impl Selection {
    /// The endpoints that may get traffic, in pool order. Envoy keeps one host for an address, so
    /// repeats are left out, with their weight.
    pub(super) fn of<'a>(&self, endpoints: &'a [Endpoint]) -> Vec<&'a Endpoint> {
        let of_port = |e: &&Endpoint| match &self.port {
            // A name or an empty address in EDS would be refused with the whole response.
            PortKey::Name(name) => {
                e.port_name == *name && !matches!(e.address, EndpointAddress::Hostname(_))
            }
            PortKey::Number(number) => e.port_number == *number,
        };
        let mut seen = HashSet::new();
        let mut selected: Vec<&Endpoint> = endpoints
            .iter()
            .filter(of_port)
            .filter(|e| self.labels.as_ref().is_none_or(|wanted| e.labels.selected_by(wanted)))
            .filter(|e| match e.health {
                Health::Unknown => true,
                Health::Draining => self.keeps_draining,
            })
            .filter(|e| seen.insert((&e.address, e.target_port)))
            .collect();
        if self.only_first {
            selected.truncate(1);
        }
        selected
    }
}

/// Groups by locality, sorted by the locality's text.
fn group<'a>(endpoints: &[&'a Endpoint]) -> Vec<Draft<'a>> {
    let shift = weight_shift(endpoints);
    let mut by_locality: BTreeMap<&'a Locality, Vec<(&'a Endpoint, u32)>> = BTreeMap::new();
    for &endpoint in endpoints {
        let weight = (endpoint.weight >> shift).max(1);
        by_locality.entry(&endpoint.locality).or_default().push((endpoint, weight));
    }
    let mut groups: Vec<Draft<'a>> =
        by_locality.into_iter().map(|(locality, members)| Draft::new(locality, members)).collect();
    if groups.len() > 1 {
        groups.sort_by_cached_key(|g| g.locality.to_string());
    }
    groups
}

/// Envoy refuses an assignment whose weights add up to more than 32 bits; by how much to scale.
fn weight_shift(endpoints: &[&Endpoint]) -> u32 {
    let total = |shift: u32| -> u64 {
        endpoints.iter().map(|e| u64::from((e.weight >> shift).max(1))).sum()
    };
    (0..u32::BITS).find(|shift| total(*shift) <= u64::from(u32::MAX)).unwrap_or(u32::BITS - 1)
}
