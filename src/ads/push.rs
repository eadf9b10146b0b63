//! A push: everything that changed, in dependency order, and only that.

use super::plan;
use super::subscription::Batch;
use super::{Action, Protocol, Stream};
use crate::xds::{ResourceSet, TypeUrl, Version};
use std::sync::Arc;

impl Stream {
    /// Sends what the client does not have yet, type by type. `before` is the set of the last
    /// event: where the bytes of clusters that just went can be found.
    pub(super) fn push(&mut self, before: &ResourceSet, actions: &mut Vec<Action>) {
        let gone = self.gone_clusters();
        let new = self.new_clusters();
        self.hold_back(&gone, before);
        for type_url in TypeUrl::ALL {
            match (type_url, self.protocol) {
                (TypeUrl::Cluster, protocol) => {
                    let changed = match protocol {
                        Protocol::StateOfTheWorld => self.push_complete(type_url, actions),
                        Protocol::Delta => self.push_differences(type_url, actions),
                    };
                    self.expect_endpoints_again(&changed);
                }
                (TypeUrl::Endpoint, _) => {
                    self.push_endpoints(&new, |name| gone.contains(name), actions);
                }
                (TypeUrl::Listener, Protocol::StateOfTheWorld) => {
                    self.push_complete(type_url, actions);
                }
                (TypeUrl::Listener, Protocol::Delta) | (TypeUrl::Route | TypeUrl::Secret, _) => {
                    self.push_differences(type_url, actions);
                }
            }
        }
        self.release_departed(actions);
    }

    /// The clusters that the client is about to hear of for the first time.
    fn new_clusters(&self) -> Vec<Arc<str>> {
        let Some(clusters) = self.subscriptions.get(&TypeUrl::Cluster) else { return Vec::new() };
        let unknown = clusters.books.unsettled().filter(|(_, held)| held.is_none());
        unknown.map(|(resource, _)| resource.name.clone()).collect()
    }

    /// Sends everything of a type if anything of it changed. Returns the names that did.
    fn push_complete(&mut self, type_url: TypeUrl, actions: &mut Vec<Action>) -> Vec<Arc<str>> {
        let Some(subscription) = self.subscriptions.get(&type_url) else { return Vec::new() };
        let plan = plan::push(subscription, self.held_back(type_url));
        // What was refused in company cannot be sent apart here: a response without the others
        // would delete them. It is sent again in other company.
        if plan.is_empty() || (plan.batch.is_empty() && self.is_repetition(subscription)) {
            return Vec::new();
        }
        self.send_complete(type_url, actions)
    }

    /// Sends what changed of a type. Returns the names of it that exist.
    fn push_differences(&mut self, type_url: TypeUrl, actions: &mut Vec<Action>) -> Vec<Arc<str>> {
        let Some(subscription) = self.subscriptions.get(&type_url) else { return Vec::new() };
        let plan = plan::push(subscription, self.held_back(type_url));
        let version = subscription.books.version();
        let mut changed = Vec::new();
        for batch in plan.into_batches() {
            changed.extend(batch.resources.iter().map(|r| r.name.clone()));
            self.send_differences(type_url, version, batch, actions);
        }
        changed
    }

    /// Sends endpoints that changed or that changed clusters wait for. Those of `new_clusters` go
    /// ahead of the client's question for them: the rest of the push may route to the clusters,
    /// and they would still be warming when the first requests arrive.
    fn push_endpoints(
        &mut self,
        new_clusters: &[Arc<str>],
        leaving: impl Fn(&str) -> bool,
        actions: &mut Vec<Action>,
    ) {
        let Some(endpoints) = self.subscriptions.get(&TypeUrl::Endpoint) else { return };
        let books = &endpoints.books;
        if books.n_names() == 0 {
            return;
        }
        let mut plan = plan::push(endpoints, leaving);
        let ahead = new_clusters.iter().filter(|name| !books.wants(name));
        plan.batch.ahead = ahead.filter_map(|name| books.map().get(name)).cloned().collect();
        let version = books.version();
        for batch in plan.into_batches() {
            self.send_differences(TypeUrl::Endpoint, version, batch, actions);
        }
    }

    fn held_back(&self, type_url: TypeUrl) -> impl Fn(&str) -> bool {
        move |name| type_url == TypeUrl::Cluster && self.departing.contains(name)
    }

