//! `pilotfish validate`: every finding in one run.

use super::{Exit, files};
use crate::diag::{self, Severity};
use crate::settings::{ReportFormat, ValidateArgs};
use std::io;

/// Checks and prints. Findings that are errors make the exit code 1.
pub fn run(args: &ValidateArgs) -> anyhow::Result<Exit> {
    let loaded = files::load(&args.paths, &args.extra)?;
    let findings = &loaded.compiled.diagnostics;
    match args.output {
        ReportFormat::Json => println!("{:#}", diag::json(findings)),
        ReportFormat::Text => {
            print!("{}", files::render(&loaded.workspace, findings, &io::stdout()));
            let documents = loaded.workspace.len();
            let noun = if documents == 1 { "document" } else { "documents" };
            let summary = files::summary(findings).unwrap_or_else(|| "no findings".to_owned());
            println!("{documents} {noun} accepted: {summary}");
        }
    }
    let failed = findings.iter().any(|d| d.severity == Severity::Error);
    Ok(if failed { Exit::Findings } else { Exit::Fine })
}
