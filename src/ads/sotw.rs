//! State of the world: requests list all names, and a response of clusters or listeners holds all
//! of them, because what it omits is deleted.

use super::held::Held;
use super::plan;
use super::subscription::{Batch, Standing, Subscription};
use super::{Action, Stream};
use crate::xds::{Digest, Resource, TypeUrl, Version};
use std::sync::Arc;

impl Stream {
    /// Takes in a list of names and answers it.
    pub(super) fn ask_for_state(
        &mut self,
        type_url: TypeUrl,
        standing: Standing,
        names: &[Arc<str>],
        actions: &mut Vec<Action>,
    ) {
        let subscription = self.subscription(type_url);
        subscription.replace(names);
        match standing {
            Standing::First => subscription.restart(),
            Standing::Current => {}
            // Not answered: the response that the client has not seen yet may hold what it asks
            // for. The names count from now on, and the request that follows that response gets
            // what is then still unanswered.
            Standing::Stale => return,
        }
        let unanswered = subscription.books.unanswered();
        if type_url.supports_wildcard() {
            if subscription.wildcard_unanswered() || !unanswered.is_empty() {
                let changed = self.send_complete(type_url, actions);
                if type_url == TypeUrl::Cluster {
                    self.follow_with_endpoints(&changed, actions);
                }
            }
        } else {
            let batch = plan::answer(subscription, &unanswered);
            let version = subscription.books.version();
            self.send_differences(type_url, version, batch, actions);
        }
    }

    /// Sends everything of a type that the client asked for, even if that is nothing: Envoy waits
    /// for the answer. Returns the names that it did not have in this version.
    pub(super) fn send_complete(
        &mut self,
        type_url: TypeUrl,
        actions: &mut Vec<Action>,
    ) -> Vec<Arc<str>> {
        let Some(subscription) = self.subscriptions.get(&type_url) else { return Vec::new() };
        let books = &subscription.books;
        let kept = self.kept(subscription);
        let news = |resource: &Resource, held| held != Some(Held::Version(resource.version));
        let mut changed: Vec<Arc<str>> = books
            .unsettled()
            .filter(|(resource, held)| news(resource, *held))
            .map(|(resource, _)| resource.name.clone())
            .collect();
        let kept_anew = kept.iter().filter(|r| news(r, books.held(&r.name)));
        changed.extend(kept_anew.map(|r| r.name.clone()));
        let version = complete_version(subscription, &kept);
        let names: Vec<Arc<str>> = kept.iter().map(|r| r.name.clone()).collect();
        let resources = books.wanted().cloned().collect();
        let batch = Batch { resources, departing: kept, ..Batch::default() };
        self.respond(type_url, version, batch, actions);
        let books = &mut self.subscription(type_url).books;
        books.omitted_absent(|name| names.iter().any(|kept| &**kept == name));
        changed
    }

    /// Whether the last response held exactly what a complete one would hold now.
    pub(super) fn is_repetition(&self, subscription: &Subscription) -> bool {
        let version = complete_version(subscription, &self.kept(subscription));
        subscription.sent.is_some_and(|sent| sent.version == version)
    }

    /// What exists no more but that the client may still have.
    fn kept(&self, subscription: &Subscription) -> Vec<Resource> {
        match subscription.type_url {
            TypeUrl::Cluster => {
                let books = &subscription.books;
                let departing = self.departing.resources();
                let kept =
                    departing.filter(|r| books.wants(&r.name) && !books.map().contains(&r.name));
                kept.cloned().collect()
            }
            TypeUrl::Endpoint | TypeUrl::Listener | TypeUrl::Route | TypeUrl::Secret => Vec::new(),
        }
    }
}

