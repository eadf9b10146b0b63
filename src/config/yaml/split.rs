//! Cuts a file into documents before anything is parsed, so that each is parsed on its own.
//!
//! A line that starts with `---` always ends the document above it, even inside a block scalar
//! or a quoted string: that is YAML's own rule, so cutting there never changes what a valid
//! file means. `...` ends a document too.

use crate::diag::{lines, without_mark};

/// The text of one document and where it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) struct Chunk<'t> {
    /// The text, with its `---` line and the comments and directives above that.
    pub text: &'t str,
    /// The line of the file, from 1, on which the text starts.
    pub line: u32,
}

/// Cuts the text; the chunks in order make up the whole text without a byte order mark.
pub(in crate::config) fn split(text: &str) -> Vec<Chunk<'_>> {
    let text = without_mark(text);
    let mut chunks = Vec::new();
    let (mut start, mut start_line) = (0, 1);
    // What the current chunk holds so far: nothing but comments and directives, or more.
    let mut state = State::Prologue;
    let mut offset = 0;
    for (index, line) in lines(text).enumerate() {
        let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        let next = match kind_of(line) {
            LineKind::Start if state == State::Prologue => State::Body,
            LineKind::Start => {
                chunks.push(Chunk { text: &text[start..offset], line: start_line });
                (start, start_line) = (offset, number);
                State::Body
            }
            LineKind::End => {
                let end = offset + line.len();
                chunks.push(Chunk { text: &text[start..end], line: start_line });
                (start, start_line) = (end, number.saturating_add(1));
                State::Prologue
            }
            LineKind::Blank => state,
            LineKind::Directive if state == State::Prologue => State::Prologue,
            LineKind::Directive | LineKind::Content => State::Body,
        };
        state = next;
        offset += line.len();
    }
    if start < text.len() {
        chunks.push(Chunk { text: &text[start..], line: start_line });
    }
    chunks
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Prologue,
    Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Start,
    End,
    Blank,
    Directive,
    Content,
}

fn kind_of(line: &str) -> LineKind {
    let is_marker = |marker: &str| {
        line.strip_prefix(marker)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
    };
    match line.as_bytes().first() {
        Some(b'-') if is_marker("---") => LineKind::Start,
        Some(b'.') if is_marker("...") => LineKind::End,
        Some(b'%') => LineKind::Directive,
        _ => match line.trim_start().as_bytes().first() {
            None | Some(b'#') => LineKind::Blank,
            Some(_) => LineKind::Content,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    fn cut(text: &str) -> Vec<(&str, u32)> {
        split(text).iter().map(|c| (c.text, c.line)).collect()
    }

    #[test]
    fn start_markers_separate_documents() {
        assert_eq!(cut("a: 1\n---\nb: 2\n"), [("a: 1\n", 1), ("---\nb: 2\n", 2)]);
        assert_eq!(cut("--- {a: 1}\n---\tb\n"), [("--- {a: 1}\n", 1), ("---\tb\n", 2)]);
        assert_eq!(cut("a: 1\n---"), [("a: 1\n", 1), ("---", 2)]);
    }

    #[test]
    fn comments_and_directives_belong_to_the_document_below() {
        let text = "# hello\n%YAML 1.1\n---\na: 1\n";
        assert_eq!(cut(text), [(text, 1)]);
        assert_eq!(
            cut("a: 1\n...\n%YAML 1.1\n---\nb: 2\n"),
            [("a: 1\n...\n", 1), ("%YAML 1.1\n---\nb: 2\n", 3)]
        );
    }

    #[test]
    fn what_only_looks_like_a_marker_is_content() {
        let text = "a: |\n  ---\n---b: 1\n....\n";
        assert_eq!(cut(text), [(text, 1)]);
    }

    #[test]
    fn marks_and_line_breaks_of_other_systems_are_understood() {
        assert_eq!(cut("\u{feff}a: 1\r\n---\r\nb: 2"), [("a: 1\r\n", 1), ("---\r\nb: 2", 2)]);
        assert_eq!(cut("a: 1\r---\rb: 2\r"), [("a: 1\r", 1), ("---\rb: 2\r", 2)]);
    }

    #[test]
    fn empty_documents_are_chunks_of_their_own() {
        assert_eq!(cut("---\n---\na: 1"), [("---\n", 1), ("---\na: 1", 2)]);
        assert!(cut("").is_empty());
    }
}
