//! Real documents, and what is found in them. `corpus/README.md` says how to add one; each file is
//! a test of its own here.

use libtest_mimic::{Arguments, Failed, Trial};
use pilotfish::config::{self, SourceFile};
use pilotfish::diag::{Diagnostic, Diagnostics, Severity};
use pilotfish::kinds::{self, Decoded};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut trials = Vec::new();
    for (folder, verdict) in [("valid", Verdict::Valid), ("invalid", Verdict::Invalid)] {
        for path in files(&root.join(folder)) {
            let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
            trials.push(Trial::test(name, move || check(&path, verdict).map_err(Failed::from)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// What is to become of a file's documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// All of them are accepted.
    Valid,
    /// One at least is refused.
    Invalid,
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ext| ext == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn check(path: &Path, verdict: Verdict) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    for note in ["# origin: ", "# licence: "] {
        if !text.lines().any(|line| line.starts_with(note)) {
            return Err(format!("the file says nowhere `{note}`"));
        }
    }
    let (ours, found) = findings(&text);
    if ours == 0 {
        return Err("none of the documents is of a kind of ours".to_owned());
    }
    let refused = found.iter().any(|finding| finding.severity == Severity::Error);
    if refused != (verdict == Verdict::Invalid) {
        return Err(format!("expected {verdict:?}, found {found:#?}"));
    }
    let expected: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# finds: ")).collect();
    let actual: Vec<String> = found.iter().map(line).collect();
    if expected != actual {
        let notes: Vec<String> = actual.iter().map(|line| format!("# finds: {line}")).collect();
        return Err(format!("the findings are now\n{}\n{found:#?}", notes.join("\n")));
    }
    Ok(())
}

/// `line:column code`.
fn line(finding: &Diagnostic) -> String {
    match &finding.span {
        Some(span) => format!("{}:{} {}", span.start.line, span.start.column, finding.code),
        None => format!("- {}", finding.code),
    }
}

/// How many documents are of our kinds, and the warnings and errors about them.
fn findings(text: &str) -> (usize, Vec<Diagnostic>) {
    let reading = config::read(&SourceFile::new("corpus.yaml", text));
    let mut diags = Diagnostics::new();
    diags.extend(reading.diagnostics);
    let mut ours = 0;
    for document in &reading.documents {
        ours += match kinds::decode(document, &mut diags) {
            Decoded::Accepted(_) | Decoded::Refused => 1,
            Decoded::NotYet | Decoded::Foreign => 0,
        };
    }
    let mut found = diags.into_sorted();
    found.retain(|finding| finding.severity > Severity::Info);
    (ours, found)
}
