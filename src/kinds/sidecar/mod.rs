//! Sidecar: what the proxies of workloads see and listen on.

mod check;
mod lower;
mod spec;
#[cfg(test)]
mod tests;

use super::kind::About;
use super::{Draft, Kind, KindSpec};
use crate::config::{Findings, RawDocument};
use crate::model::{self, MeshSettings};
use spec::Spec;

/// Its line in the table of kinds.
pub(super) const KIND: Kind = Kind::of::<Spec>();

impl KindSpec for Spec {
    const ABOUT: About = About::networking("Sidecar");

    type Share = model::Sidecar;

    fn check(&self, f: &mut Findings<'_>) {
        check::spec(self, f);
    }

    fn lower(&self, document: &RawDocument) -> Option<model::Sidecar> {
        Some(lower::sidecar(self, document))
    }

    fn add(share: &model::Sidecar, _: &MeshSettings, draft: &mut Draft) {
        draft.sidecars.push(share.clone());
    }
}
