//! What to tell a client about one name: two small tables, one for what is said unasked (on a
//! push) and one for what is answered. Silence is for pushes only; a question always gets the
//! best answer that the protocol has for it, or Envoy waits.

use super::held::{Before, Company, Held};
use crate::xds::pb::{endpoint::ClusterLoadAssignment, route::RouteConfiguration};
use crate::xds::{Resource, TypeUrl, Version, canonical};
use std::sync::Arc;

/// What to tell a client about one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Silence,
    /// The resource.
    Send,
    /// The resource, but not together with others: it was refused in company.
    SendApart,
    /// An empty resource in its place.
    StandIn,
    /// That it does not exist. Only delta has words for this. State of the world says it by
    /// omission where responses are complete, and cannot say it for the other types.
    Remove,
}

/// What a push says about a name, given what the client has and what there is now.
pub(super) fn unasked(type_url: TypeUrl, held: Option<&Held>, current: Option<Version>) -> Verdict {
    match (current, held) {
        (Some(current), Some(Held::Version(version))) if *version == current => Verdict::Silence,
        (Some(current), Some(Held::Refused { version, company, .. })) if *version == current => {
            match company {
                // It would only be refused again.
                Company::Alone => Verdict::Silence,
                // Envoy may have refused a good resource because of a bad one beside it. One
                // more try, in smaller company, tells them apart.
                Company::Others => Verdict::SendApart,
            }
        }
        (Some(_), _) => Verdict::Send,
        (None, Some(Held::StandIn | Held::Nothing)) => Verdict::Silence,
        (None, Some(Held::Version(_) | Held::Something)) => when_deleted(type_url),
        (None, Some(Held::Refused { before, .. })) => match before {
            Before::Something => when_deleted(type_url),
            Before::Nothing => when_missing(type_url),
        },
        (None, None | Some(Held::StandInRefused)) => when_missing(type_url),
    }
}

/// What is answered about a name.
pub(super) fn asked(type_url: TypeUrl, current: Option<Version>) -> Verdict {
    match current {
        Some(_) => Verdict::Send,
        None => when_missing(type_url),
    }
}

/// What is said when a resource that the client has is deleted.
fn when_deleted(type_url: TypeUrl) -> Verdict {
    match type_url {
        TypeUrl::Cluster | TypeUrl::Listener => Verdict::Remove,
        // Envoy ignores the removal of endpoints of an active cluster, so only an empty
        // assignment takes them away.
        TypeUrl::Endpoint => Verdict::StandIn,
        // The listener that used the route or the secret drains for minutes, and its connections
        // still need it; the client unsubscribes when it is done.
        TypeUrl::Route | TypeUrl::Secret => Verdict::Silence,
    }
}

/// What is said about a name that does not exist and of which the client has nothing.
fn when_missing(type_url: TypeUrl) -> Verdict {
    match type_url {
        // A removal releases whatever waits for the name, and a secret may still come later.
        TypeUrl::Cluster | TypeUrl::Listener | TypeUrl::Secret => Verdict::Remove,
        // Never a removal: a listener that waits for its route would wait for ever, because the
        // removal also cancels its timer, and a removal does not empty a cluster.
        TypeUrl::Endpoint | TypeUrl::Route => Verdict::StandIn,
    }
}

/// An empty resource of this name, for the types where emptiness is an answer.
pub(super) fn stand_in(type_url: TypeUrl, name: &Arc<str>) -> Option<Resource> {
    match type_url {
        TypeUrl::Endpoint => Some(canonical::resource(
            name.clone(),
            &ClusterLoadAssignment { cluster_name: name.to_string(), ..Default::default() },
        )),
        TypeUrl::Route => Some(canonical::resource(
            name.clone(),
            &RouteConfiguration { name: name.to_string(), ..Default::default() },
        )),
        TypeUrl::Cluster | TypeUrl::Listener | TypeUrl::Secret => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(text: &str) -> Version {
        Version::of(text.as_bytes())
    }

    #[test]
    fn a_push_is_silent_about_what_the_client_has() {
        for type_url in TypeUrl::ALL {
            let held = Held::Version(v("1"));
            assert_eq!(unasked(type_url, Some(&held), Some(v("1"))), Verdict::Silence);
            assert_eq!(unasked(type_url, Some(&held), Some(v("2"))), Verdict::Send);
        }
    }

    #[test]
    fn refused_content_is_sent_again_only_when_it_changed_or_was_refused_in_company() {
        let before = Before::Something;
        let refused = |company| Held::Refused { version: v("1"), company, before };
        let table = [
            (refused(Company::Alone), v("1"), Verdict::Silence),
            (refused(Company::Others), v("1"), Verdict::SendApart),
            (refused(Company::Alone), v("2"), Verdict::Send),
            (refused(Company::Others), v("2"), Verdict::Send),
        ];
        for (held, current, expected) in table {
            assert_eq!(unasked(TypeUrl::Route, Some(&held), Some(current)), expected, "{held:?}");
        }
    }

    #[test]
    fn absence_is_said_once() {
        for type_url in TypeUrl::ALL {
            for held in [Held::Nothing, Held::StandIn] {
                assert_eq!(unasked(type_url, Some(&held), None), Verdict::Silence);
                assert_eq!(unasked(type_url, Some(&held), Some(v("1"))), Verdict::Send);
            }
        }
    }

    #[test]
    fn deletion_and_absence_are_said_as_envoy_understands_them() {
        let held = Held::Version(v("1"));
        let table = [
            (TypeUrl::Cluster, Verdict::Remove, Verdict::Remove),
            (TypeUrl::Endpoint, Verdict::StandIn, Verdict::StandIn),
            (TypeUrl::Listener, Verdict::Remove, Verdict::Remove),
            (TypeUrl::Route, Verdict::Silence, Verdict::StandIn),
            (TypeUrl::Secret, Verdict::Silence, Verdict::Remove),
        ];
        for (type_url, deleted, missing) in table {
            assert_eq!(unasked(type_url, Some(&held), None), deleted, "{type_url}");
            assert_eq!(unasked(type_url, None, None), missing, "{type_url}");
            assert_eq!(asked(type_url, None), missing, "{type_url}");
            assert_eq!(asked(type_url, Some(v("1"))), Verdict::Send, "{type_url}");
        }
    }

    #[test]
    fn what_was_refused_and_is_gone_leaves_the_client_with_what_it_had_before() {
        let refused = |before| Held::Refused { version: v("1"), company: Company::Alone, before };
        let said = |before| unasked(TypeUrl::Route, Some(&refused(before)), None);
        assert_eq!(said(Before::Something), Verdict::Silence);
        assert_eq!(said(Before::Nothing), Verdict::StandIn);
    }

    #[test]
    fn a_stand_in_holds_the_name_and_nothing_else() {
        use crate::xds::pb::Message;
        let name: Arc<str> = "a".into();
        let route = stand_in(TypeUrl::Route, &name).unwrap();
        let expected = RouteConfiguration { name: "a".into(), ..Default::default() };
        assert_eq!(RouteConfiguration::decode(&*route.body).unwrap(), expected);
        let endpoints = stand_in(TypeUrl::Endpoint, &name).unwrap();
        let expected = ClusterLoadAssignment { cluster_name: "a".into(), ..Default::default() };
        assert_eq!(ClusterLoadAssignment::decode(&*endpoints.body).unwrap(), expected);
    }
}
