//! Compiling a case: the way of `pilotfish translate`, with file labels relative to the case.

use super::case::{Case, ProxySpec};
use pilotfish::compile::{Compiled, Workspace};
use pilotfish::config::{SecretFiles, SourceFile};
use pilotfish::diag::Diagnostic;
use pilotfish::generate::{self, Generated};
use pilotfish::watch::{Changes, Found, Roots, Scanner};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// What a case consists of, read from disk.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// Configuration files.
    pub files: Vec<SourceFile>,
    /// The mesh configuration.
    pub mesh: Option<SourceFile>,
    /// Directories of certificate files.
    pub secrets: Vec<SecretFiles>,
    /// What could not be read.
    pub problems: Vec<Diagnostic>,
}

impl Input {
    /// Reads the files of a case as the product would.
    pub fn read(case: &Case) -> Input {
        let roots =
            Roots { config: vec![case.config.clone()], mesh: None, secrets: case.secrets.clone() };
        let found = Scanner::new(roots).scan(Instant::now());
        let changes = Changes::between(&Found::default(), &found);
        let config = |path: &str| relative(path, &case.config, "config");
        let files = changes.changed.into_iter();
        Input {
            files: files.map(|f| SourceFile::new(config(&f.path), f.text)).collect(),
            mesh: changes.mesh.flatten().map(|f| SourceFile::new(config(&f.path), f.text)),
            secrets: changes
                .secrets_changed
                .into_iter()
                .map(|s| SecretFiles { path: relative(&s.path, &case.dir, "."), ..s })
                .collect(),
            problems: changes.problems,
        }
    }

    /// Compiles in the order given.
    pub fn compile(&self) -> Compiled {
        let mut workspace = Workspace::new("cluster.local");
        for file in &self.files {
            workspace.replace_file(file.clone());
        }
        workspace.set_mesh(self.mesh.clone());
        for secret in &self.secrets {
            workspace.replace_secret(secret);
        }
        workspace.compile()
    }
}

/// What a proxy is given.
pub fn generate(compiled: &Compiled, proxy: &ProxySpec) -> Result<Generated, String> {
    let snapshot = &compiled.snapshot;
    let resolved = proxy.node().description().resolve(snapshot).map_err(|e| e.to_string())?;
    Ok(generate::all(snapshot, &resolved))
}

/// The label below its directory: `config/a.yaml`.
fn relative(path: &str, dir: &Path, name: &str) -> Arc<str> {
    let below = Path::new(path).strip_prefix(dir).unwrap_or(Path::new(path));
    Arc::from(Path::new(name).join(below).to_string_lossy().trim_start_matches("./"))
}
