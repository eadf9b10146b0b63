//! Documents -> an immutable [`Snapshot`]: what all of them mean together.
//!
//! A [`Compiler`] lowers documents, sorts by Istio's precedence, merges what speaks about one thing,
//! and checks what documents say about each other. It is total: what dangles is a finding, never a
//! failure. It remembers the last snapshot, so that a change costs what it touches: what did not
//! change is the same `Arc` in the next one, down to the halves and the snapshot itself.

mod compiler;
mod delegates;
mod destination_rules;
mod documents;
mod references;
mod services;
mod shares;
mod workspace;

pub use documents::{DocumentSet, Entry, Identity, Prepared, prepare};
pub use workspace::{Compiled, Workspace};
