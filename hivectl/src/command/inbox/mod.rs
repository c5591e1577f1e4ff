//! `hivectl inbox`: the operator's mail, or an agent's deliveries.

mod ack;
mod follow;
mod list;
mod read;
pub(crate) mod thread;

use clap::{Args, Subcommand};
use hive_core::message::OPERATOR;
use hive_proto::v1::{DeliveryState, ListDeliveriesRequest};

use crate::connect::{Broker, all_pages};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::delivery::Delivery;

/// The operator's mail, or an agent's deliveries.
///
/// Reading changes nothing: the operator's mail stays unread until it is acked or answered.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Inbox {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: list::List,
}

/// The verbs; without one the inbox is listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List an inbox; for an agent whose name is also a verb here
    List(list::List),
    /// Show a delivery with its whole body
    Read(read::Read),
    /// Mark mail as done
    Ack(ack::Ack),
}

impl Inbox {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        match self.verb {
            None => self.list.run(context).await,
            Some(Verb::List(list)) => list.run(context).await,
            Some(Verb::Read(read)) => read.run(context).await,
            Some(Verb::Ack(ack)) => ack.run(context).await,
        }
    }
}

/// The inbox that is meant: on the wire the operator's own has no name.
fn wire_name(agent: Option<&str>) -> String {
    agent.filter(|agent| *agent != OPERATOR).unwrap_or_default().to_owned()
}

/// The deliveries of an inbox; without states all that are unsettled.
pub(crate) async fn deliveries(
    broker: &Broker,
    agent: Option<&str>,
    states: &[DeliveryState],
) -> Result<Vec<Delivery>, Failure> {
    let states: Vec<i32> = states.iter().map(|state| i32::from(*state)).collect();
    let deliveries = all_pages(|page_token| async {
        let request = ListDeliveriesRequest {
            page_size: 500,
            page_token,
            agent: wire_name(agent),
            states: states.clone(),
        };
        let page = broker.read(broker.inbox().list_deliveries(request)).await?;
        Ok((page.deliveries, page.next_page_token))
    });
    Ok(deliveries.await?.into_iter().map(Delivery::from).collect())
}
