//! One workspace and one chain of caches, and beside them a fresh start after every step.

use crate::differences;
use crate::support::case::ProxySpec;
use crate::support::mesh::edits::{Edit, Mesh};
use pilotfish::compile::{Compiled, Workspace};
use pilotfish::config::{SecretFiles, SourceFile};
use pilotfish::diag::{self, Code, Diagnostic};
use pilotfish::generate::{self, Generated};
use pilotfish::proxy::Proxy;
use pilotfish::push::SnapshotCache;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A mesh being served, with what has to be told to a fresh workspace for it to know the same.
pub struct Life<'p> {
    mesh: Mesh,
    proxies: &'p [ProxySpec],
    workspace: Workspace,
    compiled: Compiled,
    cache: SnapshotCache,
    /// The cache of the snapshot before, and what it is to give: not everybody moves on at once.
    before: Option<(SnapshotCache, Vec<(Proxy, Generated)>)>,
    told: Told,
}

/// The versions of everything from which something is still in force, oldest first. A file that is
/// wholly good needs its last one only.
#[derive(Default)]
struct Told {
    files: BTreeMap<Arc<str>, Vec<SourceFile>>,
    settings: Vec<SourceFile>,
    certificates: Vec<SecretFiles>,
}

impl Told {
    fn workspace(&self) -> Workspace {
        let mut workspace = Workspace::new("cluster.local");
        for file in self.files.values().flatten() {
            workspace.replace_file(file.clone());
        }
        for settings in &self.settings {
            workspace.set_mesh(Some(settings.clone()));
        }
        for secret in &self.certificates {
            workspace.replace_secret(secret);
        }
        workspace
    }

    /// Forgets versions of which nothing is in force any more.
    fn trim(&mut self, findings: &[Diagnostic]) {
        for (path, versions) in &mut self.files {
            let still = |f: &Diagnostic| {
                f.code == Code::LastGoodServed && f.span.as_ref().is_some_and(|s| s.file == *path)
            };
            if !findings.iter().any(still) {
                versions.drain(..versions.len() - 1);
            }
        }
    }
}

impl<'p> Life<'p> {
    pub fn new(mesh: Mesh, proxies: &'p [ProxySpec]) -> Life<'p> {
        let mut workspace = Workspace::new("cluster.local");
        let mut told = Told::default();
        tell(&mesh, &mut workspace, &mut told);
        let compiled = workspace.compile();
        told.trim(&compiled.diagnostics);
        let cache = SnapshotCache::new(compiled.snapshot.clone());
        Life { mesh, proxies, workspace, compiled, cache, before: None, told }
    }

    /// An edit, and what the shell does about it.
    pub fn step(&mut self, edit: Edit, forget: bool) {
        let resolved = self.resolved();
        let given = resolved.into_iter().map(|p| (p.clone(), (*self.cache.generate(&p)).clone()));
        let given = given.collect();

        self.mesh.edit(edit);
        tell(&self.mesh, &mut self.workspace, &mut self.told);
        let compiled = self.workspace.compile();
        self.told.trim(&compiled.diagnostics);
        let next = self.cache.next(compiled.snapshot.clone());
        self.before = Some((std::mem::replace(&mut self.cache, next), given));
        if forget {
            self.cache.forget_earlier();
        }
        self.compiled = compiled;
    }

    /// All that is served is what a fresh start would serve, and what was served yesterday is what
    /// it was.
    pub fn check(&self, when: &str) -> Result<(), TestCaseError> {
        let fresh = self.told.workspace().compile();
        prop_assert_eq!(
            diag::concise(&self.compiled.diagnostics),
            diag::concise(&fresh.diagnostics),
            "findings {}",
            when
        );
        prop_assert_eq!(&self.compiled.diagnostics, &fresh.diagnostics, "findings {}", when);
        let mut resolved = self.resolved();
        for (i, spec) in self.proxies.iter().enumerate() {
            let alone = spec.node().description().resolve(&fresh.snapshot).expect("a good node");
            prop_assert_eq!(&resolved[i], &alone, "{} {}", &spec.name, when);
        }
        // Some ask again, and not in the order in which they came.
        resolved.extend(resolved.clone().into_iter().rev().take(2));
        for proxy in &resolved {
            let (shared, alone) =
                (self.cache.generate(proxy), generate::all(&fresh.snapshot, proxy));
            let differing = || differences(&shared.set, &alone.set);
            prop_assert!(shared.set == alone.set, "{proxy:?} {when}: {}", differing());
            let told = match &self.compiled.moved {
                Some(moved) => self.cache.findings_at(moved, proxy),
                None => shared.diagnostics.clone(),
            };
            prop_assert_eq!(&told, &alone.diagnostics, "{:?} {}", proxy, when);
        }
        if let Some((cache, given)) = &self.before {
            for (proxy, given) in given {
                let differing = || differences(&cache.generate(proxy).set, &given.set);
                prop_assert!(
                    *cache.generate(proxy) == *given,
                    "yesterday's {when}: {}",
                    differing()
                );
            }
        }
        Ok(())
    }

    fn resolved(&self) -> Vec<Proxy> {
        let resolve = |spec: &ProxySpec| spec.node().description().resolve(&self.compiled.snapshot);
        self.proxies.iter().map(resolve).collect::<Result<_, _>>().expect("good nodes")
    }
}

/// Tells what differs from what was told last.
fn tell(mesh: &Mesh, workspace: &mut Workspace, told: &mut Told) {
    let files = mesh.files();
    for gone in told.files.keys().filter(|path| !files.contains_key(*path)) {
        workspace.remove_file(gone);
    }
    told.files.retain(|path, _| files.contains_key(path));
    for (path, file) in files {
        let versions = told.files.entry(path).or_default();
        if versions.last() != Some(&file) {
            workspace.replace_file(file.clone());
            versions.push(file);
        }
    }
    workspace.set_mesh(mesh.settings());
    match mesh.settings() {
        Some(settings) => told.settings.push(settings),
        None => told.settings.clear(),
    }
    match mesh.certificates() {
        Some(secret) if told.certificates.last() == Some(&secret) => {}
        Some(secret) => {
            workspace.replace_secret(&secret);
            told.certificates.push(secret);
        }
        None => {
            workspace.remove_secret("cred");
            told.certificates.clear();
        }
    }
}
