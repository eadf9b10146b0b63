//! Why a planned thing is there: what people ask first when a request takes a way that they did not
//! expect.

use crate::diag::Span;
use crate::model::{ObjectName, Origin};

/// The reason for a planned thing, and the documents that it comes from, the decisive one first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Because {
    /// The reason, as a short phrase that goes on after "because of": `a port of the service`.
    pub reason: &'static str,
    /// Where it is written. Empty for what every proxy has.
    pub sources: Vec<Source>,
}

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Source {
    /// The kind, `VirtualService`.
    pub kind: &'static str,
    /// Namespace and name.
    pub name: ObjectName,
    /// The part of the document that says so.
    pub span: Span,
}

impl Because {
    /// Something that is there whatever is configured.
    pub fn always(reason: &'static str) -> Because {
        Because { reason, sources: Vec::new() }
    }

    /// Something that a part of a document asks for.
    pub fn of(reason: &'static str, origin: &Origin, span: &Span) -> Because {
        Because { reason, sources: vec![Source::new(origin, span)] }
    }

    /// And that another one has a say in.
    #[must_use]
    pub fn and(mut self, origin: &Origin, span: &Span) -> Because {
        self.sources.push(Source::new(origin, span));
        self
    }
}

impl Source {
    fn new(origin: &Origin, span: &Span) -> Source {
        Source { kind: origin.kind, name: origin.name.clone(), span: span.clone() }
    }
}
