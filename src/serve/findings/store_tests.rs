//! What the store says is new and over, what it shows, and that it stays small.

use super::*;
use crate::push::Pusher;

/// Ids of connections that ended at once; no two are equal.
fn connections<const N: usize>() -> [ConnectionId; N] {
    let pusher = Pusher::<()>::new(1);
    std::array::from_fn(|_| pusher.register().0.id())
}

fn error(message: &str) -> Diagnostic {
    Diagnostic::new(Code::InvalidValue, message)
}

fn warning(message: &str) -> Diagnostic {
    Diagnostic::new(Code::NoEffect, message)
}

/// A refusal as `ads` reports it.
fn refusal(node: &str, message: &str) -> Diagnostic {
    Diagnostic::new(Code::RejectedByProxy, message).on(format!("proxy {node}"))
}

fn new(findings: &[Diagnostic]) -> News {
    News { new: findings.to_vec(), over: Vec::new() }
}

fn over(findings: &[Diagnostic]) -> News {
    News { new: Vec::new(), over: findings.to_vec() }
}

/// The source, the severity and the number of what there is.
fn counted(store: &Store) -> Vec<(&'static str, Severity, usize)> {
    let counts = store.counts();
    assert_eq!(counts.len(), 9, "those of which there are none are counted too");
    let some = counts.into_iter().filter(|count| count.findings > 0);
    some.map(|count| (count.source.as_str(), count.severity, count.findings)).collect()
}

#[test]
fn findings_about_documents_are_new_once_and_only_errors_are_said_to_be_over() {
    let mut store = Store::default();
    let both = [error("e"), warning("w")];
    assert_eq!(store.documents(both.to_vec()), new(&both));
    assert_eq!(store.documents(both.to_vec()), News::default());
    assert_eq!(*store.all().documents, both);
    assert_eq!(
        store.documents(vec![warning("x")]),
        News { new: vec![warning("x")], over: vec![error("e")] }
    );
}

#[test]
fn what_is_said_about_several_proxies_is_new_with_the_first_and_over_with_the_last() {
    let mut store = Store::default();
    let [a, b] = connections();
    assert_eq!(store.generated(a, "a", &[error("e")]), new(&[error("e")]));
    assert_eq!(store.generated(b, "b", &[error("e")]), News::default());
    assert_eq!(store.generated(a, "a", &[]), News::default());
    assert_eq!(store.generated(b, "b", &[]), over(&[error("e")]));
    assert_eq!(store.all(), Findings::default());
}

#[test]
fn what_stays_when_something_is_added_is_neither_new_nor_over() {
    let mut store = Store::default();
    let [a] = connections();
    store.generated(a, "a", &[error("e")]);
    let both = [error("e"), warning("w")];
    assert_eq!(store.generated(a, "a", &both), new(&[warning("w")]));
    assert_eq!(store.generated(a, "a", &[warning("w")]), over(&[error("e")]));
}

#[test]
fn proxies_of_which_the_same_is_said_share_it() {
    let mut store = Store::default();
    let [a, b, c] = connections();
    for (connection, node) in [(a, "a"), (b, "b")] {
        store.generated(connection, node, &[error("e"), warning("w")]);
    }
    store.generated(c, "c", &[warning("w")]);
    let all = store.all();
    let shown: Vec<Vec<&str>> =
        all.proxies.iter().map(|p| p.proxies.iter().map(String::as_str).collect()).collect();
    assert_eq!(shown, [vec!["a", "b"], vec!["c"]]);
    assert!(Arc::ptr_eq(&store.proxies[&a].list, &store.proxies[&b].list));
    let expected = [("proxies", Severity::Warning, 1), ("proxies", Severity::Error, 1)];
    assert_eq!(counted(&store), expected);
}

