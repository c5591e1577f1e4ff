//! `hivectl loose-ends`: what agents, and the operator, have open.

use std::collections::BTreeMap;

use clap::Args;

use crate::complete;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::loose_end::LooseEnd;

/// Open items of agents and of you: questions, reminders, dead letters, and more.
///
/// These are questions asked and owed, pending reminders, dead letters of what one sent, and what
/// co-processes published for an agent. `hivectl questions cancel ID` and
/// `hivectl reminders cancel ID` close two of these kinds, `hivectl dead-letters` a third.
#[derive(Args, Debug)]
pub(crate) struct LooseEnds {
    /// The owner; `operator` for your own [default: everyone]
    #[arg(add = complete::agents_and_operator())]
    agent: Option<String>,
}

impl LooseEnds {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let (broker, agent) = (context.broker().await?, self.agent.unwrap_or_default());
        let loose_ends: Vec<LooseEnd> = fetch::loose_ends(&broker, &agent, fetch::ALL).await?;
        context.out.list(&loose_ends)
    }
}

pub(crate) async fn counts(broker: &Broker) -> Result<BTreeMap<String, usize>, Failure> {
    let mut counts = BTreeMap::new();
    for loose_end in fetch::loose_ends::<LooseEnd>(broker, "", fetch::ALL).await? {
        *counts.entry(loose_end.agent).or_default() += 1;
    }
    Ok(counts)
}
