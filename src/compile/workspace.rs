//! Everything that was read, kept up to date file by file, and compiled on demand.
//!
//! The shell reads files and tells the workspace what changed; the workspace knows which version of
//! each document is in force and makes snapshots. It does no I/O itself.

use super::compiler::{Compiler, Input, Output};
use super::{DocumentSet, Prepared, prepare};
use crate::config::{SecretFiles, SourceFile};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::kinds;
use crate::model::{MeshSettings, Secret, SecretKey, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is known of all files.
#[derive(Debug, Default)]
pub struct Workspace {
    documents: DocumentSet,
    mesh: MeshFile,
    secrets: BTreeMap<Arc<str>, DirectorySecret>,
    domain_suffix: Option<Arc<str>>,
    compiler: Compiler,
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
    /// When the snapshot is that of the last time although documents moved in their files: the same
    /// with their places as they are now. Findings about proxies are right with this one.
    pub moved: Option<Arc<Snapshot>>,
    /// Every finding about files and documents, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Workspace {
    /// An empty workspace; short host names are completed with this DNS suffix.
    pub fn new(domain_suffix: &str) -> Workspace {
        Workspace { domain_suffix: Some(Arc::from(domain_suffix)), ..Workspace::default() }
    }

    /// Takes a configuration file that was read and decoded with [`prepare`].
    pub fn take(&mut self, prepared: Prepared) {
        self.documents.take(prepared);
    }

    /// Whether this is the form in which the file was taken last, so that there is nothing to do.
    pub fn is_current(&self, source: &SourceFile) -> bool {
        self.documents.is_current(source)
    }

    /// Reads, decodes and takes a configuration file in its present form.
    pub fn replace_file(&mut self, source: SourceFile) {
        if !self.is_current(&source) {
            self.take(prepare(source));
        }
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
        self.documents.documents().count()
    }

    /// Whether no document is in force.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kinds of the documents that came, went or changed since this was asked last. Documents
    /// that only moved in their files did not change.
    pub fn changed_kinds(&mut self) -> BTreeSet<Arc<str>> {
        let changes = self.documents.changes().into_iter();
        let changed = changes.filter(|change| match (&change.before, &change.after) {
            (Some(before), Some(after)) => before.hash != after.hash,
            (Some(_), None) | (None, _) => true,
        });
        changed
            .filter_map(|change| Some(change.after.or(change.before)?.header.kind.clone()))
            .collect()
    }

    /// Compiles what is in force. As long as that says the same, the snapshot is the same `Arc`.
    pub fn compile(&mut self) -> Compiled {
        let mut mesh = self.mesh.settings.clone();
        if let Some(suffix) = &self.domain_suffix {
            mesh.domain_suffix = suffix.clone();
        }
        let secrets = self.secrets.iter().filter_map(|(name, directory)| {
            let key = SecretKey { namespace: None, name: name.clone() };
            Some((key, directory.secret.clone()?))
        });
        let output = self.compiler.compile(Input {
            documents: self.documents.documents().collect(),
            mesh,
            directory_secrets: secrets.collect(),
        });
        let mut diags = Diagnostics::new();
        diags.extend(self.documents.diagnostics());
        diags.extend(self.mesh.diagnostics.iter().cloned());
        diags.extend(self.secrets.values().flat_map(|s| s.diagnostics.iter().cloned()));
        diags.extend(output.findings);
        let Output { snapshot, moved, .. } = output;
        Compiled { snapshot, moved, diagnostics: diags.into_sorted() }
    }
}
