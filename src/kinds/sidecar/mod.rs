//! Sidecar: what the proxies of workloads see and listen on.

mod check;
mod lower;
mod spec;
#[cfg(test)]
mod tests;

use super::document::{NETWORKING, NETWORKING_VERSIONS, decode_spec, spec_schema};
use super::{Draft, Kind, Lower, Unsupported};
use crate::config::{Header, RawDocument};
use crate::diag::Diagnostics;
use crate::model::{self, MeshSettings};
use schemars::{Schema, SchemaGenerator};
use spec::Spec;

/// The kind.
#[derive(Debug)]
pub struct Sidecar;

impl Kind for Sidecar {
    fn name(&self) -> &'static str {
        "Sidecar"
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
            Lowered(lower::sidecar(&spec, document))
        })
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        spec_schema::<Spec>(self, generator)
    }

    fn unsupported(&self) -> &'static [Unsupported] {
        &[]
    }
}

/// Nothing depends on the mesh's settings.
#[derive(Debug)]
struct Lowered(model::Sidecar);

impl Lower for Lowered {
    fn lower(&self, _header: &Header, _mesh: &MeshSettings, draft: &mut Draft) {
        draft.sidecars.push(self.0.clone());
    }
}
