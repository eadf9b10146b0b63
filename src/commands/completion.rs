//! `pilotfish completion`.

use super::{Exit, output};
use crate::settings::{Cli, CompletionArgs};
use clap::CommandFactory;

/// Prints a completion script.
pub fn run(args: &CompletionArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pilotfish", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(Exit::Fine)
}
