//! What the user wrote, with positions, nothing resolved.
//!
//! ```text
//! SourceFile --split--> text of one document --yaml--> Node tree --document--> RawDocument
//!                                                          |
//!                              decode::<T>() + Findings <--+   (called by the kinds)
//! ```
//!
//! Each document of a file is parsed once and on its own, so a broken one does not take its
//! neighbours with it. The tree keeps line and column for every key and value. Kinds decode
//! their serde types out of it with [`decode`], and check rules through [`Findings`]; both
//! speak in field paths and come out as `file:line:col`.

mod access;
mod decode;
mod deserializer;
mod document;
mod empty;
mod error;
mod field;
mod findings;
mod header;
mod lenient;
mod nameless;
mod node;
mod problem;
mod pruned;
mod recover;
mod scalar;
mod source;
mod split;
mod suggest;
mod syntax;
#[cfg(test)]
mod tests;
mod yaml;

pub use decode::{decode, decode_rest};
pub use document::{Broken, Header, RawDocument, Reading, read};
pub use field::{Field, Step};
pub use findings::Findings;
pub use nameless::read_nameless;
pub use node::{Extent, Found, Key, Node, Value};
pub use pruned::Pruned;
pub use recover::PartialIdentity;
pub use source::{SecretFiles, SourceFile};
pub use suggest::nearest;
pub use yaml::{MAX_ALIAS_WEIGHT, MAX_DEPTH, MAX_DOCUMENT_BYTES};
