//! Text to located trees: YAML as Kubernetes tooling reads it, with line and column of every key and
//! value, and within limits.
//!
//! ```text
//! text of a file --split--> text of one document --parse--> Node
//!                                  |
//!                                  +--recover--> who it was, where it cannot be parsed
//! ```
//!
//! Nothing here knows what the documents mean, and no finding is made here: what is wrong comes
//! out as a [`Problem`] with its place in the text.

mod lenient;
mod node;
mod parse;
mod problem;
mod recover;
mod scalar;
mod split;
mod syntax;
#[cfg(test)]
mod tests;

pub use node::{Extent, Key, Node, Value};
pub use parse::{MAX_ALIAS_WEIGHT, MAX_DEPTH, MAX_DOCUMENT_BYTES};
pub use recover::PartialIdentity;

pub(super) use node::point;
pub(super) use parse::parse;
pub(super) use problem::Problem;
pub(super) use recover::{identities, may_be_secret};
pub(super) use scalar::plain;
pub(super) use split::{Chunk, split};
