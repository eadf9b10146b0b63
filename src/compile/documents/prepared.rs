//! A file read and decoded, before anybody asks what is in force.
//!
//! Parsing, decoding and checking are nearly all of the work that a changed file costs, and need
//! nothing but its text. So they are done here, on any thread and for many files at once; only
//! [`DocumentSet::take`](super::DocumentSet::take) needs the set itself.

use super::identity::{Identity, Key};
use crate::config::{Broken, Extent, Field, Header, RawDocument, SourceFile, read};
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::kinds::{self, Decoded, Lower};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is kept of an accepted document. The text and the located tree are not: whoever needs a
/// place after decoding has taken it into the value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<D = Box<dyn Lower>> {
    /// Who the document is.
    pub header: Header,
    /// A hash of its text; equal texts give equal hashes on every machine.
    pub hash: u128,
    /// A hash of what it says, whatever it looks like: comments, spaces and the place in the file
    /// do not count.
    pub meaning: u128,
    /// Where it stands in its file.
    pub extent: Extent,
    /// As its kind understood it.
    pub value: D,
}

impl<D> Entry<D> {
    /// Whether the other is this document at this place. Then their values say the same: a kind
    /// sees nothing of a document but its text, its header and its place.
    pub(super) fn is_same_as(&self, other: &Entry<D>) -> bool {
        self.hash == other.hash && self.extent == other.extent && self.header == other.header
    }
}

/// How kinds are asked: they add their findings and say what became of the document.
pub(super) type DecodeFn<'f, D> = dyn Fn(&RawDocument, &mut Diagnostics) -> Decoded<D> + 'f;

/// A file in its present form, read and decoded.
#[derive(Debug)]
pub struct Prepared<D = Box<dyn Lower>> {
    pub(super) source: SourceFile,
    /// In document order.
    pub(super) documents: Vec<Document<D>>,
    pub(super) foreign: Foreign,
    pub(super) broken: Vec<Broken>,
    /// Sorted.
    pub(super) findings: Vec<Diagnostic>,
}

/// One document of a prepared file.
#[derive(Debug)]
pub(super) struct Document<D> {
    pub identity: Identity,
    pub key: Key,
    pub span: Span,
    pub decoded: Decoded<Arc<Entry<D>>>,
}

/// Of the kinds that are not ours, by kind and version: how many documents, and the first place.
pub(super) type Foreign = BTreeMap<(Arc<str>, Arc<str>), (usize, Span)>;

/// Reads a file and decodes its documents. Needs nothing but the file, so it can run anywhere.
pub fn prepare(source: SourceFile) -> Prepared {
    Prepared::new(source, &kinds::decode)
}

impl<D> Prepared<D> {
    /// Reads a file and asks `decode` about each document.
    pub(super) fn new(source: SourceFile, decode: &DecodeFn<'_, D>) -> Prepared<D> {
        let reading = read(&source);
        let mut findings = Diagnostics::new();
        let mut foreign = Foreign::new();
        let mut documents = Vec::with_capacity(reading.documents.len());
        for raw in reading.documents {
            let identity = Identity::of(&raw.header);
            let span = raw.header.span.clone();
            let decoded = match decode(&raw, &mut findings) {
                Decoded::Accepted(value) => {
                    let meaning = raw.meaning();
                    let RawDocument { header, hash, root, .. } = raw;
                    let extent = root.span;
                    Decoded::Accepted(Arc::new(Entry { header, hash, meaning, extent, value }))
                }
                Decoded::Foreign => {
                    let Header { kind, api_version, .. } = &raw.header;
                    let place = || (0, raw.span(&Field::root("kind")));
                    let key = (kind.clone(), api_version.clone());
                    foreign.entry(key).or_insert_with(place).0 += 1;
                    Decoded::Foreign
                }
                Decoded::Refused => Decoded::Refused,
                Decoded::NotYet => Decoded::NotYet,
            };
            let key = identity.key();
            documents.push(Document { identity, key, span, decoded });
        }
        findings.extend(reading.diagnostics);
        let findings = findings.into_sorted();
        Prepared { source, documents, foreign, broken: reading.broken, findings }
    }

    /// The label of the file.
    pub fn path(&self) -> &Arc<str> {
        &self.source.path
    }
}