    /// Books that the endpoints of these clusters have to be sent again although the client has
    /// them: Envoy keeps a new or changed cluster warming until it hears about its endpoints
    /// after it heard about the cluster. In state of the world it asks, in a way that looks like
    /// an ACK; in delta it does not ask at all.
    fn expect_endpoints_again(&mut self, changed_clusters: &[Arc<str>]) {
        if let Some(endpoints) = self.subscriptions.get_mut(&TypeUrl::Endpoint) {
            for name in changed_clusters {
                endpoints.books.forget(name);
            }
        }
    }

    /// After an answer about clusters: sends their endpoints again, as far as the client has asked
    /// for them already. It will ask for the others by itself.
    pub(super) fn follow_with_endpoints(
        &mut self,
        changed_clusters: &[Arc<str>],
        actions: &mut Vec<Action>,
    ) {
        self.expect_endpoints_again(changed_clusters);
        let Some(endpoints) = self.subscriptions.get(&TypeUrl::Endpoint) else { return };
        let again = changed_clusters.iter().filter(|name| endpoints.books.wants(name));
        let batch = plan::answer(endpoints, again);
        let version = endpoints.books.version();
        self.send_differences(TypeUrl::Endpoint, version, batch, actions);
    }

    /// Sends a response of some resources of a type, unless there is nothing in it. State of the
    /// world has no words for removal.
    pub(super) fn send_differences(
        &mut self,
        type_url: TypeUrl,
        version: Version,
        mut batch: Batch,
        actions: &mut Vec<Action>,
    ) {
        match self.protocol {
            Protocol::StateOfTheWorld => batch.removed.clear(),
            Protocol::Delta => {}
        }
        if !batch.is_empty() {
            self.respond(type_url, version, batch, actions);
        }
    }

    /// Sends again what was refused for a reason outside of its content, if it still stands
    /// refused.
    pub(super) fn retry(
        &mut self,
        type_url: TypeUrl,
        before: &ResourceSet,
        actions: &mut Vec<Action>,
    ) {
        let Some(subscription) = self.subscriptions.get_mut(&type_url) else { return };
        for name in subscription.books.refused() {
            subscription.books.forget(&name);
        }
        self.push(before, actions);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Client, NOTHING};

    const WORLD: &str = "cds a=1 b=1; eds a=1 b=1; lds l=1; rds r=1; sds k=1";
    const CHANGED: &str = "cds a=2 b=1; eds a=2 b=1; lds l=2; rds r=2; sds k=2";

