//! Snapshot x View -> one decided value, made once and used by all types.
//!
//! Everything is settled here: which clusters, listeners, chains and routes there are, what each
//! is made of, and why. `envoy` then only spells it out, and `seal` makes bytes of that. No YAML and
//! no protobuf is seen here.

pub mod assignment;
mod because;
pub mod cluster;
pub mod listener;
pub mod route;
pub mod secret;

pub use because::{Because, Source};
