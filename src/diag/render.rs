//! Diagnostics for people and for tools: one function for each form.
//!
//! Excerpts come from the text that the caller hands in, line by line; where a span withholds
//! its text (a Secret), only file, line and column are told.

use super::lines::{lines, without_mark};
use super::{Diagnostic, Excerpt, Related, Severity, Span};
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Whether text is coloured for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// Plain text.
    Never,
    /// With ANSI escapes.
    Always,
}

/// Text for people: what, where with an excerpt, in which document, and how to mend it.
///
/// `sources` gives the text of a file by its label; without it the excerpt is left out.
///
/// ```text
/// error[PF0201]: spec.http[0].timeout: expected a duration such as "5s", found the number 5
///  --> reviews.yaml:9:16
///   |
/// 9 |       timeout: 5
///   |                ^
///   |
///   = in: VirtualService default/reviews
///   = help: write the unit
/// ```
pub fn text(
    diagnostics: &[Diagnostic],
    sources: &dyn Fn(&str) -> Option<Arc<str>>,
    color: Color,
) -> String {
    let renderer = match color {
        Color::Never => Renderer::plain(),
        Color::Always => Renderer::styled(),
    };
    let mut sources = Sources { read: sources, known: BTreeMap::new() };
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&renderer.render(&report(diagnostic, &mut sources)));
        out.push_str("\n\n");
    }
    out
}

/// One line for each finding.
pub fn concise(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|d| format!("{d}\n")).collect()
}

/// JSON for tools: an array with one object for each finding, in the given order.
///
/// Each object has all of these keys: `code` (`"PF0201"`), `name` (`"invalid-value"`),
/// `severity` (`"error"`, `"warning"` or `"info"`), `message`; `file`, `line`, `column`,
/// `endLine`, `endColumn` (from 1, columns in characters, the end exclusive), `object`, `field`
/// and `help`, which are `null` where they are not known; and `related`, an array of objects
/// with the five keys of a place and `message`. Keys may be added, never renamed.
pub fn json(diagnostics: &[Diagnostic]) -> serde_json::Value {
    diagnostics
        .iter()
        .map(|diagnostic| {
            let info = diagnostic.code.info();
            serde_json::json!({
                "code": info.id,
                "name": info.name,
                "severity": diagnostic.severity.as_str(),
                "file": diagnostic.span.as_ref().map(|span| &*span.file),
                "line": diagnostic.span.as_ref().map(|span| span.start.line),
                "column": diagnostic.span.as_ref().map(|span| span.start.column),
                "endLine": diagnostic.span.as_ref().map(|span| span.end.line),
                "endColumn": diagnostic.span.as_ref().map(|span| span.end.column),
                "object": diagnostic.object,
                "field": diagnostic.field,
                "message": diagnostic.message,
                "help": diagnostic.help,
                "related": diagnostic.related.iter().map(related_json).collect::<Vec<_>>(),
            })
        })
        .collect()
}

fn related_json(related: &Related) -> serde_json::Value {
    serde_json::json!({
        "file": &*related.span.file,
        "line": related.span.start.line,
        "column": related.span.start.column,
        "endLine": related.span.end.line,
        "endColumn": related.span.end.column,
        "message": related.message,
    })
}

fn report<'a>(diagnostic: &'a Diagnostic, sources: &mut Sources<'_>) -> Vec<Group<'a>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let title = match &diagnostic.field {
        Some(field) => format!("{field}: {}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let mut main = level.primary_title(title).id(diagnostic.code.info().id).elements(
        diagnostic.span.iter().map(|span| sources.excerpt(span, AnnotationKind::Primary)),
    );
    if let Some(object) = &diagnostic.object {
        main = main.element(Level::NOTE.with_name("in").message(object));
    }
    if let Some(help) = &diagnostic.help {
        main = main.element(Level::HELP.message(help));
    }
    let mut groups = vec![main];
    groups.extend(diagnostic.related.iter().map(|related| {
        Level::NOTE
            .secondary_title(&related.message)
            .element(sources.excerpt(&related.span, AnnotationKind::Primary))
    }));
    groups
}

/// The texts of the files that diagnostics speak about, each split into lines once.
struct Sources<'s> {
    read: &'s dyn Fn(&str) -> Option<Arc<str>>,
    known: BTreeMap<Arc<str>, Option<Lines>>,
}

struct Lines {
    text: Arc<str>,
    /// Where the lines are in the text, without their breaks.
    ranges: Vec<Range<usize>>,
}

impl Lines {
    fn new(text: Arc<str>) -> Lines {
        let content = without_mark(&text);
        let mut at = text.len() - content.len();
        let mut ranges = Vec::new();
        for line in lines(content) {
            ranges.push(at..at + line.trim_end_matches(['\r', '\n']).len());
            at += line.len();
        }
        Lines { text, ranges }
    }

    /// The first line of the span, and the part of it that the span covers.
    fn find(&self, span: &Span) -> Option<(&str, Range<usize>)> {
        let index = usize::try_from(span.start.line).ok()?.checked_sub(1)?;
        // The place after the last line break is a place, too.
        let line = match self.ranges.get(index) {
            Some(range) => self.text.get(range.clone())?,
            None if index == self.ranges.len() => "",
            None => return None,
        };
        let offset = |column: u32| {
            let skipped = usize::try_from(column).unwrap_or(usize::MAX).saturating_sub(1);
            line.char_indices().nth(skipped).map_or(line.len(), |(at, _)| at)
        };
        let start = offset(span.start.column);
        let end = match span.start.line == span.end.line {
            true => offset(span.end.column),
            false => line.len(),
        };
        Some((line, start..end.max(start)))
    }
}

