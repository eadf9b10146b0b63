//! Delta: requests change the list of names, and a response holds differences.

use super::plan;
use super::{Action, Stream};
use crate::xds::TypeUrl;
use std::sync::Arc;

impl Stream {
    /// The first request of a type on this stream. `versions` is what the client kept from an
    /// earlier one.
    pub(super) fn begin_delta(
        &mut self,
        type_url: TypeUrl,
        subscribe: &[Arc<str>],
        unsubscribe: &[Arc<str>],
        versions: Vec<(Arc<str>, String)>,
        actions: &mut Vec<Action>,
    ) {
        // Whatever is named is sent, even if the client says that it has it: it may have dropped
        // it since, and a cluster that warms waits for its endpoints. Only the wildcard lets us
        // skip what the client has. What it has and what is gone is treated as in a push: of a
        // route, which draining connections may still need, nothing is said.
        self.subscription(type_url).begin(subscribe, unsubscribe, versions);
        self.answer_all(type_url, actions);
    }

    /// A later request of a type.
    pub(super) fn change_delta(
        &mut self,
        type_url: TypeUrl,
        subscribe: &[Arc<str>],
        unsubscribe: &[Arc<str>],
        actions: &mut Vec<Action>,
    ) {
        let subscription = self.subscription(type_url);
        let named = |name: &&Arc<str>| subscription.books.names_it(name);
        let dropped: Vec<&Arc<str>> = unsubscribe.iter().filter(named).collect();
        subscription.change(subscribe, unsubscribe);
        let books = &mut subscription.books;
        let asked = subscribe.iter().filter(|name| books.names_it(name));
        // A client that unsubscribes a name drops it, even if the wildcard covers it, so it has to
        // be told again.
        let dropped = dropped.into_iter().filter(|name| books.wants(name));
        let mut names: Vec<Arc<str>> = asked.chain(dropped).cloned().collect();
        names.sort();
        names.dedup();
        for name in &names {
            books.forget(name);
        }
        if subscription.wildcard_unanswered() {
            self.answer_all(type_url, actions);
            return;
        }
        let batch = plan::answer(subscription, &names);
        let version = subscription.books.version();
        let changed: Vec<Arc<str>> = batch.resources.iter().map(|r| r.name.clone()).collect();
        self.send_differences(type_url, version, batch, actions);
        if type_url == TypeUrl::Cluster {
            self.follow_with_endpoints(&changed, actions);
        }
    }

