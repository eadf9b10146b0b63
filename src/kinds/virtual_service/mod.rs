//! VirtualService: how requests and connections to some hosts are routed.

mod answer;
mod check;
mod destination;
mod http;
mod lower;
mod reach;
mod spec;
#[cfg(test)]
mod tests;

use super::document::{NETWORKING, NETWORKING_VERSIONS, decode_spec, spec_schema};
use super::{Draft, Kind, Lower, Unsupported};
use crate::config::{Header, RawDocument};
use crate::diag::Diagnostics;
use crate::model::{self, Hostname, HttpAction, MeshSettings, Namespace, Visibility};
use schemars::{Schema, SchemaGenerator};
use spec::Spec;

pub(super) use http::retry as check_retry;
pub(super) use lower::retry as lower_retry;
pub(super) use spec::HttpRetry;

/// The kind.
#[derive(Debug)]
pub struct VirtualService;

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

impl Kind for VirtualService {
    fn name(&self) -> &'static str {
        "VirtualService"
    }

    fn group(&self) -> &'static str {
        NETWORKING
    }

    fn versions(&self) -> &'static [&'static str] {
        NETWORKING_VERSIONS
    }

    fn decode(&self, document: &RawDocument, diags: &mut Diagnostics) -> Option<Box<dyn Lower>> {
        decode_spec(document, diags, |spec: Spec, f| {
            check::spec(&spec, f);
            reach::spec(&spec, f);
            let own = Namespace::from(&*document.header.namespace);
            Lowered {
                meaning: lower::virtual_service(&spec, document),
                visibility: Visibility::from_export_to(&spec.export_to, &own),
            }
        })
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        spec_schema::<Spec>(self, generator)
    }

    fn unsupported(&self) -> &'static [Unsupported] {
        UNSUPPORTED
    }
}

/// All that can be said without the mesh's settings.
#[derive(Debug)]
struct Lowered {
    meaning: model::VirtualService,
    visibility: Option<Visibility>,
}

impl Lower for Lowered {
    fn lower(&self, header: &Header, mesh: &MeshSettings, draft: &mut Draft) {
        let own = Namespace::from(&*header.namespace);
        let mut service = self.meaning.clone();
        service.visibility = self.visibility.clone().unwrap_or_else(|| {
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
