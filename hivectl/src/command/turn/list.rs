//! `hivectl turn list`: turns, newest first.

use clap::Args;
use hive_proto::v1::ListTurnsRequest;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::turn::Turn;

/// List turns, newest first.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Whose [default: everyone's]
    #[arg(add = complete::agents())]
    agent: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
    last: u32,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let request = ListTurnsRequest {
            page_size: self.last,
            page_token: String::new(),
            agent: self.agent.unwrap_or_default(),
        };
        let turns = broker.read(broker.turns().list_turns(request)).await?.turns;
        let turns: Vec<Turn> = turns.into_iter().map(Turn::from).collect();
        context.out.list(&turns)?;
        Ok(Exit::Ok)
    }
}
