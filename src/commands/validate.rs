//! `pilotfish validate`: every finding in one run.

use super::{Exit, files, output};
use crate::diag::{self, Severity};
use crate::settings::{ReportFormat, ValidateArgs};
use std::fmt::Write;
use std::io;

/// Checks and prints. Findings that are errors make the exit code 1.
pub fn run(args: &ValidateArgs) -> anyhow::Result<Exit> {
    let loaded = files::load(&args.paths, &args.extra)?;
    let findings = &loaded.compiled.diagnostics;
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
