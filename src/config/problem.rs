//! What keeps a document from being read, and where in the file that is.

use super::node::{Extent, point};
use super::split::Chunk;
use super::syntax;
use crate::diag::{Code, Position, lines};
use saphyr_parser::{Marker, ScanError, Span};

/// Something that keeps a document from being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub code: Code,
    pub at: Extent,
    pub message: String,
    pub help: Option<String>,
    pub related: Option<(Extent, &'static str)>,
}

impl Problem {
    pub fn new(code: Code, at: Extent, message: impl Into<String>) -> Problem {
        Problem { code, at, message: message.into(), help: None, related: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }
}

/// The parser's own complaint.
pub(super) fn syntax_error(error: &ScanError, places: &Places) -> Problem {
    let at = point(places.position(*error.marker()));
    let (code, message, help) = syntax::explain(error.info());
    let problem = Problem::new(code, at, message);
    match help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

/// Turns the parser's positions into positions of the file.
pub(super) struct Places {
    first_line: u32,
    last: Position,
}

impl Places {
    pub fn new(chunk: Chunk<'_>) -> Places {
        let mut last = Position { line: chunk.line, column: 1 };
        for line in lines(chunk.text) {
            let content = line.trim_end_matches(['\r', '\n']);
            if content.len() < line.len() {
                last = Position { line: last.line.saturating_add(1), column: 1 };
            } else {
                last.column = column(content.chars().count());
            }
        }
        Places { first_line: chunk.line, last }
    }

    /// The parser counts one line more when the last one has no break; no finding may point
    /// there.
    pub fn position(&self, marker: Marker) -> Position {
        let line = u32::try_from(marker.line().saturating_sub(1)).unwrap_or(u32::MAX);
        let position =
            Position { line: self.first_line.saturating_add(line), column: column(marker.col()) };
        position.min(self.last)
    }

    pub fn extent(&self, span: Span) -> Extent {
        Extent { start: self.position(span.start), end: self.position(span.end) }
    }
}

fn column(characters: usize) -> u32 {
    u32::try_from(characters).unwrap_or(u32::MAX).saturating_add(1)
}
