//! `scripted-claude`: see [`hive_tests::scripted`].

use std::process::ExitCode;

use clap::Parser as _;
use hive_tests::scripted::{args::Args, run};

fn main() -> ExitCode {
    ExitCode::from(run::run(&Args::parse()))
}
