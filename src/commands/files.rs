//! Reading configuration once, for the commands that do not serve.

use crate::compile::{Compiled, Workspace};
use crate::diag::{self, Diagnostic, Diagnostics, Severity};
use crate::kinds;
use crate::model::Snapshot;
use crate::settings::ExtraSourceArgs;
use crate::watch::{Changes, Found, Roots, Scanner};
use anyhow::{Context, bail};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Instant;

/// What was read, and what came of it.
pub struct Loaded {
    /// Everything that was read.
    pub workspace: Workspace,
    /// What it means; the findings include files that could not be read.
    pub compiled: Compiled,
}

/// Reads and compiles these files and directories.
///
/// # Errors
///
/// A path that is named on the command line is not there.
pub fn load(paths: &[PathBuf], extra: &ExtraSourceArgs) -> anyhow::Result<Loaded> {
    let named = paths.iter().chain(&extra.mesh_config).chain(&extra.secrets_dir);
    for path in named {
        path.metadata().with_context(|| format!("cannot read {}", path.display()))?;
    }
    if let Some(path) = extra.secrets_dir.as_ref().filter(|path| !path.is_dir()) {
        bail!("--secrets-dir {} is not a directory", path.display());
    }
    let found = Scanner::new(roots(paths, extra)).scan(Instant::now());
    let mut workspace = Workspace::new(&extra.domain);
    let changes = Changes::between(&Found::default(), &found);
    let problems = apply(&mut workspace, changes);
    let mut compiled = workspace.compile();
    let mut diags = Diagnostics::new();
    diags.extend(problems);
    diags.extend(expired_certificates(&compiled.snapshot));
    diags.extend(std::mem::take(&mut compiled.diagnostics));
    compiled.diagnostics = diags.into_sorted();
    Ok(Loaded { workspace, compiled })
}

/// What is read for these arguments.
pub fn roots(paths: &[PathBuf], extra: &ExtraSourceArgs) -> Roots {
    Roots {
        config: paths.to_vec(),
        mesh: extra.mesh_config.clone(),
        secrets: extra.secrets_dir.clone(),
    }
}

/// Tells the workspace what changed; gives back what could not be read.
pub fn apply(workspace: &mut Workspace, changes: Changes) -> Vec<Diagnostic> {
    for source in changes.changed {
        workspace.replace_file(source);
    }
    for path in changes.removed {
        workspace.remove_file(&path);
    }
    if let Some(mesh) = changes.mesh {
        workspace.set_mesh(mesh);
    }
    for files in &changes.secrets_changed {
        workspace.replace_secret(files);
    }
    for name in changes.secrets_removed {
        workspace.remove_secret(&name);
    }
    changes.problems
}

/// Certificates of the snapshot that have expired by now. The core has no clock, so it does not
/// say this itself.
pub fn expired_certificates(snapshot: &Snapshot) -> Vec<Diagnostic> {
    let now = jiff::Timestamp::now();
    let secrets = snapshot.routing.secrets.iter();
    secrets.filter_map(|(key, secret)| kinds::expired(key, secret, now)).collect()
}

/// The findings for people, with excerpts.
pub fn render(
    workspace: &Workspace,
    diagnostics: &[Diagnostic],
    stream: &impl IsTerminal,
) -> String {
    let color = match stream.is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        true => diag::Color::Always,
        false => diag::Color::Never,
    };
    diag::text(diagnostics, &|path| workspace.text(path), color)
}

/// `2 errors, 1 warning`; nothing when there is nothing.
pub fn summary(diagnostics: &[Diagnostic]) -> Option<String> {
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let parts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Info]
        .into_iter()
        .filter_map(|severity| match count(severity) {
            0 => None,
            1 => Some(format!("1 {severity}")),
            n if severity == Severity::Info => Some(format!("{n} {severity}")),
            n => Some(format!("{n} {severity}s")),
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
