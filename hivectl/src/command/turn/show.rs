//! `hivectl turn show`: a turn, and its output as it comes.

use clap::Args;
use hive_proto::v1::{GetTurnRequest, WatchTurnRequest};

use crate::complete;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::interrupt::until_interrupted;
use crate::view::turn::Turn;
use crate::view::turn_event::TurnEvent;

/// Show a turn; with --output or --follow also what it printed.
///
/// As JSON, --output and --follow print the lines only, one object each.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The turn
    #[arg(add = complete::turns())]
    id: u64,
    /// Show the output that is kept
    #[arg(long)]
    output: bool,
    /// Show the output, and go on with it until the turn ends, or Ctrl-C
    #[arg(long)]
    follow: bool,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let turn = read(&broker, self.id).await?;
        if !(self.output || self.follow) {
            context.out.one(&turn)?;
            return Ok(Exit::Ok);
        }
        if until_interrupted(lines(context, &broker, self.id, self.follow)).await.transpose()?.is_none() {
            return Ok(Exit::Ok);
        }
        if self.follow && !context.out.json {
            let ending = format!("turn {} of {}: {}", self.id, turn.agent, read(&broker, self.id).await?.ending());
            context.out.line(&ending)?;
        }
        Ok(Exit::Ok)
    }
}

async fn read(broker: &Broker, turn_id: u64) -> Result<Turn, Failure> {
    let turn = broker.read(broker.turns().get_turn(GetTurnRequest { turn_id })).await?.turn;
    Ok(turn.ok_or(Failure::Incomplete { field: "turn" })?.into())
}

async fn lines(context: &mut Context, broker: &Broker, turn_id: u64, follow: bool) -> Result<(), Failure> {
    let request = WatchTurnRequest { turn_id, after_sequence: 0, follow };
    let mut stream = broker.read(broker.turns().watch_turn(request)).await?;
    while let Some(some) = stream.message().await? {
        for event in some.events {
            context.out.one(&TurnEvent::from(event))?;
        }
    }
    Ok(())
}
