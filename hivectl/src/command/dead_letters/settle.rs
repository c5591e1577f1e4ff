//! `hivectl dead-letters redrive|drop`: what becomes of a dead letter.

use clap::Args;
use hive_proto::v1::DeliveryKey;

use crate::command::turn::held::settle;
use crate::complete;
use crate::connect::{Broker, Settlement};
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::output::note;
use crate::view::delivery::Delivery;

/// Which dead letters.
#[derive(Args, Debug)]
pub(super) struct Which {
    /// The messages
    #[arg(value_name = "ID", required_unless_present = "all", add = complete::dead_letters())]
    ids: Vec<u64>,
    /// Whose inbox, where a message died in several
    #[arg(long, value_name = "NAME", add = complete::agents())]
    agent: Option<String>,
    /// All of them; with --agent all of that inbox
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

impl Which {
    /// Redrives or drops them.
    pub(super) async fn run(
        self,
        context: &mut Context,
        settlement: Settlement,
    ) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let keys = self.keys(&broker).await?;
        settle(context, &broker, keys, settlement).await
    }

    async fn keys(self, broker: &Broker) -> Result<Vec<DeliveryKey>, Failure> {
        let agent = self.agent.as_deref();
        let letters: Vec<Delivery> =
            fetch::dead_letters(broker, agent.unwrap_or_default(), fetch::ALL).await?;
        if self.all {
            if letters.is_empty() {
                note(&agent.map_or_else(
                    || "there are no dead letters".to_owned(),
                    |agent| format!("{agent} has no dead letters"),
                ));
            }
            return Ok(letters
                .into_iter()
                .map(|letter| DeliveryKey { agent: letter.agent, message_id: letter.message.id })
                .collect());
        }
        self.ids.into_iter().map(|id| super::the_one(&letters, id, agent)).collect()
    }
}
