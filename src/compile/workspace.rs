//! Everything that was read, kept up to date file by file, and compiled on demand.
//!
//! The shell reads files and tells the workspace what changed; the workspace knows which version of
//! each document is in force and makes snapshots. It does no I/O itself.

use super::{Decoded, DocumentSet, Identity, Input, compile};
use crate::config::{RawDocument, SecretFiles, SourceFile};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::kinds::{self, Lower};
use crate::model::{MeshSettings, Secret, SecretKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What is known of all files.
#[derive(Debug, Default)]
pub struct Workspace {
    documents: DocumentSet<Box<dyn Lower>>,
    mesh: MeshFile,
    secrets: BTreeMap<Arc<str>, DirectorySecret>,
    domain_suffix: Option<Arc<str>>,
    /// What was in force when [`Workspace::changed_kinds`] was asked last.
    seen: HashMap<Identity, u128>,
}

/// The mesh configuration: the settings in force, and what is to be said about the file.
#[derive(Debug, Default)]
struct MeshFile {
    source: Option<SourceFile>,
    settings: MeshSettings,
    diagnostics: Vec<Diagnostic>,
}

/// A directory below `--secrets-dir`.
#[derive(Debug)]
struct DirectorySecret {
    secret: Option<Secret>,
    diagnostics: Vec<Diagnostic>,
}

/// What compiling gave.
#[derive(Debug)]
pub struct Compiled {
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// Every finding about files and documents, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Workspace {
    /// An empty workspace; short host names are completed with this DNS suffix.
    pub fn new(domain_suffix: &str) -> Workspace {
        Workspace { domain_suffix: Some(Arc::from(domain_suffix)), ..Workspace::default() }
    }

    /// Takes a configuration file in its present form.
    pub fn replace_file(&mut self, source: SourceFile) {
        self.documents.replace_file(source, &decode);
    }

    /// Forgets a configuration file and its documents.
    pub fn remove_file(&mut self, path: &str) {
        self.documents.remove_file(path);
    }

    /// Takes the mesh configuration in its present form; `None` when there is none any more. One
    /// that cannot be used leaves the settings in force.
    pub fn set_mesh(&mut self, source: Option<SourceFile>) {
        let Some(source) = source else {
            self.mesh = MeshFile::default();
            return;
        };
        if self.mesh.source.as_ref() == Some(&source) {
            return;
        }
        let mut diags = Diagnostics::new();
        if let Some(settings) = kinds::mesh_settings(&source, &mut diags) {
            self.mesh.settings = settings;
        } else if self.mesh.source.is_some() {
            diags.push(Diagnostic::new(
                Code::LastGoodServed,
                format!(
                    "the mesh configuration {} is broken; the last good one stays in force",
                    source.path
                ),
            ));
        }
        self.mesh.diagnostics = diags.into_sorted();
        self.mesh.source = Some(source);
    }

    /// Takes the parts of one directory below `--secrets-dir`. Parts that cannot be used leave the
    /// last good secret in force.
    pub fn replace_secret(&mut self, files: &SecretFiles) {
        let mut diags = Diagnostics::new();
        let read = kinds::secret_of_files(files, &mut diags).map(|(_, secret)| secret);
        let known = self.secrets.remove(&files.name).and_then(|known| known.secret);
        let secret = DirectorySecret { secret: read.or(known), diagnostics: diags.into_sorted() };
        self.secrets.insert(files.name.clone(), secret);
    }

    /// Forgets a directory below `--secrets-dir`.
    pub fn remove_secret(&mut self, name: &str) {
        self.secrets.remove(name);
    }

    /// The text of a file that is known, for excerpts.
    pub fn text(&self, path: &str) -> Option<Arc<str>> {
        let mesh = self.mesh.source.as_ref().filter(|source| &*source.path == path);
        self.documents.text(path).or(mesh.map(|source| &source.text)).cloned()
    }

    /// How many documents are in force.
    pub fn len(&self) -> usize {
        self.documents.documents().len()
    }

    /// Whether no document is in force.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kinds of the documents that came, went or changed since this was asked last.
    pub fn changed_kinds(&mut self) -> BTreeSet<Arc<str>> {
        let now: HashMap<Identity, u128> = self
            .documents
            .documents()
            .iter()
            .map(|e| (Identity::of(&e.raw.header), e.raw.hash))
            .collect();
        let before = std::mem::replace(&mut self.seen, now);
        let changed = self.seen.iter().filter(|(id, hash)| before.get(*id) != Some(*hash));
        let gone = before.keys().filter(|id| !self.seen.contains_key(*id));
        changed.map(|(id, _)| id).chain(gone).map(|id| id.kind.clone()).collect()
    }

    /// Compiles what is in force.
    pub fn compile(&self) -> Compiled {
        let documents = self.documents.documents();
        let mut mesh = self.mesh.settings.clone();
        if let Some(suffix) = &self.domain_suffix {
            mesh.domain_suffix = suffix.clone();
        }
        let secrets = self.secrets.iter().filter_map(|(name, directory)| {
            let key = SecretKey { namespace: None, name: name.clone() };
            Some((key, directory.secret.clone()?))
        });
        let (snapshot, findings) = compile(Input {
            documents: documents.iter().map(|e| (&e.raw.header, &*e.value)).collect(),
            mesh,
            directory_secrets: secrets.collect(),
        });
        let mut diags = Diagnostics::new();
        diags.extend(self.documents.diagnostics());
        diags.extend(self.mesh.diagnostics.iter().cloned());
        diags.extend(self.secrets.values().flat_map(|s| s.diagnostics.iter().cloned()));
        diags.extend(findings);
        Compiled { snapshot: Arc::new(snapshot), diagnostics: diags.into_sorted() }
    }
}

/// Asks the document's kind.
fn decode(document: &RawDocument, diags: &mut Diagnostics) -> Decoded<Box<dyn Lower>> {
    match kinds::decode(document, diags) {
        kinds::Decoded::Good(_, document) => Decoded::Accepted(document),
        kinds::Decoded::Refused => Decoded::Refused,
        kinds::Decoded::NotYet => Decoded::Unserved,
        kinds::Decoded::NotOurs => Decoded::Foreign,
    }
}
