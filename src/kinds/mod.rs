//! Configuration kinds: one file each, the only place that knows it.
//!
//! A kind decodes and checks one document on its own ([`Kind::decode`]) and says what it means
//! ([`Lower::lower`]). What documents mean together is `compile`'s business.
//!
//! To add a kind: one file with an implementation of [`Kind`], and one line in [`KINDS`].

mod destination_rule;
mod document;
mod draft;
mod format_string;
mod gateway;
mod mesh_config;
mod not_yet;
mod re2;
mod rules;
mod secret;
mod server_tls;
mod service_entry;
mod sidecar;
mod stranger;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod traffic_policy;
mod unsupported;
mod values;
mod virtual_service;
mod workload_entry;

pub use document::{Decoded, decode, schema};
pub use draft::{Draft, EndpointSpec, ServiceEntryDraft};
pub use mesh_config::{mesh_schema, mesh_settings, mesh_unsupported};
pub use secret::{expired, secret_of_files};
pub use unsupported::Unsupported;

use crate::config::{Header, RawDocument};
use crate::diag::Diagnostics;
use crate::model::MeshSettings;

/// A configuration kind.
pub trait Kind: Sync + std::fmt::Debug {
    /// The kind's name, `VirtualService`.
    fn name(&self) -> &'static str;

    /// Its API group, empty for Kubernetes' core group.
    fn group(&self) -> &'static str;

    /// The versions that are read, all alike.
    fn versions(&self) -> &'static [&'static str];

    /// Decodes and checks one document. `None` when an error was found; every error and warning
    /// goes to `diags`.
    fn decode(&self, document: &RawDocument, diags: &mut Diagnostics) -> Option<Box<dyn Lower>>;

    /// The JSON schema of the whole document.
    fn schema(&self, generator: &mut schemars::SchemaGenerator) -> schemars::Schema;

    /// The fields that are read but have no meaning yet. One table drives both the warnings and
    /// the table in the README.
    fn unsupported(&self) -> &'static [Unsupported];
}

/// A decoded document that can say what it means.
pub trait Lower: Send + Sync + std::fmt::Debug {
    /// Adds the document's share to the draft. It was checked, so nothing can fail here.
    fn lower(&self, header: &Header, mesh: &MeshSettings, draft: &mut Draft);
}

/// Every kind, in the order of the documentation.
pub const KINDS: &[&dyn Kind] = &[
    &virtual_service::VirtualService,
    &destination_rule::DestinationRule,
    &gateway::Gateway,
    &service_entry::ServiceEntry,
    &workload_entry::WorkloadEntry,
    &sidecar::Sidecar,
    &secret::Secret,
];

/// The kind of a document: `Ok(None)` when it is not one of ours, `Err` with the versions that
/// are read when only the version is unknown.
pub fn find(
    api_version: &str,
    kind: &str,
) -> Result<Option<&'static dyn Kind>, &'static [&'static str]> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    match KINDS.iter().find(|k| k.name() == kind && k.group() == group) {
        None => Ok(None),
        Some(k) if k.versions().contains(&version) => Ok(Some(*k)),
        Some(k) => Err(k.versions()),
    }
}
