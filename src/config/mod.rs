//! What the user wrote, with positions, nothing resolved.
//!
//! ```text
//! SourceFile --yaml--> located trees --decode--> RawDocuments, and of each its typed value
//! ```
//!
//! `yaml` knows text and trees, and nothing of what is in them. `decode` knows what
//! a configuration object looks like and how serde's types are filled from a tree; it uses `yaml`,
//! never the other way round.
//!
//! Each document of a file is parsed once and on its own, so a broken one does not take its
//! neighbours with it. The tree keeps line and column for every key and value. Kinds decode
//! their serde types out of it with [`decode()`], and check rules through [`Findings`]; both
//! speak in field paths and come out as `file:line:col`.

mod decode;
mod source;
mod yaml;

pub use decode::{
    Broken, Field, Findings, Header, Pruned, RawDocument, Reading, Step, decode, decode_rest,
    nearest, read, read_nameless,
};
pub use source::{SecretFiles, SourceFile};
pub use yaml::{
    Extent, Key, MAX_ALIAS_WEIGHT, MAX_DEPTH, MAX_DOCUMENT_BYTES, Node, PartialIdentity, Value,
};
