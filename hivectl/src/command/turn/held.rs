//! `hivectl turn release|drop`: what becomes of mail that a cancelled turn held.

use std::future::Future;

use clap::Args;
use hive_proto::v1::{DeliveryKey, DeliveryState, DropDeliveryRequest, ReleaseDeliveryRequest};

use crate::complete;
use crate::connect::{Admin, Broker, request_id};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::fetch;
use crate::output::note;
use crate::view::delivery::Delivery;
use crate::view::done::Done;

/// Mail that a cancelled turn held.
#[derive(Args, Debug)]
pub(crate) struct Held {
    /// Whose inbox
    #[arg(add = complete::agents())]
    agent: String,
    /// The messages
    #[arg(value_name = "ID", required_unless_present = "all", add = complete::held())]
    ids: Vec<u64>,
    /// All that is held there
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

/// Does the same to each delivery, up to the first failure, and tells what was done.
pub(crate) async fn settle<F>(
    context: &mut Context,
    keys: Vec<DeliveryKey>,
    word: &'static str,
    call: impl Fn(DeliveryKey) -> F,
) -> Result<Exit, Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let mut done = Vec::with_capacity(keys.len());
    let mut ended = Ok(());
    for key in keys {
        ended = call(key.clone()).await;
        if ended.is_err() {
            break;
        }
        done.push(told(word, key));
    }
    context.out.outcome(&done, ended)?;
    Ok(Exit::Ok)
}

async fn release_delivery(broker: &Broker, key: DeliveryKey) -> Result<(), Failure> {
    let request = ReleaseDeliveryRequest { request_id: request_id(), key: Some(key) };
    broker.change(broker.admin(), request, Admin::release_delivery).await.map(drop)
}

/// Drops one delivery.
pub(crate) async fn drop_delivery(broker: &Broker, key: DeliveryKey) -> Result<(), Failure> {
    let request = DropDeliveryRequest { request_id: request_id(), key: Some(key) };
    broker.change(broker.admin(), request, Admin::drop_delivery).await.map(drop)
}

/// What was done to one delivery.
fn told(done: &'static str, key: DeliveryKey) -> Done {
    let DeliveryKey { agent, message_id } = key;
    let sentence = format!("message {message_id} of {agent} {done}");
    Done { done, agent: Some(agent), message_id: Some(message_id), sentence, ..Done::default() }
}

impl Held {
    /// Puts it back into its inbox.
    pub(crate) async fn release(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let keys = self.keys(&broker).await?;
        settle(context, keys, "released", |key| release_delivery(&broker, key)).await
    }

    /// Drops it; it is settled and never delivered.
    pub(crate) async fn drop(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let keys = self.keys(&broker).await?;
        settle(context, keys, "dropped", |key| drop_delivery(&broker, key)).await
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
