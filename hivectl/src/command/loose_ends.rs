//! `hivectl loose-ends`: what agents, and the operator, have open.

use std::collections::BTreeMap;

use clap::Args;
use hive_proto::v1::ListLooseEndsRequest;

use crate::complete;
use crate::connect::{Broker, all_pages};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::loose_end::LooseEnd;

/// What agents, and you, have open: questions, reminders, dead letters, and more.
///
/// These are questions asked and owed, pending reminders, dead letters of what one sent, and what
/// co-processes published for an agent. `hivectl questions cancel ID` and
/// `hivectl reminders cancel ID` close two of these kinds, `hivectl dead-letters` a third.
#[derive(Args, Debug)]
pub(crate) struct LooseEnds {
    /// Whose; `operator` for your own [default: everybody's]
    #[arg(add = complete::agents_and_operator())]
    agent: Option<String>,
}

impl LooseEnds {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let loose_ends =
            list(&context.broker().await?, self.agent.as_deref().unwrap_or_default()).await?;
        context.out.list(&loose_ends)?;
        Ok(Exit::Ok)
    }
}

/// The loose ends of one, or for the empty name of everybody, by id.
async fn list(broker: &Broker, agent: &str) -> Result<Vec<LooseEnd>, Failure> {
    let loose_ends = all_pages(|page_token| async {
        let request = ListLooseEndsRequest { page_size: 500, page_token, agent: agent.to_owned() };
        let page = broker.read(broker.loose_ends().list_loose_ends(request)).await?;
        Ok((page.loose_ends, page.next_page_token))
    });
    Ok(loose_ends.await?.into_iter().map(LooseEnd::from).collect())
}

/// How many loose ends everybody has who has some.
pub(crate) async fn counts(broker: &Broker) -> Result<BTreeMap<String, usize>, Failure> {
    let mut counts = BTreeMap::new();
    for loose_end in list(broker, "").await? {
        *counts.entry(loose_end.agent).or_default() += 1;
    }
    Ok(counts)
}
