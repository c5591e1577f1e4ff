//! `hivectl agent stop` and `hivectl agent start`: whether an agent runs turns.

use clap::Args;
use hive_proto::v1::{Agent, EventKind, StartAgentRequest, StopAgentRequest};

use crate::complete;
use crate::connect::{Admin, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::feed::{Feed, Step};
use crate::fetch;
use crate::output::note;
use crate::output::text::visible_line;
use crate::view::done::Done;

/// Stop an agent: its running turn is requeued, no turn begins, and its mail waits.
///
/// The broker stores this: the agent stays stopped over all restarts until `hivectl agent start`. A
/// running turn gets the grace time of a drain (20 s); its messages return to the inbox without
/// losing an attempt. Shell tasks of the agent are ended. No mail is refused in the meantime.
#[derive(Args, Debug)]
pub(crate) struct Stop {
    /// The name of the agent
    #[arg(add = complete::agents())]
    name: String,
    /// Wait until no turn of it runs; no longer than --timeout, if that is given
    #[arg(long)]
    wait: bool,
}

/// Let a stopped agent run turns again, beginning with the mail that waited.
///
/// It also decides when the harness of an agent runs: always, or on demand. On demand, the launcher
/// (`hivectl up` or `hivectl supervise`) starts it when there is mail, and it leaves after some
/// minutes without work. Without one of the options, that stays as it is.
#[derive(Args, Debug)]
pub(crate) struct Start {
    /// The name of the agent
    #[arg(add = complete::agents())]
    name: String,
    /// Run its harness on demand: only while there is mail for it
    #[arg(long, conflicts_with = "always")]
    on_demand: bool,
    /// Run its harness always
    #[arg(long)]
    always: bool,
}

impl Stop {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        // Before the stop, so that the end of the turn cannot be missed.
        let feed = if self.wait {
            Some(Feed::open(context, &broker, &self.name, None).await?)
        } else {
            None
        };
        let request = StopAgentRequest {
            request_id: request_id(),
            name: self.name.clone(),
            ..StopAgentRequest::default()
        };
        let response = broker.change(broker.admin(), request, Admin::stop_agent).await?;
        let turn = require::<_, Agent>(response.agent, "agent")?.open_turn_ids.first().copied();
        let sentence = match (turn, feed) {
            (None, _) => format!("{} is stopped", self.name),
            (Some(turn), None) => {
                format!("{} is stopped; turn {turn} is being handed back", self.name)
            }
            (Some(turn), Some(feed)) => {
                note(&visible_line(&format!(
                    "{} is stopped; waiting for the end of turn {turn}",
                    self.name
                )));
                handed_back(context, feed, &self.name, turn).await?;
                format!("{} is stopped; turn {turn} has ended", self.name)
            }
        };
        context.out.one(&Done::new("stopped", Some(self.name), sentence))
    }
}

async fn handed_back(
    context: &Context,
    mut feed: Feed,
    name: &str,
    turn: u64,
) -> Result<(), Failure> {
    let ended = async {
        loop {
            match feed.next().await? {
                Step::Event(event)
                    if event.kind() == EventKind::TurnEnded && event.turn_id == turn =>
                {
                    return Ok(());
                }
                Step::Event(_) => {}
                Step::Gap => {
                    let broker = context.broker().await?;
                    let agent: Agent = fetch::agent(&broker, name.to_owned()).await?;
                    if !agent.open_turn_ids.contains(&turn) {
                        return Ok(());
                    }
                }
            }
        }
    };
    let timed_out = |seconds| Failure::StopTimedOut { agent: name.to_owned(), turn, seconds };
    let interrupted = Failure::StopInterrupted { agent: name.to_owned(), turn };
    context.wait(ended, timed_out, interrupted).await
}

impl Start {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let request = StartAgentRequest {
            request_id: request_id(),
            name: self.name.clone(),
            on_demand: (self.on_demand || self.always).then_some(self.on_demand),
            ..StartAgentRequest::default()
        };
        let response = broker.change(broker.admin(), request, Admin::start_agent).await?;
        let agent: Agent = require(response.agent, "agent")?;
        let sentence = if agent.running {
            format!("{} is started", self.name)
        } else if agent.on_demand {
            format!("{} is started; its harness begins when there is mail", self.name)
        } else {
            format!("{} is started; it runs turns once its harness is attached", self.name)
        };
        context.out.one(&Done::new("started", Some(self.name), sentence))
    }
}
