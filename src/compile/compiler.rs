//! From everything that is in force to the next snapshot.

use super::documents::Entry;
use super::services::ServiceTable;
use super::shares::{Shares, Sorted, same_list};
use super::{delegates, destination_rules, references};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::kinds::{ServiceEntryDraft, VirtualServiceDraft};
use crate::model::{
    DestinationRule, DestinationRules, Gateway, MeshSettings, Routing, Secret, SecretKey, Secrets,
    Sidecar, Snapshot, VirtualService, Workload, Workloads,
};
use std::sync::Arc;

/// Everything that a snapshot is made of.
pub struct Input<'a> {
    /// Accepted documents, in any order.
    pub documents: Vec<&'a Arc<Entry>>,
    /// Mesh-wide settings.
    pub mesh: MeshSettings,
    /// Secrets from directories.
    pub directory_secrets: Vec<(SecretKey, Secret)>,
}

/// What compiling gives.
pub struct Output {
    /// What is to be served.
    pub snapshot: Arc<Snapshot>,
    /// The same with the places of the files as they are, where only those changed.
    pub moved: Option<Arc<Snapshot>>,
    /// What is to be said about documents, sorted.
    pub findings: Vec<Diagnostic>,
}

/// Compiles, and remembers what came of the last time.
#[derive(Debug, Default)]
pub struct Compiler {
    /// What the documents of the last snapshot said, wherever they stood in their files.
    meaning: Vec<u128>,
    mesh: Arc<MeshSettings>,
    directory_secrets: Vec<(SecretKey, Arc<Secret>)>,
    shares: Shares,
    entries: Sorted<ServiceEntryDraft>,
    workloads: Sorted<Workload>,
    virtual_services: Sorted<VirtualServiceDraft>,
    rules: Sorted<DestinationRule>,
    gateways: Sorted<Gateway>,
    sidecars: Sorted<Sidecar>,
    services: ServiceTable,
    merged: Merged,
    snapshot: Option<Arc<Snapshot>>,
}

/// What is made of several documents at once, and of which.
#[derive(Debug, Default)]
struct Merged {
    drafts: Arc<[Arc<VirtualServiceDraft>]>,
    virtual_services: Arc<[Arc<VirtualService>]>,
    delegate_findings: Vec<Diagnostic>,
    rules: Arc<[Arc<DestinationRule>]>,
    mesh: Option<Arc<MeshSettings>>,
    destination_rules: Arc<DestinationRules>,
    rule_findings: Vec<Diagnostic>,
    workloads: Arc<Workloads>,
    secrets: Arc<Secrets>,
}

impl Compiler {
    /// Compiles. The order of the documents does not matter. When everything says what it said the
    /// last time (a comment was added, a document moved in its file), the very same snapshot comes
    /// back; the findings are always those of the files as they are.
    pub fn compile(&mut self, input: Input<'_>) -> Output {
        let mut diags = Diagnostics::new();
        let mut meaning: Vec<u128> = input.documents.iter().map(|entry| entry.meaning).collect();
        meaning.sort_unstable();
        let mut same = meaning == self.meaning;
        self.meaning = meaning;
        if *self.mesh != input.mesh {
            self.mesh = Arc::new(input.mesh);
            same = false;
        }
        same &= self.take_secrets(input.directory_secrets);

        let all = self.shares.collect(input.documents.into_iter(), &self.mesh);
        let entries = self.entries.update(all.service_entries, |e| &e.origin);
        let workloads = self.workloads.update(all.workloads, |w| &w.origin);
        let workloads = self.merged.workloads(workloads);
        let (services, endpoints) =
            self.services.update(&entries, &workloads, &self.mesh, &mut diags);
        let virtual_services =
            self.virtual_services.update(all.virtual_services, VirtualServiceDraft::origin);
        let rules = self.rules.update(all.destination_rules, |r| &r.origin);
        // A document beats a directory only in its own namespace, so both stay.
        let secrets = self.directory_secrets.iter().cloned().chain(all.secrets);
        let routing = Routing {
            services,
            virtual_services: self.merged.virtual_services(virtual_services, &mut diags),
            destination_rules: self.merged.rules(rules, &self.mesh, &mut diags),
            gateways: self.gateways.update(all.gateways, |g| &g.origin),
            sidecars: self.sidecars.update(all.sidecars, |s| &s.origin),
            secrets: self.merged.secrets(Secrets::new(secrets)),
            mesh: self.mesh.clone(),
        };
        let before = self.snapshot.as_ref();
        let routing = match before.filter(|before| is_same(&before.routing, &routing)) {
            Some(before) => before.routing.clone(),
            None => Arc::new(routing),
        };
        let snapshot = Snapshot { routing, endpoints };
        references::check(&snapshot, &mut diags);
        root_namespace(&snapshot.routing, &mut diags);
        let (snapshot, moved) = match before {
            Some(before) if before.is_same(&snapshot) => (before.clone(), None),
            Some(before) if same => (before.clone(), Some(Arc::new(snapshot))),
            Some(_) | None => (Arc::new(snapshot), None),
        };
        self.snapshot = Some(snapshot.clone());
        Output { snapshot, moved, findings: diags.into_sorted() }
    }

