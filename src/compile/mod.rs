//! Documents -> an immutable [`Snapshot`]: what all of them mean together.
//!
//! [`compile`] lowers every document, sorts by Istio's precedence, merges what speaks about one
//! thing, and checks what documents say about each other. It is total: what dangles is a finding,
//! never a failure.

mod delegates;
mod destination_rules;
mod documents;
mod references;
mod services;
mod workspace;

pub use documents::{Change, DocumentSet, Entry, Identity, Prepared, prepare};
pub use workspace::{Compiled, Workspace};

use crate::config::Header;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::kinds::{Draft, Lower};
use crate::model::{
    Endpoints, MeshSettings, Origin, Routing, Secret, SecretKey, Secrets, Services, Snapshot,
    Workloads,
};
use std::sync::Arc;

/// Everything that a snapshot is made of.
pub struct Input<'a> {
    /// Accepted documents, in any order.
    pub documents: Vec<(&'a Header, &'a dyn Lower)>,
    /// Mesh-wide settings.
    pub mesh: MeshSettings,
    /// Secrets from directories.
    pub directory_secrets: Vec<(SecretKey, Secret)>,
}

/// Compiles. The order of the inputs does not matter.
pub fn compile(input: Input<'_>) -> (Snapshot, Vec<Diagnostic>) {
    let mut diags = Diagnostics::new();
    let mut draft = Draft::default();
    for (_, document) in &input.documents {
        document.lower(&input.mesh, &mut draft);
    }
    let Draft {
        service_entries,
        workloads,
        virtual_services,
        destination_rules,
        gateways,
        sidecars,
        secrets,
    } = draft;
    let workloads = Workloads::new(workloads.into_iter().map(Arc::new));
    let (services, endpoints) =
        services::build(service_entries, &workloads, &input.mesh, &mut diags);
    let virtual_services = sorted(virtual_services, |v| &v.origin);
    let destination_rules = destination_rules::merge(destination_rules, &input.mesh, &mut diags);
    // A document beats a directory only in its own namespace, so both stay.
    let secrets = input.directory_secrets.into_iter().chain(secrets);
    let routing = Routing {
        services: Arc::new(Services::new(services)),
        virtual_services: shared(delegates::merge(virtual_services, &mut diags)),
        destination_rules: Arc::new(destination_rules),
        gateways: shared(sorted(gateways, |g| &g.origin)),
        sidecars: shared(sorted(sidecars, |s| &s.origin)),
        secrets: Arc::new(Secrets::new(secrets.map(|(key, secret)| (key, Arc::new(secret))))),
        mesh: Arc::new(input.mesh),
    };
    let snapshot = Snapshot {
        routing: Arc::new(routing),
        endpoints: Arc::new(Endpoints::new(endpoints, Arc::new(workloads))),
    };
    references::check(&snapshot, &mut diags);
    root_namespace(&snapshot.routing, &mut diags);
    (snapshot, diags.into_sorted())
}

fn shared<T>(list: Vec<T>) -> Arc<[Arc<T>]> {
    list.into_iter().map(Arc::new).collect()
}

fn sorted<T>(mut list: Vec<T>, origin: impl Fn(&T) -> &Origin) -> Vec<T> {
    list.sort_by(|a, b| Origin::precedence(origin(a), origin(b)));
    list
}

/// Selectors of Sidecars in the root namespace reach only workloads of that namespace, which
/// surprises people who mean the whole mesh.
fn root_namespace(routing: &Routing, diags: &mut Diagnostics) {
    let root = &routing.mesh.root_namespace;
    let with_selector = routing
        .sidecars
        .iter()
        .filter(|s| s.origin.name.namespace == *root && s.selector.is_some());
    for sidecar in with_selector {
        diags.push(sidecar.origin.diagnostic(
            Code::NoEffect,
            format!(
                "a Sidecar with a workloadSelector in the root namespace '{root}' applies only to \
                 workloads of that namespace"
            ),
        ));
    }
}
