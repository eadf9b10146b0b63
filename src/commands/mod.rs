//! The commands: one file each. They read files and print; what they print is made by the core.

pub mod bootstrap;
mod completion;
pub mod echo;
pub(crate) mod files;
mod output;
mod schema;
mod translate;
mod validate;
mod version;

use crate::settings::Command;
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Nothing to complain about.
    Fine,
    /// There are findings that are errors.
    Findings,
    /// Usage or I/O.
    Failure,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Fine => 0,
            Exit::Findings => 1,
            Exit::Failure => 2,
        })
    }
}

/// Runs a command.
///
/// # Errors
///
/// What the user cannot mend in configuration: files that are not there, ports in use.
pub fn run(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Serve(args) => crate::serve::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::Translate(args) => translate::run(&args),
        Command::Bootstrap(args) => bootstrap::run(&args),
        Command::Schema => schema::run(),
        Command::Version => version::run(),
        Command::Completion(args) => completion::run(&args),
        Command::Echo(args) => echo::run(&args),
    }
}
