//! `hivectl turn release|drop`: what becomes of mail that a cancelled turn held.

use clap::Args;
use hive_proto::v1::{DeliveryKey, DeliveryState};

use crate::command::each::change_each;
use crate::complete;
use crate::connect::{Broker, Settlement, request_id};
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::output::note;
use crate::view::delivery::Delivery;
use crate::view::done::Done;

#[derive(Args, Debug)]
pub(crate) struct Held {
    /// The inbox
    #[arg(add = complete::agents())]
    agent: String,
    /// The messages
    #[arg(value_name = "ID", required_unless_present = "all", add = complete::held())]
    ids: Vec<u64>,
    /// All that is held there
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

/// Settles each delivery up to the first failure, and prints what was done.
pub(crate) async fn settle(
    context: &mut Context,
    broker: &Broker,
    keys: Vec<DeliveryKey>,
    settlement: Settlement,
) -> Result<(), Failure> {
    let done = settlement.done();
    change_each(context, keys, async |key: DeliveryKey| {
        broker.settle(settlement, request_id(), key.clone()).await?;
        let DeliveryKey { agent, message_id } = key;
        let sentence = format!("message {message_id} of {agent} {done}");
        Ok(Some(Done { message_id: Some(message_id), ..Done::new(done, Some(agent), sentence) }))
    })
    .await
}

impl Held {
    pub(crate) async fn run(
        self,
        context: &mut Context,
        settlement: Settlement,
    ) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let keys = self.keys(&broker).await?;
        settle(context, &broker, keys, settlement).await
    }

    async fn keys(self, broker: &Broker) -> Result<Vec<DeliveryKey>, Failure> {
        let ids = if self.all {
            let held: Vec<Delivery> =
                fetch::deliveries(broker, &self.agent, &[DeliveryState::Held], fetch::ALL).await?;
            held.into_iter().map(|delivery| delivery.message.id).collect()
        } else {
            self.ids
        };
        if ids.is_empty() {
            note(&format!("nothing is held for {}", self.agent));
        }
        Ok(ids
            .into_iter()
            .map(|message_id| DeliveryKey { agent: self.agent.clone(), message_id })
            .collect())
    }
}
