//! `hivectl inbox ack`: mark mail as done.

use clap::Args;
use hive_core::message::OPERATOR;
use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::{AckDeliveryRequest, DeliveryKey};

use crate::complete;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::done::Done;

/// Mark mail as done.
#[derive(Args, Debug)]
pub(crate) struct Ack {
    /// The messages
    #[arg(required = true, value_name = "ID", add = complete::mail())]
    ids: Vec<u64>,
    /// Whose inbox [default: the operator's]
    #[arg(long, value_name = "NAME", default_value = OPERATOR, hide_default_value = true, add = complete::agents_and_operator())]
    agent: String,
}

impl Ack {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let mut done = Vec::with_capacity(self.ids.len());
        let ended = self.ack(&broker, &mut done).await;
        context.out.outcome(&done, ended)?;
        Ok(Exit::Ok)
    }

    async fn ack(self, broker: &Broker, done: &mut Vec<Done>) -> Result<(), Failure> {
        for message_id in self.ids {
            let key = DeliveryKey { agent: self.agent.clone(), message_id };
            broker
                .change(|request_id| {
                    let request = AckDeliveryRequest { request_id, target: Some(Target::Key(key.clone())) };
                    let mut inbox = broker.inbox();
                    async move { inbox.ack_delivery(request).await }
                })
                .await?;
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
