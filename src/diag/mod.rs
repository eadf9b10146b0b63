//! What we tell users about their configuration.
//!
//! Every sentence that a user can see about a document is a [`Diagnostic`]: a stable code, a
//! severity, a place, what is wrong, and how to mend it. Core stages return them beside their
//! value; nothing in the core prints or logs.

mod code;
mod lines;
mod render;

pub use code::{Code, CodeInfo};
pub(crate) use lines::{lines, without_mark};
pub use render::{Color, concise, json, text};

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// How bad a finding is. The order is the order of badness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing to mend.
    Info,
    /// Served, but probably not what was meant.
    Warning,
    /// Not served (the document, or the part that the diagnostic names).
    Error,
}

impl Severity {
    /// The word used in every output format.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A place in a text: line and column, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Whether the text at a place may be shown to people. It is part of the place, so that no
/// output can forget to ask: what is inside a Secret is withheld wherever it turns up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Excerpt {
    /// Ordinary configuration.
    #[default]
    Shown,
    /// Part of a Secret: only file, line and column are told.
    Withheld,
}

/// A range in one source file; `end` is exclusive.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The label of the file as the user named it, with `/` as separator.
    pub file: Arc<str>,
    /// First character.
    pub start: Position,
    /// One past the last character.
    pub end: Position,
    /// Whether the text itself may be shown.
    pub excerpt: Excerpt,
}

impl Span {
    /// A span that covers one character of ordinary configuration.
    pub fn point(file: Arc<str>, line: u32, column: u32) -> Span {
        Span {
            file,
            start: Position { line, column },
            end: Position { line, column: column.saturating_add(1) },
            excerpt: Excerpt::Shown,
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.start.line, self.start.column)
    }
}

/// A second place that explains the first ("first defined here").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Related {
    /// Where.
    pub span: Span,
    /// What is there, as a short phrase.
    pub message: String,
}

/// One finding about the user's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// Stable code; tools may match on it.
    pub code: Code,
    /// How bad it is. Usually the code's own severity.
    pub severity: Severity,
    /// The narrowest place, where there is one.
    pub span: Option<Span>,
    /// The document, as `VirtualService default/reviews`.
    pub object: Option<String>,
    /// The field path, as `spec.http[0].route[1].destination.host`.
    pub field: Option<String>,
    /// What is wrong: one sentence without a final full stop.
    pub message: String,
    /// How to mend it: one sentence without a final full stop.
    pub help: Option<String>,
    /// Other places that matter.
    pub related: Vec<Related>,
}

impl Diagnostic {
    /// A finding with the code's own severity and no place yet.
    pub fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.info().severity,
            span: None,
            object: None,
            field: None,
            message: message.into(),
            help: None,
            related: Vec::new(),
        }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, span: Span) -> Diagnostic {
        self.span = Some(span);
        self
    }

    /// Sets the document.
    #[must_use]
    pub fn on(mut self, object: impl Into<String>) -> Diagnostic {
        self.object = Some(object.into());
        self
    }

    /// Sets the field path.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Diagnostic {
        self.field = Some(field.into());
        self
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds a second place.
    #[must_use]
    pub fn related(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.related.push(Related { span, message: message.into() });
        self
    }

    fn order(&self, other: &Diagnostic) -> Ordering {
        // Findings without a place come last; within a place the worst comes first.
        match (&self.span, &other.span) {
            (Some(a), Some(b)) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
        .then_with(|| other.severity.cmp(&self.severity))
        .then_with(|| self.code.cmp(&other.code))
        .then_with(|| self.object.cmp(&other.object))
        .then_with(|| self.field.cmp(&other.field))
        .then_with(|| self.message.cmp(&other.message))
    }
}

impl fmt::Display for Diagnostic {
    /// The one-line form: `file:line:col: severity[CODE]: field: message (object); help`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(span) = &self.span {
            write!(f, "{span}: ")?;
        }
        write!(f, "{}[{}]: ", self.severity, self.code)?;
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(object) = &self.object {
            write!(f, " ({object})")?;
        }
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

/// Collects findings; [`Diagnostics::into_sorted`] gives them in file order without repeats.
#[derive(Debug, Clone, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// An empty collector.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds one finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds many.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(diagnostics);
    }

    /// Whether an error was collected.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }

    /// What was collected so far, in order of arrival.
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.list
    }

    /// File order, repeats dropped: the same input gives the same list in any reading order.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by(Diagnostic::order);
        self.list.dedup();
        self.list
    }
}
