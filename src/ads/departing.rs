//! Make before break, the direction of removal: when a cluster that is gone may be taken from the
//! client.
//!
//! Additions go out clusters first, so that whatever refers to a cluster finds it. Removal is the
//! mirror image: a cluster may go when no route that the client still uses refers to it. We do
//! not look into routes; two observations stand in for that:
//!
//! * While a push also changes listeners or routes, clusters go at the end of it. In delta that
//!   is a removal after everything else; in state of the world the first response of clusters
//!   still holds them and a second one omits them.
//! * While the client is subscribed to a route that no longer exists, some listener that uses it
//!   is draining or waits for its successor. Clusters then stay until the client unsubscribes
//!   that route, but not beyond the next push, so that nothing lingers with a client that never
//!   unsubscribes.

use super::plan;
use super::subscription::Batch;
use super::{Action, Protocol, Stream};
use crate::xds::{Resource, ResourceSet, TypeUrl};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Clusters that are gone but that the client still has on purpose.
#[derive(Debug, Default)]
pub(super) struct Departing {
    clusters: BTreeMap<Arc<str>, Resource>,
}

impl Departing {
    pub(super) fn contains(&self, name: &str) -> bool {
        self.clusters.contains_key(name)
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.clusters.values()
    }
}

impl Stream {
    /// The clusters that the client has and that are gone.
    pub(super) fn gone_clusters(&self) -> BTreeSet<Arc<str>> {
        let Some(clusters) = self.subscriptions.get(&TypeUrl::Cluster) else {
            return BTreeSet::new();
        };
        clusters.books.gone_but_held().cloned().collect()
    }

    /// At the start of a push: decides which of the clusters that are `gone` the client may keep
    /// for now. Those that it kept through the last push already are not among them.
    pub(super) fn hold_back(&mut self, gone: &BTreeSet<Arc<str>>, before: &ResourceSet) {
        let kept = std::mem::take(&mut self.departing);
        if gone.is_empty() || !(self.routing_changes() || self.route_in_transit()) {
            return;
        }
        self.departing.clusters = gone
            .iter()
            .filter(|name| !kept.contains(name))
            .filter_map(|name| before.get(TypeUrl::Cluster, name))
            .map(|resource| (resource.name.clone(), resource.clone()))
            .collect();
    }

    /// Takes the departing clusters from the client, unless a route still needs them.
    pub(super) fn release_departed(&mut self, actions: &mut Vec<Action>) {
        if self.departing.clusters.is_empty() || self.route_in_transit() {
            return;
        }
        let departed = std::mem::take(&mut self.departing);
        match self.protocol {
            Protocol::StateOfTheWorld => {
                // What was refused together with a departed cluster was not sent again before, and
                // may be accepted only now.
                let changed = self.send_complete(TypeUrl::Cluster, actions);
                self.follow_with_endpoints(&changed, actions);
            }
            Protocol::Delta => {
                let version = self.subscription(TypeUrl::Cluster).books.version();
                let removed = departed.clusters.into_keys().collect();
                let batch = Batch { removed, ..Batch::default() };
                self.respond(TypeUrl::Cluster, version, batch, actions);
            }
        }
    }

    fn routing_changes(&self) -> bool {
        [TypeUrl::Listener, TypeUrl::Route]
            .iter()
            .filter_map(|type_url| self.subscriptions.get(type_url))
            .any(|subscription| !plan::push(subscription, |_| false).is_empty())
    }