    /// Sends everything that the client should have and does not. If it asked for all of them it
    /// gets a response even if that is empty: Envoy waits for the first one before it goes on.
    fn answer_all(&mut self, type_url: TypeUrl, actions: &mut Vec<Action>) {
        let subscription = self.subscription(type_url);
        let plan = plan::push(subscription, |_| false);
        let version = subscription.books.version();
        let mut batches: Vec<_> = plan.into_batches().collect();
        if batches.is_empty() && subscription.wildcard_unanswered() {
            batches.push(super::Batch::default());
        }
        let mut changed = Vec::new();
        for batch in batches {
            if type_url == TypeUrl::Cluster {
                changed.extend(batch.resources.iter().map(|r| r.name.clone()));
            }
            self.respond(type_url, version, batch, actions);
        }
        if type_url == TypeUrl::Cluster {
            self.follow_with_endpoints(&changed, actions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Client, NOTHING};

    const WORLD: &str = "cds a=1 b=1; eds a=1 b=1; lds l=1; rds r=1; sds k=1";

    #[test]
    fn an_empty_first_request_gets_all_clusters_and_listeners_but_no_endpoints() {
        let mut client = Client::delta(WORLD);
        assert_eq!(client.change("cds", ""), ["cds a=1 b=1"]);
        assert_eq!(client.change("lds", ""), ["lds l=1"]);
        for kind in ["eds", "rds", "sds"] {
            assert_eq!(client.change(kind, ""), NOTHING, "{kind}");
        }
        assert_eq!(client.change("eds", "+a"), ["eds a=1"]);
    }

    #[test]
    fn an_empty_world_is_an_answer() {
        let mut client = Client::delta("");
        assert_eq!(client.change("cds", ""), ["cds"]);
        assert_eq!(client.ack("cds"), NOTHING);
        assert!(client.in_sync("cds"));
    }

    #[test]
    fn a_push_holds_differences_and_says_removal_once() {
        let mut client = Client::delta("cds a=1 b=1 c=1");
        client.change("cds", "");
        assert_eq!(client.push("cds a=1 b=2 d=1"), ["cds b=2 d=1 -c"]);
        assert_eq!(client.push("cds a=1 b=2 d=1"), NOTHING);
        assert_eq!(client.push("cds a=1 b=2"), ["cds -d"]);
        assert_eq!(client.push("cds a=1 b=2 d=1"), ["cds d=1"]);
    }

    #[test]
    fn a_name_joins_the_wildcard_and_outlives_it() {
        let mut client = Client::delta("cds a=1 b=1");
        client.change("cds", "");
        assert_eq!(client.change("cds", "+a"), ["cds a=1"]);
        assert_eq!(client.push("cds a=1 b=2"), ["cds b=2"]);
        assert_eq!(client.change("cds", "-*"), NOTHING);
        assert_eq!(client.push("cds a=1 b=3"), NOTHING);
        assert_eq!(client.push("cds a=2 b=3"), ["cds a=2"]);
        assert_eq!(client.change("cds", "-a"), NOTHING);
        assert_eq!(client.push("cds a=3 b=3"), NOTHING);
        assert_eq!(client.change("cds", "+*"), ["cds a=3 b=3"]);
    }

    #[test]
    fn a_name_dropped_under_the_wildcard_is_told_again() {
        let mut client = Client::delta("cds a=1");
        assert_eq!(client.change("cds", "+* +a +missing"), ["cds a=1 -missing"]);
        assert_eq!(client.change("cds", "-a"), ["cds a=1"]);
        assert_eq!(client.change("cds", "-missing"), ["cds -missing"]);
        assert_eq!(client.change("cds", "-never"), NOTHING);
    }

    #[test]
    fn nothing_yet_is_a_subscription() {
        let mut client = Client::delta("cds a=1");
        assert_eq!(client.change("cds", "+* -*"), NOTHING);
        assert_eq!(client.push("cds a=2"), NOTHING);
        assert_eq!(client.change("cds", "+a"), ["cds a=2"]);
    }

    #[test]
    fn subscribing_again_sends_again() {
        let mut client = Client::delta(WORLD);
        client.change("eds", "+a");
        client.ack("eds");
        assert_eq!(client.change("eds", "+a"), ["eds a=1"]);
        assert_eq!(client.change("eds", "+a -a"), NOTHING);
        assert_eq!(client.push("eds a=2"), NOTHING);
    }

    #[test]
    fn unsubscribing_is_silent_even_for_names_nobody_knows() {
        let mut client = Client::delta(WORLD);
        client.change("eds", "+a +b");
        client.ack("eds");
        assert_eq!(client.change("eds", "-a -zzz"), NOTHING);
        assert!(client.in_sync("eds"));
        assert_eq!(client.push("cds a=1 b=1; eds a=2 b=1"), NOTHING);
        assert_eq!(client.change("eds", "+a"), ["eds a=2"]);
    }

    #[test]
    fn subscriptions_count_whatever_the_nonce() {
        let mut client = Client::delta(WORLD);
        client.change("eds", "+a");
        assert_eq!(client.change_with("eds", "garbage", None, "+b"), ["eds b=1"]);
        assert_eq!(client.change_with("eds", "999", None, "-a"), NOTHING);
        assert_eq!(client.push("eds a=2 b=1"), NOTHING);
        assert!(!client.in_sync("eds"));
    }

    #[test]
    fn older_responses_are_acknowledged_in_their_turn() {
        let mut client = Client::delta(WORLD);
        client.change("eds", "+a");
        let first = client.nonce("eds");
        client.change("eds", "+b");
        client.change_with("eds", &first, None, "");
        assert_eq!(client.status("eds").acked.map(|told| told.nonce), Some(first));
        client.ack("eds");
        assert!(client.in_sync("eds"));
    }

    #[test]
    fn names_that_do_not_exist_get_the_answer_that_envoy_understands() {
        let mut client = Client::delta("");
        assert_eq!(client.change("cds", "+x"), ["cds -x"]);
        assert_eq!(client.change("eds", "+x"), ["eds x=()"]);
        assert_eq!(client.change("lds", "+x"), ["lds -x"]);
        assert_eq!(client.change("rds", "+x"), ["rds x=()"]);
        assert_eq!(client.change("sds", "+x"), ["sds -x"]);
        assert_eq!(client.push("sds other=1"), NOTHING);
        assert_eq!(
            client.push("cds x=1; eds x=1; lds x=1; rds x=1; sds x=1"),
            ["cds x=1", "eds x=1", "lds x=1", "rds x=1", "sds x=1"]
        );
    }

    #[test]
    fn on_reconnecting_the_wildcard_skips_what_the_client_has_and_removes_what_is_gone() {
        let mut client = Client::delta("cds a=1 b=2 c=1");
        let actions = client.change("cds", "a@1 b@1 gone@1 c@");
        assert_eq!(actions, ["cds b=2 c=1 -gone"]);
        assert_eq!(client.push("cds a=2 b=2 c=1"), ["cds a=2"]);
    }

    #[test]
    fn on_reconnecting_unchanged_everything_the_answer_is_empty() {
        let mut client = Client::delta("lds l=1");
        assert_eq!(client.change("lds", "l@1"), ["lds"]);
    }

    #[test]
    fn on_reconnecting_what_is_named_is_sent_even_if_the_client_has_it() {
        let mut client = Client::delta(WORLD);
        assert_eq!(client.change("cds", "+a a@1 gone@1"), ["cds a=1"]);
        assert_eq!(client.change("eds", "+a +b a@1 b@1"), ["eds a=1 b=1"]);
        assert_eq!(client.change("rds", "+r r@1"), ["rds r=1"]);
        assert_eq!(client.change("sds", "+k k@1"), ["sds k=1"]);
    }

    #[test]
    fn on_reconnecting_named_clusters_that_are_gone_are_removed() {
        let mut client = Client::delta("cds a=1");
        assert_eq!(client.change("cds", "+a +gone gone@1"), ["cds a=1 -gone"]);
    }

    #[test]
    fn on_reconnecting_a_route_that_is_gone_is_left_to_its_draining_connections() {
        let mut client = Client::delta("rds r=1");
        assert_eq!(client.change("rds", "+r +gone r@1 gone@1"), ["rds r=1"]);
    }

    #[test]
    fn versions_on_a_later_request_are_ignored() {
        let mut client = Client::delta("cds a=1");
        client.change("cds", "");
        assert_eq!(client.change("cds", "a@2 zzz@1"), NOTHING);
        assert_eq!(client.push("cds a=1 b=1"), ["cds b=1"]);
    }

    #[test]
    fn a_nack_is_reported_and_nothing_is_sent_again_before_a_change() {
        let mut client = Client::delta("rds r=1");
        client.change("rds", "+r");
        let nonce = client.nonce("rds");
        let report = ["report the proxy refused its routes: no"];
        assert_eq!(client.change_with("rds", &nonce, Some("no"), ""), report);
        assert_eq!(client.push("rds r=1 other=1"), NOTHING);
        assert_eq!(client.push("rds r=2"), ["rds r=2"]);
    }

    #[test]
    fn a_nack_that_subscribes_is_both() {
        let mut client = Client::delta(WORLD);
        client.change("eds", "+a");
        let nonce = client.nonce("eds");
        let actions = client.change_with("eds", &nonce, Some("no"), "+b");
        assert_eq!(actions, ["report the proxy refused its endpoints: no", "eds b=1"]);
    }

    #[test]
    fn a_refused_removal_is_repeated_with_the_next_push() {
        let mut client = Client::delta("cds a=1 b=1");
        client.change("cds", "");
        client.push("cds a=1");
        let nonce = client.nonce("cds");
        client.change_with("cds", &nonce, Some("no"), "");
        assert_eq!(client.push("cds a=2"), ["cds a=2 -b"]);
    }

    #[test]
    fn clusters_refused_together_are_told_apart_by_the_next_pushes() {
        let mut client = Client::delta("cds bad=1 good=1");
        client.change("cds", "");
        let nonce = client.nonce("cds");
        client.change_with("cds", &nonce, Some("no"), "");
        assert_eq!(client.push("cds bad=1 good=1 x=1"), ["cds x=1", "cds bad=1", "cds good=1"]);
        let refused: u64 = client.nonce("cds").parse::<u64>().unwrap() - 1;
        client.change_with("cds", &refused.to_string(), Some("no"), "");
        client.ack("cds");
        assert_eq!(client.push("cds bad=1 good=1 x=2"), ["cds x=2"]);
    }

    #[test]
    fn created_and_deleted_between_two_pushes_is_nothing() {
        let mut client = Client::delta("cds a=1");
        client.change("cds", "");
        assert_eq!(client.push("cds a=1"), NOTHING);
    }
}
