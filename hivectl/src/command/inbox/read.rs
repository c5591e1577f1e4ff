//! `hivectl inbox read`: one delivery with its whole body.

use clap::Args;
use hive_core::message::OPERATOR;
use hive_proto::v1::{DeliveryState, GetMessageRequest};

use super::thread;
use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::message::Message;

/// Show a delivery with its whole body. It stays unread.
#[derive(Args, Debug)]
pub(crate) struct Read {
    /// The message
    #[arg(add = complete::mail())]
    id: u64,
    /// Whose inbox [default: the operator's]
    #[arg(long, value_name = "NAME", add = complete::agents_and_operator())]
    agent: Option<String>,
    /// Only the message itself, wherever it is
    #[arg(long, conflicts_with = "agent")]
    message: bool,
    /// The whole thread of the message, in order: what it answers, and all replies
    #[arg(long, conflicts_with_all = ["agent", "message"])]
    thread: bool,
}

impl Read {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        // First of all: is there such a message at all? Then the answer for a wrong id is the
        // broker's own.
        let message = broker
            .read(broker.messages().get_message(GetMessageRequest { message_id: self.id }))
            .await?
            .message;
        let message = Message::from(message.ok_or(Failure::Incomplete { field: "message" })?);
        if self.thread {
            context.out.each(&thread::whole(&broker, message).await?)?;
            return Ok(Exit::Ok);
        }
        if self.message {
            context.out.one(&message)?;
            return Ok(Exit::Ok);
        }
        let inbox = self.agent.as_deref();
        let unsettled = super::deliveries(&broker, inbox, &[]).await?;
        let found = unsettled.into_iter().find(|delivery| delivery.message.id == self.id);
        let found = match found {
            Some(delivery) => Some(delivery),
            None => {
                let settled =
                    [DeliveryState::Acked, DeliveryState::Dropped, DeliveryState::Superseded];
                super::deliveries(&broker, inbox, &settled)
                    .await?
                    .into_iter()
                    .find(|delivery| delivery.message.id == self.id)
            }
        };
        let delivery = found.ok_or_else(|| Failure::NotInInbox {
            id: self.id,
            agent: inbox.unwrap_or(OPERATOR).to_owned(),
        })?;
        context.out.one(&delivery)?;
        Ok(Exit::Ok)
    }
}
