//! pilotfish: Istio's traffic API for Envoy fleets that have no Kubernetes.
//!
//! ```text
//!      imperative shell             functional core                 imperative shell
//!  +-----------------------+   +-----------------------------+   +-----------------------+
//!  | watch     files       |   | config    text -> documents |   | push    queue, pushes |
//!  |   |                   |   |   | kinds                   |   |   |                   |
//!  |   | settle            |-->| compile   docs -> Snapshot  |-->| server  tonic streams |
//!  | settings  flags, env  |   |   | model                   |   |   |                   |
//!  | commands  the CLI     |   | generate  Snapshot x Proxy  |<--| admin   ready, debug  |
//!  +-----------------------+   |           -> xDS            |   +-----------------------+
//!                              | ads       request->actions  |
//!                              +-----------------------------+
//!        diagnostics (diag) flow out of every core stage, beside the value
//! ```
//!
//! The modules below are in reading order. `ARCHITECTURE.md` has the invariants with their
//! reasons; `tests/architecture.rs` checks them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Leaves.
pub mod diag;
pub mod xds;

// Core: what the user wrote, and what it means.
pub mod ads;
pub mod compile;
pub mod config;
pub mod generate;
pub mod kinds;
pub mod model;
pub mod proxy;

// Shell: files, clocks, sockets.
pub mod admin;
pub mod commands;
pub mod push;
pub mod serve;
pub mod server;
pub mod settings;
pub mod telemetry;
pub mod watch;
