//! `hivectl config`: the configuration file.

mod check;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;

/// Check a configuration file.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Read a file with the daemon's own code; exit code 8 if something is wrong with it
    Check(check::Check),
}

impl Config {
    pub(crate) fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        match self {
            Self::Check(check) => check.run(context),
        }
    }
}
