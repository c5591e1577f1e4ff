//! `hivectl inbox --follow`: what waits, and then what arrives.
//!
//! Invariant: no message is shown twice and none is left out. The watch begins before the list is
//! read; what both bring is shown once, since ids only grow. After a gap in the log the list is
//! read again.

use std::collections::BTreeSet;

use hive_proto::v1::EventKind;

use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::feed::{Feed, Step};
use crate::fetch;
use crate::interrupt::until_interrupted;
use crate::output::note;
use crate::view::delivery::Delivery;
use crate::view::message::Message;

pub(super) async fn run(
    context: &mut Context,
    broker: &Broker,
    inbox: &str,
) -> Result<(), Failure> {
    until_interrupted(follow(context, broker, inbox)).await.unwrap_or(Ok(()))
}

async fn follow(context: &mut Context, broker: &Broker, inbox: &str) -> Result<(), Failure> {
    // An accepted message is an event of each recipient.
    let mut feed = Feed::open(context, broker, inbox, None).await?;
    let mut shown = BTreeSet::new();
    show_waiting(context, broker, inbox, &mut shown).await?;
    if shown.is_empty() {
        note("no mail yet; waiting");
    }
    loop {
        match feed.next().await? {
            Step::Event(event)
                if event.kind() == EventKind::MessageAccepted
                    && !shown.contains(&event.message_id) =>
            {
                let message: Message = fetch::message(broker, event.message_id).await?;
                // A broadcast without recipients is an event of its sender.
                if message.recipient_count > 0 {
                    shown.insert(message.id);
                    context.out.one(&message)?;
                }
            }
            Step::Event(_) => {}
            Step::Gap => show_waiting(context, broker, inbox, &mut shown).await?,
        }
    }
}

async fn show_waiting(
    context: &mut Context,
    broker: &Broker,
    inbox: &str,
    shown: &mut BTreeSet<u64>,
) -> Result<(), Failure> {
    for delivery in fetch::deliveries::<Delivery>(broker, inbox, &[], fetch::ALL).await? {
        if shown.insert(delivery.message.id) {
            context.out.one(&delivery.message)?;
        }
    }
    Ok(())
}
