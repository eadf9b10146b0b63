//! `pilotfish schema`.

use super::{Exit, output};

/// Prints one JSON Schema for all kinds.
pub fn run() -> anyhow::Result<Exit> {
    output::print(&format!("{:#}\n", crate::kinds::schema()))?;
    Ok(Exit::Fine)
}
