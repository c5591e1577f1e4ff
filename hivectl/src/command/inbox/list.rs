//! `hivectl inbox [AGENT]`: what waits there.

use clap::{Args, ValueEnum};
use hive_core::message::OPERATOR;
use hive_proto::v1::DeliveryState;

use super::{follow, thread};
use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::fetch;
use crate::view::delivery::Delivery;

/// List an inbox.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Whose [default: the operator's]
    #[arg(add = complete::agents_and_operator())]
    agent: Option<String>,
    /// Only deliveries in this state; may be repeated [default: all that are not settled]
    #[arg(long, value_enum, value_name = "STATE")]
    state: Vec<State>,
    /// Settled ones too, as long as they are kept
    #[arg(long, conflicts_with = "state")]
    all: bool,
    /// Show the mail in full, and go on with what arrives, until Ctrl-C
    #[arg(long, conflicts_with_all = ["state", "all"])]
    follow: bool,
    /// One line for each thread, a message with all replies below it
    #[arg(long, conflicts_with = "follow")]
    threads: bool,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Ready,
    Leased,
    Held,
    Dead,
    Acked,
    Dropped,
    Superseded,
}

impl From<State> for DeliveryState {
    fn from(state: State) -> Self {
        match state {
            State::Ready => Self::Ready,
            State::Leased => Self::Leased,
            State::Held => Self::Held,
            State::Dead => Self::Dead,
            State::Acked => Self::Acked,
            State::Dropped => Self::Dropped,
            State::Superseded => Self::Superseded,
        }
    }
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let inbox = self.agent.as_deref().unwrap_or(OPERATOR);
        if self.follow {
            return follow::run(context, &broker, inbox).await;
        }
        let states: Vec<DeliveryState> = if self.all {
            State::value_variants().iter().copied().map(DeliveryState::from).collect()
        } else {
            self.state.into_iter().map(DeliveryState::from).collect()
        };
        let deliveries: Vec<Delivery> =
            fetch::deliveries(&broker, inbox, &states, fetch::ALL).await?;
        if self.threads {
            context.out.list(&thread::threads(&broker, deliveries).await?)?;
        } else {
            context.out.list(&deliveries)?;
        }
        Ok(Exit::Ok)
    }
}
