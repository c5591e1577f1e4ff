//! `hivectl inbox ack`: mark mail as done.

use clap::Args;
use hive_core::message::OPERATOR;
use hive_core::reason::Reason;
use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::{AckDeliveryRequest, DeliveryKey, DeliveryState};

use crate::complete;
use crate::connect::{Broker, Inbox, request_id};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::fetch;
use crate::input;
use crate::output::note;
use crate::view::counted;
use crate::view::delivery::Delivery;
use crate::view::done::Done;

/// Mark mail as done.
#[derive(Args, Debug)]
pub(crate) struct Ack {
    /// The messages
    #[arg(value_name = "ID", required_unless_present = "all", add = complete::mail())]
    ids: Vec<u64>,
    /// Whose inbox [default: the operator's]
    #[arg(long, value_name = "NAME", default_value = OPERATOR, hide_default_value = true, add = complete::agents_and_operator())]
    agent: String,
    /// All of the operator's unread mail; on a terminal it asks first. A question stays open until
    /// it is answered
    #[arg(long, conflicts_with_all = ["ids", "agent"])]
    all: bool,
    /// Do not ask
    #[arg(long, requires = "all")]
    yes: bool,
}

impl Ack {
    pub(crate) async fn run(mut self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        if self.all {
            let ready = [DeliveryState::Ready];
            let unread: Vec<Delivery> =
                fetch::deliveries(&broker, OPERATOR, &ready, fetch::ALL).await?;
            self.ids = unread.into_iter().map(|delivery| delivery.message.id).collect();
            if self.ids.is_empty() {
                note("no unread mail");
            } else if !self.yes && input::is_terminal() {
                let count = counted(self.ids.len(), "message", "messages");
                if !input::confirm(&format!("mark {count} as done?")).await? {
                    note("nothing was marked");
                    return Ok(Exit::Failure);
                }
            }
        }
        let mut done = Vec::with_capacity(self.ids.len());
        let ended = self.ack(&broker, &mut done).await;
        context.out.outcome(&done, ended)?;
        Ok(Exit::Ok)
    }

    async fn ack(self, broker: &Broker, done: &mut Vec<Done>) -> Result<(), Failure> {
        for message_id in self.ids {
            let key = DeliveryKey { agent: self.agent.clone(), message_id };
            let request =
                AckDeliveryRequest { request_id: request_id(), target: Some(Target::Key(key)) };
            let acked = broker.change(broker.inbox(), request, Inbox::ack_delivery).await;
            match acked {
                Ok(_) => {}
                // Between the list and here it was answered or marked: what was asked for is true.
                Err(failure) if self.all && failure.reason() == Some(Reason::WrongState) => {
                    continue;
                }
                Err(failure) => return Err(failure),
            }
            let sentence = format!("message {message_id} acked");
            done.push(Done {
                done: "acked",
                agent: Some(self.agent.clone()),
                message_id: Some(message_id),
                sentence,
                ..Done::default()
            });
        }
        Ok(())
    }
}
