//! `hivectl events`: what happened, by the event log.

use clap::Args;
use hive_proto::v1::ListEventsRequest;

use crate::complete;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::feed::{Feed, Step};
use crate::fetch;
use crate::interrupt::until_interrupted;
use crate::output::note;
use crate::view::event::Event;

/// Events that the first step further back reads.
const STEP_EVENTS: u64 = 500;
const PRUNED: &str = "some events were pruned before they could be read";

#[derive(Args, Debug)]
pub(crate) struct Events {
    /// Continue with new events, until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Only events of this agent; `operator` for the operator's inbox
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true, add = complete::agents_and_operator())]
    agent: String,
    /// All events after this number; 0 for the whole log [default: the newest ones]
    #[arg(long, value_name = "SEQ")]
    after: Option<u64>,
    /// Number of the newest events to show, without --after
    #[arg(long, default_value_t = 50, conflicts_with = "after")]
    last: u32,
}

impl Events {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let events = match self.after {
            Some(after) => {
                let log_id = broker.log_id().await?;
                fetch::events(&broker, after, &log_id, &self.agent, fetch::ALL).await?
            }
            None => newest(&broker, &self.agent, self.last).await?,
        };
        if !self.follow {
            context.out.list(&events)?;
            return Ok(());
        }
        let last = match events.last() {
            Some(event) => Some(event.sequence),
            None => self.after,
        };
        for event in &events {
            context.out.one(event)?;
        }
        let ended = until_interrupted(follow(context, &broker, &self.agent, last)).await;
        ended.unwrap_or(Ok(()))
    }
}

async fn follow(
    context: &mut Context,
    broker: &Broker,
    agent: &str,
    after: Option<u64>,
) -> Result<(), Failure> {
    let mut feed = Feed::open(context, broker, agent, after).await?;
    loop {
        match feed.next().await? {
            Step::Event(event) => context.out.one(&Event::from(event))?,
            Step::Gap => note(PRUNED),
        }
    }
}

/// Returns the newest events. Events of one agent are searched further and further back, because
/// events of others are between them.
async fn newest(broker: &Broker, agent: &str, count: u32) -> Result<Vec<Event>, Failure> {
    let request =
        ListEventsRequest { page_size: 1, agent: agent.to_owned(), ..ListEventsRequest::default() };
    let listed = broker.read(broker.events().list_events(request)).await?;
    let (newest, log_id) = (listed.last_sequence, listed.log_id);
    let mut back = u64::from(count);
    loop {
        let after = newest.saturating_sub(back);
        let mut events: Vec<Event> =
            fetch::events(broker, after, &log_id, agent, fetch::ALL).await?;
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        if events.len() >= wanted || after == 0 {
            events.drain(..events.len().saturating_sub(wanted));
            return Ok(events);
        }
        // A full page costs little more than a small one.
        back = back.max(STEP_EVENTS / 8).saturating_mul(8);
    }
}
