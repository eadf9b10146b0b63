//! `pilotfish version`.

use super::Exit;

/// Prints the version, and the Envoy that its output is tested with.
pub fn run() -> anyhow::Result<Exit> {
    println!("pilotfish {} (tested with Envoy 1.40)", env!("CARGO_PKG_VERSION"));
    Ok(Exit::Fine)
}