    /// Whether the secrets from directories are those of the last time.
    fn take_secrets(&mut self, now: Vec<(SecretKey, Secret)>) -> bool {
        let before = &self.directory_secrets;
        let known = |key: &SecretKey, secret: &Secret| {
            let known = before.iter().find(|(k, s)| k == key && **s == *secret);
            known.map(|(_, secret)| secret.clone())
        };
        let now: Vec<(SecretKey, Arc<Secret>)> = now
            .into_iter()
            .map(|(key, secret)| {
                let known = known(&key, &secret);
                (key, known.unwrap_or_else(|| Arc::new(secret)))
            })
            .collect();
        let same = now.len() == before.len()
            && now.iter().zip(before).all(|(a, b)| a.0 == b.0 && Arc::ptr_eq(&a.1, &b.1));
        self.directory_secrets = now;
        same
    }
}

impl Merged {
    fn workloads(&mut self, now: Arc<[Arc<Workload>]>) -> Arc<Workloads> {
        let made = Workloads::new(now.iter().cloned());
        let same = |(a, b): (&Arc<Workload>, &Arc<Workload>)| Arc::ptr_eq(a, b);
        let unchanged =
            made.len() == self.workloads.len() && made.iter().zip(self.workloads.iter()).all(same);
        if !unchanged {
            self.workloads = Arc::new(made);
        }
        self.workloads.clone()
    }

    fn virtual_services(
        &mut self,
        now: Arc<[Arc<VirtualServiceDraft>]>,
        diags: &mut Diagnostics,
    ) -> Arc<[Arc<VirtualService>]> {
        if !same_list(&self.drafts, &now) {
            let mut findings = Diagnostics::new();
            let before = std::mem::take(&mut self.virtual_services);
            self.virtual_services = delegates::merge(&now, &before, &mut findings);
            self.delegate_findings = findings.into_sorted();
            self.drafts = now;
        }
        diags.extend(self.delegate_findings.iter().cloned());
        self.virtual_services.clone()
    }

    fn rules(
        &mut self,
        now: Arc<[Arc<DestinationRule>]>,
        mesh: &Arc<MeshSettings>,
        diags: &mut Diagnostics,
    ) -> Arc<DestinationRules> {
        let same_mesh = self.mesh.as_ref().is_some_and(|known| Arc::ptr_eq(known, mesh));
        if !same_mesh || !same_list(&self.rules, &now) {
            let mut findings = Diagnostics::new();
            self.destination_rules = Arc::new(destination_rules::merge(&now, mesh, &mut findings));
            self.rule_findings = findings.into_sorted();
            self.rules = now;
            self.mesh = Some(mesh.clone());
        }
        diags.extend(self.rule_findings.iter().cloned());
        self.destination_rules.clone()
    }

    fn secrets(&mut self, now: Secrets) -> Arc<Secrets> {
        if *self.secrets != now {
            self.secrets = Arc::new(now);
        }
        self.secrets.clone()
    }
}

/// Whether both halves are made of the same parts.
fn is_same(a: &Routing, b: &Routing) -> bool {
    // Taken apart by name, so that a new part cannot be forgotten.
    let Routing {
        mesh,
        services,
        virtual_services,
        destination_rules,
        gateways,
        sidecars,
        secrets,
    } = a;
    Arc::ptr_eq(mesh, &b.mesh)
        && Arc::ptr_eq(services, &b.services)
        && Arc::ptr_eq(virtual_services, &b.virtual_services)
        && Arc::ptr_eq(destination_rules, &b.destination_rules)
        && Arc::ptr_eq(gateways, &b.gateways)
        && Arc::ptr_eq(sidecars, &b.sidecars)
        && Arc::ptr_eq(secrets, &b.secrets)
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
