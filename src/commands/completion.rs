//! `pilotfish completion`.

use super::Exit;
use crate::settings::{Cli, CompletionArgs};
use clap::CommandFactory;

/// Prints a completion script.
pub fn run(args: &CompletionArgs) -> anyhow::Result<Exit> {
    clap_complete::generate(args.shell, &mut Cli::command(), "pilotfish", &mut std::io::stdout());
    Ok(Exit::Fine)
}
