//! `hivectl events`: what happened, by the event log.

use clap::Args;
use hive_proto::v1::{ListEventsRequest, ListEventsResponse};

use crate::complete;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::feed::{Feed, Step};
use crate::interrupt::until_interrupted;
use crate::output::note;
use crate::view::event::Event;

/// Events of one page; the most that the broker gives.
const PAGE_EVENTS: u32 = 500;
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
            Some(after) => list(&broker, after, &self.agent).await?.0,
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

/// Returns all events after a number, and the newest number.
pub(crate) async fn list(
    broker: &Broker,
    mut after_sequence: u64,
    agent: &str,
) -> Result<(Vec<Event>, u64), Failure> {
    let mut events = Vec::new();
    loop {
        let request =
            ListEventsRequest { after_sequence, page_size: PAGE_EVENTS, agent: agent.to_owned() };
        let ListEventsResponse { events: page, last_sequence } =
            broker.read(broker.events().list_events(request)).await?;
        let Some(last) = page.last() else { return Ok((events, last_sequence)) };
        after_sequence = last.sequence;
        events.extend(page.into_iter().map(Event::from));
    }
}

/// Returns the newest events. Events of one agent are searched further and further back, because
/// events of others are between them.
async fn newest(broker: &Broker, agent: &str, count: u32) -> Result<Vec<Event>, Failure> {
    let request = ListEventsRequest { after_sequence: 0, page_size: 1, agent: agent.to_owned() };
    let newest = broker.read(broker.events().list_events(request)).await?.last_sequence;
    let mut back = u64::from(count);
    loop {
        let after = newest.saturating_sub(back);
        let (mut events, _) = list(broker, after, agent).await?;
        let wanted = usize::try_from(count).unwrap_or(usize::MAX);
        if events.len() >= wanted || after == 0 {
            events.drain(..events.len().saturating_sub(wanted));
            return Ok(events);
        }
        // In the first step a full page costs no more than a small one.
        back = back.max(u64::from(PAGE_EVENTS) / 8).saturating_mul(8);
    }
}
