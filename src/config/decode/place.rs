//! Places of trees as places of files, and the parser's problems as findings.

use crate::config::source::SourceFile;
use crate::config::yaml::{Extent, Problem};
use crate::diag::{Diagnostic, Excerpt, Span};

/// The place of a range of a file.
pub(super) fn place(source: &SourceFile, extent: Extent, excerpt: Excerpt) -> Span {
    Span { file: source.path.clone(), start: extent.start, end: extent.end, excerpt }
}

/// Whether the text of a document of that kind may be shown.
pub(super) fn excerpt_of(kind: &str) -> Excerpt {
    if kind == "Secret" { Excerpt::Withheld } else { Excerpt::Shown }
}

/// A problem of the parser as a finding.
pub(super) fn explain(source: &SourceFile, problem: Problem, excerpt: Excerpt) -> Diagnostic {
    let mut diagnostic =
        Diagnostic::new(problem.code, problem.message).at(place(source, problem.at, excerpt));
    diagnostic.help = problem.help;
    if let Some((extent, message)) = problem.related {
        diagnostic = diagnostic.related(place(source, extent, excerpt), message);
    }
    diagnostic
}
