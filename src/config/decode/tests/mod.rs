//! The reader as its callers see it: text in; documents, values and findings out.

mod documents;
mod properties;
mod values;

use super::{RawDocument, Reading, read};
use crate::config::SourceFile;
use crate::diag::Diagnostic;

/// What is in a file `f`.
fn reading(text: &str) -> Reading {
    read(&SourceFile::new("f", text))
}

/// The only document of a text that has no faults.
fn document(text: &str) -> RawDocument {
    let mut reading = reading(text);
    assert!(reading.diagnostics.is_empty(), "{:?}", reading.diagnostics);
    assert_eq!(reading.documents.len(), 1);
    reading.documents.remove(0)
}

/// The one-line form of findings, without the file.
fn lines(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|d| d.to_string().trim_start_matches("f:").to_owned()).collect()
}

/// The findings about a text.
fn findings(text: &str) -> Vec<String> {
    lines(&reading(text).diagnostics)
}
