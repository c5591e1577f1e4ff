//! `scripted-claude`: see [`hive_scripted`].

use std::process::ExitCode;

use clap::Parser as _;
use hive_scripted::{args::Args, run};

fn main() -> ExitCode {
    ExitCode::from(run::run(&Args::parse()))
}
