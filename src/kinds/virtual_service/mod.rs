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

use super::kind::About;
use super::{Draft, Kind, KindSpec, Unsupported};
use crate::config::{Findings, RawDocument};
use crate::model::{self, Hostname, HttpAction, MeshSettings, Namespace, Visibility};
use spec::Spec;

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
    meaning: model::VirtualService,
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
        let mut service = share.meaning.clone();
        let own = service.origin.name.namespace.clone();
        service.visibility = share.visibility.clone().unwrap_or_else(|| {
            MeshSettings::default_visibility(&mesh.default_virtual_service_visibility, &own)
        });
        let expand = |host: &mut Hostname| *host = mesh.expand_short_name(host, &own);
        service.hosts.iter_mut().for_each(expand);
        for rule in &mut service.http {
            if let HttpAction::Route(destinations) = &mut rule.action {
                destinations.iter_mut().for_each(|d| expand(&mut d.destination.host));
            }
            rule.mirrors.iter_mut().for_each(|m| expand(&mut m.destination.host));
        }
        let tls = service.tls.iter_mut().flat_map(|rule| &mut rule.destinations);
        let tcp = service.tcp.iter_mut().flat_map(|rule| &mut rule.destinations);
        tls.chain(tcp).for_each(|d| expand(&mut d.destination.host));
        draft.virtual_services.push(service);
    }
}
