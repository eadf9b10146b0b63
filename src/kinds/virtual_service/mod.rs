//! VirtualService: how requests and connections to some hosts are routed.

mod answer;
mod check;
mod destination;
mod http;
mod lower;
mod matches;
mod reach;
mod spec;
#[cfg(test)]
mod tests;
mod text;

use super::draft::{DelegateDraft, DraftAction, VirtualServiceDraft};
use super::kind::About;
use super::{Draft, Kind, KindSpec, Unsupported};
use crate::config::{Findings, RawDocument};
use crate::model::{
    Hostname, HttpAction, HttpRule, MeshSettings, Namespace, VirtualService, Visibility,
};
use spec::Spec;
use std::sync::Arc;

pub(super) use http::retry as check_retry;
pub(super) use lower::retry as lower_retry;
pub(super) use spec::HttpRetry;

/// Its line in the table of kinds.
pub(super) const KIND: Kind = Kind::of::<Spec>();

const UNSUPPORTED: &[Unsupported] = &[
    Unsupported {
        path: "spec.http[].match[].headers.{@request.auth.claims*}",
        value: None,
        instead: "the match never holds",
    },
    Unsupported {
        path: "spec.http[].match[].withoutHeaders.{@request.auth.claims*}",
        value: None,
        instead: "the match never holds",
    },
];

/// All that can be said without the mesh's settings.
#[derive(Debug)]
pub(super) struct Share {
    meaning: lower::Lowered,
    /// `None` is the default of the mesh.
    visibility: Option<Visibility>,
}

impl KindSpec for Spec {
    const ABOUT: About = About { unsupported: UNSUPPORTED, ..About::networking("VirtualService") };

    type Share = Share;

    fn check(&self, f: &mut Findings<'_>) {
        check::spec(self, f);
        reach::spec(self, f);
    }

    fn lower(&self, document: &RawDocument) -> Option<Share> {
        let own = Namespace::from(&*document.header.namespace);
        Some(Share {
            meaning: lower::virtual_service(self, document),
            visibility: Visibility::from_export_to(&self.export_to, &own),
        })
    }

    fn add(share: &Share, mesh: &MeshSettings, draft: &mut Draft) {
        let lower::Lowered { mut service, mut http } = share.meaning.clone();
        let own = service.origin.name.namespace.clone();
        service.visibility = share.visibility.clone().unwrap_or_else(|| {
            MeshSettings::default_visibility(&mesh.default_virtual_service_visibility, &own)
        });
        let expand = |host: &mut Hostname| *host = mesh.expand_short_name(host, &own);
        service.hosts.iter_mut().for_each(expand);
        for rule in &mut http {
            if let DraftAction::Own(HttpAction::Route(destinations)) = &mut rule.action {
                destinations.iter_mut().for_each(|d| expand(&mut d.destination.host));
            }
            rule.mirrors.iter_mut().for_each(|m| expand(&mut m.destination.host));
        }
        let tls = service.tls.iter_mut().flat_map(|rule| &mut rule.destinations);
        let tcp = service.tcp.iter_mut().flat_map(|rule| &mut rule.destinations);
        tls.chain(tcp).for_each(|d| expand(&mut d.destination.host));
        draft.virtual_services.push(settled(service, http));
    }
}

/// A VirtualService with its rules, as far as they are settled.
fn settled(service: VirtualService, http: Vec<HttpRule<DraftAction>>) -> VirtualServiceDraft {
    let delegates = |rule: &HttpRule<DraftAction>| matches!(rule.action, DraftAction::Delegate(_));
    if !service.hosts.is_empty() && http.iter().any(delegates) {
        return VirtualServiceDraft::Delegating { service, http };
    }
    let own = |rule: HttpRule<DraftAction>| match rule.action.clone() {
        DraftAction::Own(action) => Some(rule.with_action(action)),
        // Only a delegate gets here with one, and its check has refused it.
        DraftAction::Delegate(_) => None,
    };
    let http = http.into_iter().filter_map(own).collect();
    let VirtualService { origin, visibility, .. } = service;
    match service.hosts.is_empty() {
        true => VirtualServiceDraft::Delegate(DelegateDraft { origin, visibility, http }),
        false => VirtualServiceDraft::Complete(Arc::new(VirtualService {
            origin,
            visibility,
            http,
            ..service
        })),
    }
}