/// The version of a complete response, with what is `kept` in it.
fn complete_version(subscription: &Subscription, kept: &[Resource]) -> Version {
    let kept: Digest = kept.iter().map(Resource::digest).sum();
    (subscription.books.digest() + kept).into()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Client, NOTHING};
    use std::collections::BTreeSet;

    const WORLD: &str = "cds a=1 b=1; eds a=1 b=1; lds l=1; rds r=1; sds k=1";

    #[test]
    fn an_empty_list_gets_all_clusters_and_listeners_but_no_endpoints() {
        let mut client = Client::sotw(WORLD);
        assert_eq!(client.ask("cds", ""), ["cds a=1 b=1"]);
        assert_eq!(client.ask("lds", ""), ["lds l=1"]);
        for kind in ["eds", "rds", "sds"] {
            assert_eq!(client.ask(kind, ""), NOTHING, "{kind}");
        }
        assert_eq!(client.ask("eds", "a"), ["eds a=1"]);
    }

    #[test]
    fn an_empty_world_is_an_answer() {
        let mut client = Client::sotw("");
        assert_eq!(client.ask("cds", ""), ["cds"]);
        assert_eq!(client.ask("lds", ""), ["lds"]);
        assert_eq!(client.ask("lds", ""), NOTHING);
    }

    #[test]
    fn an_ack_is_silent_in_any_order_of_names() {
        let mut client = Client::sotw(WORLD);
        client.ask("eds", "a b");
        assert_eq!(client.ask("eds", "b a"), NOTHING);
        assert!(client.in_sync("eds"));
        assert_eq!(client.ask("eds", "a b b"), NOTHING);
    }

    #[test]
    fn an_added_name_is_answered_and_a_removed_one_is_not() {
        let mut client = Client::sotw(WORLD);
        client.ask("eds", "a");
        assert_eq!(client.ask("eds", "a b"), ["eds b=1"]);
        assert_eq!(client.ask("eds", "a"), NOTHING);
        assert_eq!(client.push("cds a=1 b=1; eds a=1 b=2"), NOTHING);
        assert_eq!(client.ask("eds", "a b"), ["eds b=2"]);
        assert_eq!(client.ask("eds", ""), NOTHING);
        assert_eq!(client.ask("eds", "b"), ["eds b=2"]);
    }

    #[test]
    fn named_clusters_are_always_sent_together() {
        let mut client = Client::sotw("cds a=1 b=1 c=1");
        assert_eq!(client.ask("cds", "a"), ["cds a=1"]);
        assert_eq!(client.ask("cds", "a b"), ["cds a=1 b=1"]);
        assert_eq!(client.ask("cds", "b"), NOTHING);
        assert_eq!(client.push("cds a=2 b=1 c=2"), NOTHING);
        assert_eq!(client.push("cds a=2 b=2 c=2"), ["cds b=2"]);
    }

    #[test]
    fn once_named_an_empty_list_asks_for_nothing() {
        let mut client = Client::sotw("cds a=1 b=1");
        client.ask("cds", "a");
        assert_eq!(client.ask("cds", ""), NOTHING);
        assert_eq!(client.push("cds a=2 b=2 d=1"), NOTHING);
        assert_eq!(client.ask("cds", "b"), ["cds b=2"]);
        assert_eq!(client.ask("cds", "*"), ["cds a=2 b=2 d=1"]);
        assert_eq!(client.ask("cds", "* b"), NOTHING);
    }

    #[test]
    fn a_wildcard_for_endpoints_asks_for_nothing() {
        let mut client = Client::sotw(WORLD);
        assert_eq!(client.ask("eds", "*"), NOTHING);
        assert_eq!(client.push("eds a=2"), NOTHING);
    }

    #[test]
    fn a_missing_cluster_is_answered_by_omission_once() {
        let mut client = Client::sotw("cds a=1");
        assert_eq!(client.ask("cds", "later"), ["cds"]);
        assert_eq!(client.ask("cds", "later"), NOTHING);
        assert_eq!(client.push("cds a=2"), NOTHING);
        assert_eq!(client.push("cds a=2 later=1"), ["cds later=1"]);
        assert_eq!(client.push("cds a=2"), ["cds"]);
    }

    #[test]
    fn missing_routes_and_endpoints_are_answered_empty_and_missing_secrets_not() {
        let mut client = Client::sotw("eds a=1; sds k=1");
        assert_eq!(client.ask("eds", "a x"), ["eds a=1 x=()"]);
        assert_eq!(client.ask("rds", "x"), ["rds x=()"]);
        assert_eq!(client.ask("sds", "k x"), ["sds k=1"]);
        assert_eq!(client.ask("sds", "k x"), NOTHING);
        assert_eq!(
            client.push("eds a=1 x=1; rds x=1; sds k=1 x=1"),
            ["eds x=1", "rds x=1", "sds x=1"]
        );
    }

    #[test]
    fn a_stale_request_is_not_answered_but_its_names_count() {
        let mut client = Client::sotw(WORLD);
        client.ask("eds", "a");
        let old = client.nonce("eds");
        client.push("cds a=1 b=1; eds a=2 b=1");
        assert_eq!(client.ask_with("eds", &old, "a b"), NOTHING);
        assert_eq!(client.ask("eds", "a b"), ["eds b=1"]);
    }

    #[test]
    fn a_name_that_was_dropped_in_a_stale_request_is_sent_when_it_comes_back() {
        let mut client = Client::sotw(WORLD);
        client.ask("eds", "a b");
        assert_eq!(client.ask_with("eds", "999", "b"), NOTHING);
        assert_eq!(client.ask("eds", "a b"), ["eds a=1"]);
    }

    #[test]
    fn a_push_also_answers_what_a_stale_request_asked_for() {
        let mut client = Client::sotw(WORLD);
        client.ask("eds", "a");
        client.ask_with("eds", "999", "a b");
        assert_eq!(client.push("cds a=1 b=1; eds a=1 b=2"), ["eds b=2"]);
        assert_eq!(client.ask("eds", "a b"), NOTHING);
    }

    #[test]
    fn the_first_request_of_a_stream_is_answered_whatever_its_nonce() {
        let mut client = Client::sotw(WORLD);
        assert_eq!(client.ask_with("cds", "7", ""), ["cds a=1 b=1"]);
        assert_eq!(client.ask_with("eds", "1", "a"), ["eds a=1"]);
    }

    #[test]
    fn a_request_without_nonce_starts_over() {
        let mut client = Client::sotw(WORLD);
        client.ask("eds", "a b");
        assert_eq!(client.ask_with("eds", "", "a b"), ["eds a=1 b=1"]);
        assert_eq!(client.ask_with("cds", "", ""), ["cds a=1 b=1", "eds a=1 b=1"]);
        assert_eq!(client.ask_with("cds", "", ""), ["cds a=1 b=1", "eds a=1 b=1"]);
    }

    #[test]
    fn a_nack_is_reported_and_not_answered_with_the_same_again() {
        let mut client = Client::sotw("cds a=1 b=1");
        client.ask("cds", "");
        assert_eq!(client.nack("cds", ""), ["report the proxy refused its clusters: bad"]);
        assert_eq!(client.status("cds").last_error.as_deref(), Some("bad"));
        assert!(!client.in_sync("cds"));
        assert_eq!(client.push("cds a=1 b=1"), NOTHING);
        assert_eq!(client.push("cds a=1 b=2"), ["cds a=1 b=2"]);
        assert_eq!(client.ask("cds", ""), ["accepted cds"]);
        assert_eq!(client.ask("cds", ""), NOTHING);
        assert_eq!(client.status("cds").last_error, None);
        assert!(client.in_sync("cds"));
    }

    #[test]
    fn going_back_to_what_was_accepted_before_a_nack_is_sent() {
        let mut client = Client::sotw("rds r=1");
        client.ask("rds", "r");
        client.ask("rds", "r");
        assert_eq!(client.push("rds r=bad"), ["rds r=bad"]);
        client.nack("rds", "r");
        assert_eq!(client.push("rds r=1"), ["rds r=1"]);
    }

    #[test]
    fn a_cluster_refused_beside_a_bad_one_is_sent_when_that_is_no_longer_asked_for() {
        let mut client = Client::sotw("cds bad=1 good=1");
        client.ask("cds", "bad good");
        client.nack("cds", "bad good");
        assert_eq!(client.push("cds bad=1 good=1"), NOTHING);
        client.ask("cds", "good");
        assert_eq!(client.push("cds bad=1 good=1"), ["cds good=1"]);
        assert_eq!(client.push("cds bad=1 good=1"), NOTHING);
    }

    #[test]
    fn names_added_in_a_nack_are_answered() {
        let mut client = Client::sotw(WORLD);
        client.ask("eds", "a");
        let actions = client.nack("eds", "a b");
        assert_eq!(actions, ["report the proxy refused its endpoints: bad", "eds b=1"]);
    }

    #[test]
    fn a_late_nack_does_not_stick_to_the_newer_response() {
        let mut client = Client::sotw("cds a=1");
        client.ask("cds", "");
        let first = client.nonce("cds");
        client.push("cds a=2");
        let asks = crate::ads::Asks::Names(vec![]);
        let actions = client.request("cds", &first, Some("bad"), asks);
        assert_eq!(actions, ["report the proxy refused its clusters: bad"]);
        assert_eq!(client.status("cds").last_error, None);
        assert_eq!(client.ask("cds", ""), ["accepted cds"]);
        assert!(client.in_sync("cds"));
    }

    #[test]
    fn a_nack_as_the_first_message_is_a_subscription() {
        let mut client = Client::sotw("cds a=1");
        let asks = crate::ads::Asks::Names(vec![]);
        assert_eq!(client.request("cds", "77", Some("bad"), asks), ["cds a=1"]);
    }

    #[test]
    fn of_routes_refused_together_each_is_tried_alone_with_the_next_change() {
        let mut client = Client::sotw("rds bad=1 good=1");
        client.ask("rds", "bad good later");
        client.nack("rds", "bad good later");
        assert_eq!(
            client.push("rds bad=1 good=1 later=1"),
            ["rds later=1", "rds bad=1", "rds good=1"]
        );
    }

    #[test]
    fn a_burst_of_requests_is_answered_once_each_at_most() {
        let mut client = Client::sotw(WORLD);
        assert_eq!(client.ask_with("eds", "", "a"), ["eds a=1"]);
        let first = client.nonce("eds");
        assert_eq!(client.ask_with("eds", &first, "a b"), ["eds b=1"]);
        assert_eq!(client.ask_with("eds", &first, "b"), NOTHING);
        assert_eq!(client.ask("eds", "b"), NOTHING);
        assert_eq!(client.push("eds a=2 b=2"), ["eds b=2"]);
    }

    #[test]
    fn equal_worlds_have_equal_versions_and_nonces_never_repeat() {
        let ask = |client: &mut Client| {
            client.ask("cds", "");
            client.status("cds").sent.map(|told| told.version)
        };
        assert_eq!(ask(&mut Client::sotw("cds a=1 b=1")), ask(&mut Client::sotw("cds b=1 a=1")));
        let mut client = Client::sotw(WORLD);
        let mut nonces = BTreeSet::new();
        for kind in ["cds", "lds", "cds"] {
            client.ask_with(kind, "", "");
            assert!(nonces.insert(client.nonce(kind)));
        }
    }
}
