//! The serving process: the only file that constructs and connects everything.

use crate::commands::Exit;
use crate::settings::ServeArgs;

/// Serves until SIGTERM.
///
/// # Errors
///
/// A port is in use.
pub fn run(_args: &ServeArgs) -> anyhow::Result<Exit> {
    Ok(Exit::Fine)
}