impl Sources<'_> {
    fn excerpt<'a>(&mut self, span: &Span, kind: AnnotationKind) -> Element<'a> {
        let found = match span.excerpt {
            Excerpt::Withheld => None,
            Excerpt::Shown => self.lines(&span.file).and_then(|lines| lines.find(span)),
        };
        let path = span.file.to_string();
        let line = usize::try_from(span.start.line).unwrap_or(usize::MAX);
        match found {
            Some((text, range)) => Snippet::source(text.to_owned())
                .line_start(line)
                .path(path)
                .annotation(kind.span(range))
                .into(),
            None => {
                let column = usize::try_from(span.start.column).unwrap_or(usize::MAX);
                Origin::path(path).line(line).char_column(column).into()
            }
        }
    }

    fn lines(&mut self, file: &Arc<str>) -> Option<&Lines> {
        let read = self.read;
        self.known.entry(file.clone()).or_insert_with(|| read(file).map(Lines::new)).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::{Color, concise, json, text};
    use crate::diag::{Code, Diagnostic, Excerpt, Position, Span};
    use std::sync::Arc;

    const SOURCE: &str = "\u{feff}kind: X\r\nspec:\r\n  überlänge: 5x # why\r\n";

    fn span(line: u32, column: u32, end: u32) -> Span {
        Span {
            file: "dir/a.yaml".into(),
            start: Position { line, column },
            end: Position { line, column: end },
            excerpt: Excerpt::Shown,
        }
    }

    fn full() -> Diagnostic {
        Diagnostic::new(Code::InvalidValue, "expected a duration, found the string \"5x\"")
            .at(span(3, 14, 16))
            .on("X default/x")
            .field("spec.überlänge")
            .help("write a unit")
            .related(span(1, 7, 8), "this is the kind")
    }

    fn plain(diagnostics: &[Diagnostic]) -> String {
        let sources = |path: &str| (path == "dir/a.yaml").then(|| Arc::from(SOURCE));
        text(diagnostics, &sources, Color::Never)
    }

    #[test]
    fn text_shows_the_place_with_a_caret() {
        let expected = "\
error[PF0201]: spec.überlänge: expected a duration, found the string \"5x\"
 --> dir/a.yaml:3:14
  |
3 |   überlänge: 5x # why
  |              ^^
  |
  = in: X default/x
  = help: write a unit
note: this is the kind
 --> dir/a.yaml:1:7
  |
1 | kind: X
  |       ^

";
        assert_eq!(plain(&[full()]), expected);
    }

    #[test]
    fn text_of_a_secret_is_withheld() {
        let mut diagnostic = full();
        for span in
            diagnostic.span.iter_mut().chain(diagnostic.related.iter_mut().map(|r| &mut r.span))
        {
            span.excerpt = Excerpt::Withheld;
        }
        let text = plain(&[diagnostic]);
        assert!(text.contains("dir/a.yaml:3:14"), "{text}");
        assert!(!text.contains("# why") && !text.contains("kind: X"), "{text}");
    }

    #[test]
    fn places_outside_the_text_do_no_harm() {
        for (line, column) in [(0, 0), (1, 99), (3, 200), (4, 1), (5, 1), (u32::MAX, u32::MAX)] {
            let place = Span::point("dir/a.yaml".into(), line, column);
            let other = Span { file: "gone.yaml".into(), ..place.clone() };
            let text = plain(&[
                Diagnostic::new(Code::NoEffect, "m").at(place),
                Diagnostic::new(Code::NoEffect, "m").at(other),
                Diagnostic::new(Code::NoEffect, "m"),
            ]);
            assert_eq!(text.matches("warning[PF0207]: m").count(), 3, "{text}");
        }
    }

    #[test]
    fn long_spans_show_their_first_line() {
        let mut place = span(2, 1, 1);
        place.end.line = 4;
        let text = plain(&[Diagnostic::new(Code::NoEffect, "m").at(place)]);
        assert!(
            text.contains("2 | spec:") && text.contains("^^^^^") && !text.contains("3 |"),
            "{text}"
        );
    }

    #[test]
    fn colour_is_escapes_and_nothing_else() {
        let sources = |_: &str| None;
        assert!(text(&[full()], &sources, Color::Always).contains('\u{1b}'));
        assert!(!text(&[full()], &sources, Color::Never).contains('\u{1b}'));
    }

    #[test]
    fn concise_is_one_line_each() {
        let expected = "dir/a.yaml:3:14: error[PF0201]: spec.überlänge: expected a duration, found \
                        the string \"5x\" (X default/x); write a unit\n\
                        warning[PF0207]: m\n";
        assert_eq!(concise(&[full(), Diagnostic::new(Code::NoEffect, "m")]), expected);
    }

    #[test]
    fn json_has_every_key() {
        let expected = serde_json::json!([
            {
                "code": "PF0201", "name": "invalid-value", "severity": "error",
                "file": "dir/a.yaml", "line": 3, "column": 14, "endLine": 3, "endColumn": 16,
                "object": "X default/x", "field": "spec.überlänge",
                "message": "expected a duration, found the string \"5x\"", "help": "write a unit",
                "related": [{
                    "file": "dir/a.yaml", "line": 1, "column": 7, "endLine": 1, "endColumn": 8,
                    "message": "this is the kind",
                }],
            },
            {
                "code": "PF0106", "name": "kind-ignored", "severity": "info",
                "file": null, "line": null, "column": null, "endLine": null, "endColumn": null,
                "object": null, "field": null, "message": "m", "help": null, "related": [],
            },
        ]);
        assert_eq!(json(&[full(), Diagnostic::new(Code::KindIgnored, "m")]), expected);
    }
}
