//! `hivectl inbox ack`: mark mail as done.

use clap::Args;
use hive_core::message::OPERATOR;
use hive_core::reason::Reason;
use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::{AckDeliveryRequest, DeliveryKey, DeliveryState};

use crate::command::each::change_each;
use crate::complete;
use crate::connect::Inbox;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::fetch;
use crate::input;
use crate::output::note;
use crate::view::counted;
use crate::view::delivery::Delivery;
use crate::view::done::Done;

#[derive(Args, Debug)]
pub(crate) struct Ack {
    /// The messages
    #[arg(value_name = "ID", required_unless_present = "all", add = complete::mail())]
    ids: Vec<u64>,
    /// The inbox [default: the operator's]
    #[arg(long, value_name = "NAME", default_value = OPERATOR, hide_default_value = true, add = complete::agents_and_operator())]
    agent: String,
    /// All unread mail of the operator; on a terminal the command asks first. A question stays open
    /// until it is answered
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
        let (all, agent) = (self.all, &self.agent);
        change_each(context, self.ids, async |message_id| {
            let key = DeliveryKey { agent: agent.clone(), message_id };
            let request = AckDeliveryRequest { target: Some(Target::Key(key)) };
            match broker.change(broker.inbox(), request, Inbox::ack_delivery).await {
                Ok(_) => {}
                // The delivery was answered or acked after the list was read.
                Err(failure) if all && failure.reason() == Some(Reason::WrongState) => {
                    return Ok(None);
                }
                Err(failure) => return Err(failure),
            }
            let sentence = format!("message {message_id} acked");
            let done = Done::new("acked", Some(agent.clone()), sentence);
            Ok(Some(Done { message_id: Some(message_id), ..done }))
        })
        .await?;
        Ok(Exit::Ok)
    }
}