    /// A client that has all of `WORLD`, in each variant.
    fn clients() -> [(&'static str, Client); 2] {
        let mut sotw = Client::sotw(WORLD);
        for (kind, names) in [("cds", ""), ("eds", "a b"), ("lds", ""), ("rds", "r"), ("sds", "k")]
        {
            sotw.ask(kind, names);
        }
        let mut delta = Client::delta(WORLD);
        for (kind, names) in
            [("cds", ""), ("eds", "+a +b"), ("lds", ""), ("rds", "+r"), ("sds", "+k")]
        {
            delta.change(kind, names);
        }
        [("sotw", sotw), ("delta", delta)]
    }

    #[test]
    fn a_push_goes_out_in_dependency_order() {
        for (name, mut client) in clients() {
            let clusters = if name == "sotw" { "cds a=2 b=1" } else { "cds a=2" };
            let expected = [clusters, "eds a=2", "lds l=2", "rds r=2", "sds k=2"];
            assert_eq!(client.push(CHANGED), expected, "{name}");
            assert_eq!(client.push(CHANGED), NOTHING, "{name}");
        }
    }

    #[test]
    fn types_that_were_not_asked_for_are_not_sent() {
        let mut client = Client::delta(WORLD);
        client.change("lds", "");
        assert_eq!(client.push(CHANGED), ["lds l=2"]);
    }

    #[test]
    fn endpoints_of_a_changed_cluster_are_sent_again() {
        for (name, mut client) in clients() {
            let actions = client.push("cds a=2 b=1; eds a=1 b=1; lds l=1; rds r=1; sds k=1");
            assert_eq!(actions[1..], ["eds a=1"], "{name}");
        }
    }

    #[test]
    fn endpoints_of_a_new_cluster_go_ahead_of_the_question_and_answer_it_too() {
        for (name, mut client) in clients() {
            let actions =
                client.push("cds a=1 b=1 n=1; eds a=1 b=1 n=1; lds l=1; rds r=2; sds k=1");
            assert_eq!(actions[1..], ["eds n=1", "rds r=2"], "{name}");
            let asked = if name == "sotw" {
                client.ask("eds", "a b n")
            } else {
                client.change("eds", "+n")
            };
            assert_eq!(asked, ["eds n=1"], "{name}");
        }
    }

    #[test]
    fn clusters_answered_after_their_endpoints_send_those_again() {
        let mut sotw = Client::sotw(WORLD);
        assert_eq!(sotw.ask("eds", "a"), ["eds a=1"]);
        assert_eq!(sotw.ask("cds", ""), ["cds a=1 b=1", "eds a=1"]);
        let mut delta = Client::delta(WORLD);
        assert_eq!(delta.change("eds", "+a"), ["eds a=1"]);
        assert_eq!(delta.change("cds", ""), ["cds a=1 b=1", "eds a=1"]);
        assert_eq!(delta.change("cds", "+a"), ["cds a=1", "eds a=1"]);
    }

    #[test]
    fn clusters_accepted_only_in_a_later_response_get_their_endpoints_after_it() {
        let mut client = Client::sotw("cds bad=1 b=1; eds b=1");
        client.ask("eds", "b");
        client.ask("cds", "");
        let first = client.nonce("cds");
        assert_eq!(client.push("cds b=1; eds b=1"), ["cds b=1"]);
        let asks = crate::ads::Asks::Names(vec![]);
        let actions = client.request("cds", &first, Some("bad"), asks);
        assert_eq!(actions, ["report the proxy refused its clusters: bad", "eds b=1"]);
    }

    #[test]
    fn clusters_that_a_reconnecting_client_has_do_not_disturb_its_endpoints() {
        let mut delta = Client::delta(WORLD);
        delta.change("eds", "+a +b");
        assert_eq!(delta.change("cds", "a@1 b@9"), ["cds b=1", "eds b=1"]);
    }

    #[test]
    fn endpoints_that_vanish_from_a_cluster_that_stays_become_empty() {
        for (name, mut client) in clients() {
            let world = "cds a=1 b=1; eds a=1; lds l=1; rds r=1; sds k=1";
            assert_eq!(client.push(world), ["eds b=()"], "{name}");
            assert_eq!(client.push(&world.replace("l=1", "l=2")), ["lds l=2"], "{name}");
        }
    }

    #[test]
    fn endpoints_of_a_cluster_that_goes_are_left_alone() {
        for (name, mut client) in clients() {
            let clusters = if name == "sotw" { "cds a=1" } else { "cds -b" };
            let actions = client.push("cds a=1; eds a=1; lds l=1; rds r=1; sds k=1");
            assert_eq!(actions, [clusters], "{name}");
        }
    }

    #[test]
    fn routes_and_secrets_that_vanish_are_left_alone() {
        for (name, mut client) in clients() {
            assert_eq!(client.push("cds a=1 b=1; eds a=1 b=1; lds l=1"), NOTHING, "{name}");
        }
    }

    #[test]
    fn a_listener_refused_for_its_port_is_tried_again_when_told_to() {
        let busy = "cannot bind '127.0.0.1:80': Address already in use";
        for (name, mut client) in clients() {
            let nonce = client.nonce("lds");
            let asks = match name {
                "sotw" => crate::ads::Asks::Names(vec![]),
                _ => crate::ads::Asks::Changes {
                    subscribe: vec![],
                    unsubscribe: vec![],
                    versions: vec![],
                },
            };
            let actions = client.request("lds", &nonce, Some(busy), asks);
            assert_eq!(actions[0], "retry lds", "{name}");
            assert_eq!(client.retry("lds"), ["lds l=1"], "{name}");
            assert_eq!(client.retry("lds"), NOTHING, "{name}: the second answer is not here yet");
        }
    }

    #[test]
    fn a_stream_survives_types_that_nobody_serves_but_not_any_number_of_them() {
        let asks = || crate::ads::Asks::Names(vec!["x".into()]);
        let mut client = Client::sotw(WORLD);
        for i in 0..64 {
            assert_eq!(client.request(&format!("foo.Bar{i}"), "", None, asks()), NOTHING);
        }
        assert_eq!(client.request("foo.Bar0", "1", Some("no"), asks()), NOTHING);
        assert_eq!(client.ask("cds", ""), ["cds a=1 b=1"]);
        let actions = client.request("foo.Bar64", "", None, asks());
        assert_eq!(actions, ["close more than 64 unknown resource types"]);
    }

    #[test]
    fn a_request_without_a_type_ends_the_stream() {
        let asks = crate::ads::Asks::Names(vec![]);
        assert_eq!(Client::sotw(WORLD).request("", "", None, asks), ["close type_url is missing"]);
    }
}
