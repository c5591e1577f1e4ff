//! `hivectl inbox [AGENT]`: what waits there.

use clap::Args;
use hive_core::message::OPERATOR;
use hive_proto::v1::DeliveryState;

use super::{follow, thread};
use crate::command::choice::choice;
use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::delivery::Delivery;

/// Where a delivery stands.
const STATES: [(&str, DeliveryState); 7] = [
    ("ready", DeliveryState::Ready),
    ("leased", DeliveryState::Leased),
    ("held", DeliveryState::Held),
    ("dead", DeliveryState::Dead),
    ("acked", DeliveryState::Acked),
    ("dropped", DeliveryState::Dropped),
    ("superseded", DeliveryState::Superseded),
];

/// List an inbox.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Whose [default: the operator's]
    #[arg(add = complete::agents_and_operator())]
    agent: Option<String>,
    /// Only deliveries in this state; may be repeated [default: all that are not settled]
    #[arg(long, value_name = "STATE", value_parser = choice(&STATES))]
    state: Vec<DeliveryState>,
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

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let inbox = self.agent.as_deref().unwrap_or(OPERATOR);
        if self.follow {
            return follow::run(context, &broker, inbox).await;
        }
        let states = if self.all { STATES.map(|(_, state)| state).to_vec() } else { self.state };
        let deliveries: Vec<Delivery> =
            fetch::deliveries(&broker, inbox, &states, fetch::ALL).await?;
        if self.threads {
            context.out.list(&thread::threads(&broker, deliveries).await?)?;
        } else {
            context.out.list(&deliveries)?;
        }
        Ok(())
    }
}