    fn route_in_transit(&self) -> bool {
        let routes = self.subscriptions.get(&TypeUrl::Route);
        routes.is_some_and(|routes| routes.books.gone_but_held().next().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Client, NOTHING};

    const BEFORE: &str = "cds old=1; lds l=1; rds r=1";
    const MOVED: &str = "cds new=1; lds l=1; rds r=2";

    fn sotw(world: &str, routes: &str) -> Client {
        let mut client = Client::sotw(world);
        for (kind, names) in [("cds", ""), ("lds", ""), ("rds", routes)] {
            client.ask(kind, names);
        }
        client
    }

    fn delta(world: &str, routes: &str) -> Client {
        let mut client = Client::delta(world);
        for (kind, names) in [("cds", ""), ("lds", ""), ("rds", routes)] {
            client.change(kind, names);
        }
        client
    }

    #[test]
    fn a_cluster_goes_after_the_route_that_used_it() {
        let actions = delta(BEFORE, "+r").push(MOVED);
        assert_eq!(actions, ["cds new=1", "rds r=2", "cds -old"]);
        let actions = sotw(BEFORE, "r").push(MOVED);
        assert_eq!(actions, ["cds new=1 old=1", "rds r=2", "cds new=1"]);
    }

    #[test]
    fn a_cluster_that_nothing_else_depends_on_goes_at_once() {
        let world = "lds l=1; rds r=1";
        assert_eq!(delta(BEFORE, "+r").push(world), ["cds -old"]);
        assert_eq!(sotw(BEFORE, "r").push(world), ["cds"]);
    }

    #[test]
    fn a_cluster_stays_while_a_route_that_is_gone_is_still_in_use() {
        let replaced = "cds new=1; lds l=2; rds r2=1";
        let mut client = delta(BEFORE, "+r");
        assert_eq!(client.push(replaced), ["cds new=1", "lds l=2"]);
        assert_eq!(client.change("rds", "+r2"), ["rds r2=1"]);
        assert_eq!(client.change("rds", "-r"), ["cds -old"]);
        assert_eq!(client.push(replaced), NOTHING);

        let mut client = sotw(BEFORE, "r");
        assert_eq!(client.push(replaced), ["cds new=1 old=1", "lds l=2"]);
        assert_eq!(client.ask("rds", "r r2"), ["rds r2=1"]);
        assert_eq!(client.ask("rds", "r2"), ["cds new=1"]);
    }

    #[test]
    fn a_cluster_does_not_stay_beyond_the_next_push() {
        let mut client = delta(BEFORE, "+r");
        client.push("cds new=1; lds l=2; rds r2=1");
        assert_eq!(client.push("cds new=2; lds l=2; rds r2=1"), ["cds new=2 -old"]);
        let mut client = sotw(BEFORE, "r");
        client.push("cds new=1; lds l=2; rds r2=1");
        assert_eq!(client.push("cds new=1; lds l=2; rds r2=1"), ["cds new=1"]);
    }

    #[test]
    fn a_cluster_that_comes_back_while_it_departs_stays() {
        let mut client = delta(BEFORE, "+r");
        client.push("cds new=1; lds l=2; rds r2=1");
        assert_eq!(client.push("cds new=1 old=1; lds l=2; rds r2=1"), NOTHING);
        assert_eq!(client.change("rds", "-r"), NOTHING);
    }

    #[test]
    fn an_answer_about_clusters_still_holds_the_departing_ones() {
        let mut client = sotw(BEFORE, "r");
        client.push("cds new=1; lds l=2; rds r2=1");
        assert_eq!(client.ask_with("cds", "", ""), ["cds new=1 old=1"]);
    }

    #[test]
    fn a_stand_in_for_a_route_is_not_a_route_in_use() {
        let mut client = delta(BEFORE, "+r +never");
        assert_eq!(client.push(MOVED), ["cds new=1", "rds r=2", "cds -old"]);
    }

    #[test]
    fn a_cluster_refused_beside_a_departing_one_gets_its_endpoints_when_that_is_gone() {
        for bad in ["bad", "worse"] {
            let mut client = Client::sotw(&format!("cds {bad}=1 good=1; eds good=1; lds l=1"));
            client.ask("cds", "");
            client.nack("cds", "");
            client.ask("eds", "good");
            client.ask("lds", "");
            let actions = client.push("cds good=1; eds good=1; lds l=2");
            assert_eq!(actions, ["lds l=2", "cds good=1", "eds good=1"], "{bad}");
        }
    }
}
