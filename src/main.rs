//! The `pilotfish` binary: it reads the command line, runs the command and maps the exit code.

use clap::Parser;
use pilotfish::commands;
use pilotfish::settings::Cli;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::run(Cli::parse().command) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("pilotfish: {error:#}");
            commands::Exit::Failure.into()
        }
    }
}
