//! What keeps a document from being read, and where in the file that is.

use super::node::{Extent, point};
use super::split::Chunk;
use super::syntax;
use crate::diag::{Code, Position, lines};
use saphyr_parser::{Marker, ScanError, Span};

/// Something that keeps a document from being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct Problem {
    pub code: Code,
    pub at: Extent,
    pub message: String,
    pub help: Option<String>,
    pub related: Option<(Extent, &'static str)>,
    /// The parser objects to an indentation, perhaps too strictly.
    pub is_indentation: bool,
}

impl Problem {
    pub fn new(code: Code, at: Extent, message: impl Into<String>) -> Problem {
        Problem {
            code,
            at,
            message: message.into(),
            help: None,
            related: None,
            is_indentation: false,
        }
    }

    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }
}

/// The parser's own complaint.
pub(super) fn syntax_error(error: &ScanError, places: &Places<'_>) -> Problem {
    let mut position = places.position(*error.marker());
    if error.info().contains("tabs disallowed within") {
        // The parser has read over the tab, and over blanks behind it.
        position.column = places.first_tab(position.line).unwrap_or(position.column);
    }
    let at = point(position);
    let (code, message, help) = syntax::explain(error.info());
    let mut problem = Problem::new(code, at, message);
    problem.is_indentation = error.info().contains("invalid indentation");
    match help {
        Some(help) => problem.help(help),
        None => problem,
    }
}

/// Turns the parser's positions into positions of the file.
pub(super) struct Places<'p> {
    first_line: u32,
    last: Position,
    text: &'p str,
    pads: &'p [usize],
}

impl<'p> Places<'p> {
    pub fn new(chunk: Chunk<'p>) -> Places<'p> {
        let mut last = Position { line: chunk.line, column: 1 };
        for line in lines(chunk.text) {
            let content = line.trim_end_matches(['\r', '\n']);
            if content.len() < line.len() {
                last = Position { line: last.line.saturating_add(1), column: 1 };
            } else {
                last.column = column(content.chars().count());
            }
        }
        Places { first_line: chunk.line, last, text: chunk.text, pads: &[] }
    }

    /// Positions of a text whose lines were moved to the right.
    pub fn with_pads(self, pads: &'p [usize]) -> Places<'p> {
        Places { pads, ..self }
    }

    /// The parser counts one line more when the last one has no break; no finding may point
    /// there.
    pub fn position(&self, marker: Marker) -> Position {
        let index = marker.line().saturating_sub(1);
        let pad = self.pads.get(index).copied().unwrap_or(0);
        let line = u32::try_from(index).unwrap_or(u32::MAX);
        let position = Position {
            line: self.first_line.saturating_add(line),
            column: column(marker.col().saturating_sub(pad)),
        };
        position.min(self.last)
    }

    /// The column of the first tab of a line of the file.
    fn first_tab(&self, line: u32) -> Option<u32> {
        let index = usize::try_from(line.checked_sub(self.first_line)?).ok()?;
        let line = lines(self.text).nth(index)?;
        line.chars().position(|c| c == '\t').map(column)
    }

    pub fn extent(&self, span: Span) -> Extent {
        Extent { start: self.position(span.start), end: self.position(span.end) }
    }
}

fn column(characters: usize) -> u32 {
    u32::try_from(characters).unwrap_or(u32::MAX).saturating_add(1)
}
