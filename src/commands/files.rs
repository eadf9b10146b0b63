//! From files to a workspace: what the commands and the serving process have in common.

use crate::compile::{self, Compiled, Workspace};
use crate::config::{SecretFiles, SourceFile};
use crate::diag::{self, Diagnostic, Diagnostics, Severity};
use crate::kinds;
use crate::model::Snapshot;
use crate::settings::ExtraSourceArgs;
use crate::watch::{Changes, Found, Roots, Scanner};
use anyhow::{Context, bail};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
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
    let problems = take_in(&mut workspace, prepare(changes));
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

/// Changes whose files have been read and decoded, so that taking them in is little work.
pub struct Prepared {
    /// Configuration files that are new or have other content.
    files: Vec<compile::Prepared>,
    /// Labels of configuration files that are gone.
    removed: Vec<Arc<str>>,
    /// The mesh configuration, when it changed; `Some(None)` when it is gone.
    pub mesh: Option<Option<SourceFile>>,
    /// Directories below the secrets directory that are new or have other content.
    pub secrets_changed: Vec<SecretFiles>,
    /// Names of those that are gone.
    pub secrets_removed: Vec<Arc<str>>,
    /// Everything that cannot be read right now, changed or not.
    problems: Vec<Diagnostic>,
    /// Whether every root could be read.
    pub complete: bool,
}

/// Reads and decodes what changed. Needs no workspace, so it can run on any thread.
pub fn prepare(changes: Changes) -> Prepared {
    let Changes { changed, removed, mesh, secrets_changed, secrets_removed, problems, complete } =
        changes;
    let files = on_every_core(changed, compile::prepare);
    Prepared { files, removed, mesh, secrets_changed, secrets_removed, problems, complete }
}

/// Does the same with each of many things, in their order, on as many threads as there are cores.
/// A few things are not worth a thread.
fn on_every_core<T: Send, R: Send>(things: Vec<T>, work: fn(T) -> R) -> Vec<R> {
    const WORTH_A_THREAD: usize = 64;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let size = things.len().div_ceil(cores).max(WORTH_A_THREAD);
    if things.len() <= size {
        return things.into_iter().map(work).collect();
    }
    let mut things = things.into_iter();
    let parts = std::iter::from_fn(|| Some(things.by_ref().take(size).collect::<Vec<T>>()));
    let parts: Vec<Vec<T>> = parts.take_while(|part| !part.is_empty()).collect();
    std::thread::scope(|scope| {
        let running: Vec<_> = parts
            .into_iter()
            .map(|part| scope.spawn(move || part.into_iter().map(work).collect::<Vec<R>>()))
            .collect();
        let done = running.into_iter().map(|part| match part.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        done.flatten().collect()
    })
}

/// Tells the workspace what changed; gives back what could not be read.
pub fn take_in(workspace: &mut Workspace, prepared: Prepared) -> Vec<Diagnostic> {
    for file in prepared.files {
        workspace.take(file);
    }
    for path in prepared.removed {
        workspace.remove_file(&path);
    }
    if let Some(mesh) = prepared.mesh {
        workspace.set_mesh(mesh);
    }
    for files in &prepared.secrets_changed {
        workspace.replace_secret(files);
    }
    for name in prepared.secrets_removed {
        workspace.remove_secret(&name);
    }
    prepared.problems
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

#[cfg(test)]
mod tests {
    use super::on_every_core;

    #[test]
    fn work_on_every_core_keeps_the_order() {
        for count in [0, 1, 64, 65, 1_000] {
            let expected: Vec<usize> = (0..count).map(|n| n + 1).collect();
            assert_eq!(on_every_core((0..count).collect(), |n| n + 1), expected);
        }
    }
}
