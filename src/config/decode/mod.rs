//! Located trees to documents and typed values, with every error and unknown field in one run.
//!
//! ```text
//! SourceFile --read--> RawDocument: Header and tree
//!                          |
//!                          +--section: decode::<T>()--> T   serde, through deserializer
//!                          +--findings: Findings            rules of the kinds
//! ```
//!
//! Both speak in field paths ([`Field`]); the document turns a path into a place.

mod context;
mod deserializer;
mod document;
mod empty;
mod error;
mod field;
mod findings;
mod header;
mod nameless;
mod place;
mod pruned;
mod read;
mod section;
mod suggest;
#[cfg(test)]
mod tests;

pub use document::{Header, RawDocument};
pub use field::{Field, Step};
pub use findings::Findings;
pub use nameless::read_nameless;
pub use pruned::Pruned;
pub use read::{Broken, Reading, read};
pub use section::{decode, decode_rest};
pub use suggest::nearest;
