//! `pilotfish validate`: every finding in one run.

use super::{Exit, files, output};
use crate::diag::{self, Diagnostic, Diagnostics, Severity};
use crate::generate;
use crate::model::{Gateway, Labels, Locality, Namespace, Snapshot};
use crate::proxy::{Interception, Options, Proxy, Role};
use crate::settings::{ReportFormat, ValidateArgs};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;

/// Checks and prints. Findings that are errors make the exit code 1.
pub fn run(args: &ValidateArgs) -> anyhow::Result<Exit> {
    let loaded = files::load(&args.paths, &args.extra)?;
    let mut diags = Diagnostics::new();
    diags.extend(loaded.compiled.diagnostics.iter().cloned());
    diags.extend(of_routers(&loaded.compiled.snapshot));
    let findings = &diags.into_sorted();
    let report = match args.output {
        ReportFormat::Json => format!("{:#}\n", diag::json(findings)),
        ReportFormat::Text => {
            let mut report = files::render(&loaded.workspace, findings, &io::stdout());
            let documents = loaded.workspace.len();
            let noun = if documents == 1 { "document" } else { "documents" };
            let summary = files::summary(findings).unwrap_or_else(|| "no findings".to_owned());
            let _ = writeln!(report, "{documents} {noun} accepted: {summary}");
            report
        }
    };
    output::print(&report)?;
    let failed = findings.iter().any(|d| d.severity == Severity::Error);
    Ok(if failed { Exit::Findings } else { Exit::Fine })
}

/// What the proxies would be told that run the Gateways: two Gateways clash on a port only where
/// one proxy runs both. There is one proxy for each selector; which sidecars there are cannot be
/// known from the files.
fn of_routers(snapshot: &Snapshot) -> Vec<Diagnostic> {
    let labels = |g: &Gateway| g.selector.as_ref().map(|s| s.as_labels().clone());
    let gateways = &snapshot.routing.gateways;
    let proxies: BTreeSet<(Namespace, Labels)> = gateways
        .iter()
        .map(|g| (g.origin.name.namespace.clone(), labels(g).unwrap_or_default()))
        .collect();
    let proxies = proxies.into_iter().map(|(namespace, labels)| Proxy {
        role: Role::Router,
        domain: format!("{namespace}.svc.{}", snapshot.routing.mesh.domain_suffix).into(),
        namespace,
        labels,
        addresses: Vec::new(),
        locality: Locality::default(),
        network: "".into(),
        interception: Interception::None,
        options: Options::default(),
    });
    proxies.flat_map(|proxy| generate::all(snapshot, &proxy).diagnostics).collect()
}
