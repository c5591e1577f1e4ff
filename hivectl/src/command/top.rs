//! `hivectl top`: the hive on a screen.

use clap::Args;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::top;

/// The hive on a screen, live: what waits on you and what is stuck first, then the agents.
///
/// Answers, redrives, releases and cancels with one key; `?` lists them. Needs a terminal; for
/// programs there is `hivectl status --json`.
#[derive(Args, Debug)]
pub(crate) struct Top {}

impl Top {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let Self {} = self;
        top::run(context).await
    }
}
