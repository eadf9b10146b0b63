//! `pilotfish version`.

use super::{Exit, output};

/// Prints the version, and the Envoy that its output is tested with.
pub fn run() -> anyhow::Result<Exit> {
    output::print(concat!("pilotfish ", env!("CARGO_PKG_VERSION"), " (tested with Envoy 1.40)\n"))?;
    Ok(Exit::Fine)
}