#[test]
fn of_a_proxy_with_too_many_findings_the_errors_are_kept() {
    let mut store = Store::default();
    let [a] = connections();
    let mut findings: Vec<Diagnostic> =
        (0..MAX_PER_PROXY + 7).map(|i| warning(&i.to_string())).collect();
    findings.push(error("e"));
    assert_eq!(store.generated(a, "a", &findings).new.len(), MAX_PER_PROXY);
    let about = &store.all().proxies[0];
    assert_eq!((about.findings.len(), about.more), (MAX_PER_PROXY, 8));
    assert_eq!(about.findings[0], error("e"));
}

#[test]
fn a_refusal_stays_until_the_type_is_accepted() {
    let mut store = Store::default();
    let [a] = connections();
    let bad = refusal("a", "bad");
    assert_eq!(store.refused(a, "a", TypeUrl::Route, &bad), new(std::slice::from_ref(&bad)));
    assert_eq!(store.refused(a, "a", TypeUrl::Route, &bad), News::default());
    assert_eq!(store.accepted(a, TypeUrl::Cluster), News::default());
    assert_eq!(counted(&store), [("refusals", Severity::Error, 1)]);
    let shown = Diagnostic { object: None, ..bad };
    assert_eq!(store.all().refusals[0].finding, shown);
    assert_eq!(store.accepted(a, TypeUrl::Route), over(&[shown]));
    assert_eq!(store.all(), Findings::default());
}

#[test]
fn proxies_that_refuse_alike_are_one_finding_and_one_that_refuses_otherwise_is_another() {
    let mut store = Store::default();
    let [a, b] = connections();
    store.refused(a, "a", TypeUrl::Route, &refusal("a", "bad"));
    assert_eq!(store.refused(b, "b", TypeUrl::Route, &refusal("b", "bad")), News::default());
    let all = store.all();
    assert_eq!(all.refusals.len(), 1);
    assert_eq!(all.refusals[0].proxies.len(), 2);
    let worse = refusal("b", "worse");
    assert_eq!(store.refused(b, "b", TypeUrl::Route, &worse), new(&[worse]));
    assert_eq!(store.all().refusals.len(), 2);
}

#[test]
fn a_proxy_that_leaves_takes_everything_about_it_along() {
    let mut store = Store::default();
    let [a, b] = connections();
    for (connection, node) in [(a, "a"), (b, "b")] {
        store.generated(connection, node, &[error("e")]);
        store.refused(connection, node, TypeUrl::Route, &refusal(node, "bad"));
    }
    store.disconnected(a);
    let all = store.all();
    assert!(all.proxies[0].proxies.iter().eq(["b"]) && all.refusals[0].proxies.iter().eq(["b"]));
    store.disconnected(b);
    store.disconnected(b);
    assert_eq!(store.all(), Findings::default());
    assert!(store.lists.0.is_empty() && store.about_proxies.0.is_empty());
    assert!(store.refused.0.is_empty() && store.refusals.is_empty());
    // When it comes back, it is news again.
    assert_eq!(store.generated(a, "a", &[error("e")]), new(&[error("e")]));
}

#[test]
fn refusals_without_end_do_not_fill_the_memory() {
    let mut store = Store::default();
    let pusher = Pusher::<()>::new(1);
    for i in 0..MAX_REFUSALS + 50 {
        let connection = pusher.register().0.id();
        let text = format!("bad {i}");
        let refused = refusal("a", &text);
        store.refused(connection, "a", TypeUrl::Route, &refused);
        store.refused(connection, "a", TypeUrl::Cluster, &refused);
    }
    // The last two stand for what is not kept, one for each type.
    assert_eq!(store.refused.len(), MAX_REFUSALS + 2);
    let mut text = store.all().refusals.into_iter().map(|r| r.finding.message);
    assert!(text.any(|text| text.contains("too much")));
    // One proxy that goes on finding reasons counts once.
    let mut store = Store::default();
    let [a] = connections();
    for i in 0..100 {
        store.refused(a, "a", TypeUrl::Route, &refusal("a", &format!("bad {i}")));
    }
    assert_eq!(store.refused.len(), 1);
}
