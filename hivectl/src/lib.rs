//! `hivectl`: the operator's hands.
//!
//! What it is not: it keeps no state and decides nothing; it reads every fact that it prints from
//! the broker, over the operator's socket. `hivectl up` is the exception: it runs a whole hive as
//! child processes in the foreground.
//!
//! Invariants: data goes to stdout and everything else to stderr; each kind of end has its exit
//! code (see [`exit`]); text of peers cannot control the terminal.

pub mod cli;
mod command;
mod complete;
mod connect;
mod context;
mod error;
pub mod exit;
mod feed;
mod fetch;
mod input;
mod interrupt;
mod new_file;
mod output;
mod report;
pub mod schema;
mod span;
mod spawn;
mod supervise;
mod top;
mod view;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

/// Parses the command line, runs the command and reports how it ended.
#[must_use]
pub fn main() -> ExitCode {
    if let Some(exit) = supervise::become_program(std::env::args_os().skip(1)) {
        return exit;
    }
    if let Some(exit) = complete::answer(cli::Cli::command) {
        return exit;
    }
    // One thread is enough for a client, and `up` needs its children to be started by a thread that
    // lives as long as the process.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report::report(&error::Failure::Runtime(error)),
    };
    let cli = cli::Cli::parse();
    let ended = runtime.block_on(cli.run());
    // A pending read of the terminal must not keep the process alive.
    runtime.shutdown_background();
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => report::report(&failure),
    }
}
