//! `hivectl inbox read`: one delivery with its whole body.

use clap::Args;
use hive_core::message::OPERATOR;
use hive_proto::v1::DeliveryState;

use super::thread;
use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::delivery::Delivery;
use crate::view::message::Message;

/// States of settled deliveries, which are searched last.
const SETTLED: [DeliveryState; 3] =
    [DeliveryState::Acked, DeliveryState::Dropped, DeliveryState::Superseded];

#[derive(Args, Debug)]
pub(crate) struct Read {
    /// The message
    #[arg(add = complete::mail())]
    id: u64,
    /// The inbox [default: the operator's]
    #[arg(long, value_name = "NAME", add = complete::agents_and_operator())]
    agent: Option<String>,
    /// Only the message itself, in whatever inbox it is
    #[arg(long, conflicts_with = "agent")]
    message: bool,
    /// The whole thread of the message, in order: the messages that it answers, and all replies
    #[arg(long, conflicts_with_all = ["agent", "message"])]
    thread: bool,
}

impl Read {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        // First of all: is there such a message at all? Then the answer for a wrong id is the
        // broker's own.
        let message: Message = fetch::message(&broker, self.id).await?;
        if self.thread {
            context.out.each(&thread::whole(&broker, message).await?)?;
            return Ok(());
        }
        if self.message {
            context.out.one(&message)?;
            return Ok(());
        }
        let inbox = self.agent.as_deref().unwrap_or(OPERATOR);
        for states in [&[][..], &SETTLED] {
            let deliveries: Vec<Delivery> =
                fetch::deliveries(&broker, inbox, states, fetch::ALL).await?;
            if let Some(found) = deliveries.iter().find(|found| found.message.id == self.id) {
                context.out.one(found)?;
                return Ok(());
            }
        }
        Err(Failure::NotInInbox { id: self.id, agent: inbox.to_owned() })
    }
}
