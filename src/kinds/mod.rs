//! Configuration kinds: one file each, the only place that knows it.
//!
//! A kind is the type of its `spec`, which says for itself what is demanded of it and what it means
//! (`KindSpec`: `check`, `lower`, `add`). What documents mean together is `compile`'s business.
//!
//! To add a kind: one file with a type that implements `KindSpec`, and one line in [`KINDS`].

mod decode;
mod destination_rule;
mod draft;
mod format_string;
mod gateway;
mod kind;
mod mesh_config;
mod not_yet;
mod re2;
mod rules;
mod schema;
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

pub use decode::decode;
pub use draft::{
    DelegateDraft, DelegateRef, Draft, DraftAction, EndpointSpec, ServiceEntryDraft,
    VirtualServiceDraft,
};
pub use kind::{About, Decoded, Kind, Lower};
pub use mesh_config::{mesh_schema, mesh_settings, mesh_unsupported};
pub use schema::{definition, schema};
pub use secret::{expired, secret_of_files};
pub use unsupported::Unsupported;

use kind::KindSpec;

/// Every kind, in the order of the documentation.
pub const KINDS: &[Kind] = &[
    virtual_service::KIND,
    destination_rule::KIND,
    gateway::KIND,
    service_entry::KIND,
    workload_entry::KIND,
    sidecar::KIND,
    secret::KIND,
];

/// The kind of a document: `Ok(None)` when it is not one of ours, `Err` with the versions that
/// are read when only the version is unknown.
pub fn find(
    api_version: &str,
    kind: &str,
) -> Result<Option<&'static Kind>, &'static [&'static str]> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    match KINDS.iter().find(|k| k.about.kind == kind && k.about.group == group) {
        None => Ok(None),
        Some(k) if k.about.versions.contains(&version) => Ok(Some(k)),
        Some(k) => Err(k.about.versions),
    }
}
