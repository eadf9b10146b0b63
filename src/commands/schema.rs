//! `pilotfish schema`.

use super::Exit;

/// Prints one JSON Schema for all kinds.
pub fn run() -> anyhow::Result<Exit> {
    println!("{:#}", crate::kinds::schema());
    Ok(Exit::Fine)
}
