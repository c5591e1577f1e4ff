//! `hivectl turn cancel|compact|new-session|model|restart`: commands to a harness.
//!
//! A command is a row in the broker: it survives the absence of a harness. `hivectl events` shows
//! when it was carried out, and so does --wait.

use clap::Args;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::event::Facts;
use hive_proto::v1::{
    CancelTurn, CommandClosed, CompactSession, Event, EventKind, RestartHarness, SetModel,
    StartNewSession,
};

use crate::complete;
use crate::connect::request_id;
use crate::context::Context;
use crate::error::Failure;
use crate::feed::{Feed, Step};
use crate::output::note;
use crate::output::text::visible_line;
use crate::view::done::Done;

/// Help on --wait below the options of each command.
pub(crate) const AFTER_HELP: &str = "\
The broker has stored the command when this program succeeds. The harness carries it out as soon as it can, and after its return if it is away. \
With --wait the exit code shows the outcome: 0 done, 1 refused by the harness, 6 not done within --timeout. It is also 1 after Ctrl-C. \
After a timeout or Ctrl-C the command stays queued. A restart of the broker does not end the wait.";

/// Help on --wait for a command that has nothing to wait for.
const NEW_SESSION_HELP: &str = "\
The broker has stored the command when this program succeeds. It takes effect at the agent's next turn, which starts when there is mail for it; a running turn \
does not change. So this program ends at once, also with --wait; `hivectl events` shows when the fresh conversation has begun.";

/// The harness that gets a command.
#[derive(Args, Debug)]
pub(crate) struct Target {
    /// The agent
    #[arg(add = complete::agents())]
    agent: String,
    /// Wait until the harness has carried the command out, or refused it; at most for --timeout, if
    /// that is given
    #[arg(long)]
    wait: bool,
}

#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Cancel {
    #[command(flatten)]
    target: Target,
    /// Only if this turn is the open one
    #[arg(long, value_name = "ID", default_value_t = 0, hide_default_value = true, add = complete::open_turns())]
    turn: u64,
}

#[derive(Args, Debug)]
#[command(after_long_help = NEW_SESSION_HELP)]
pub(crate) struct NewSession {
    /// The agent
    #[arg(add = complete::agents())]
    agent: String,
    /// Taken as for the other commands; there is nothing to wait for
    #[arg(long)]
    wait: bool,
}

#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Model {
    #[command(flatten)]
    target: Target,
    /// A model's name or alias, as claude takes it; one of those that the agent may run on, where
    /// its configuration names them
    #[arg(add = complete::models())]
    model: String,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let order = Order::CancelTurn(CancelTurn { turn_id: self.turn });
        self.target.send(context, order, "told to cancel its turn").await
    }
}

impl NewSession {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        if self.wait {
            note(
                "there is nothing to wait for: it holds from the next turn on, whenever that begins",
            );
        }
        let order = Order::StartNewSession(StartNewSession {});
        let target = Target { agent: self.agent, wait: false };
        let action = "told to begin its next turn with a fresh conversation";
        target.send(context, order, action).await
    }
}

impl Model {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let action = format!("told to run on {} from the next turn on", self.model);
        self.target.send(context, Order::SetModel(SetModel { model: self.model }), &action).await
    }
}

impl Target {
    pub(crate) async fn compact(self, context: &mut Context) -> Result<(), Failure> {
        let order = Order::CompactSession(CompactSession {});
        self.send(context, order, "told to compact its conversation").await
    }

    pub(crate) async fn restart(self, context: &mut Context) -> Result<(), Failure> {
        let order = Order::RestartHarness(RestartHarness {});
        self.send(context, order, "told to start again").await
    }

    /// Sends the command, and with --wait waits for its end.
    async fn send(self, context: &mut Context, order: Order, action: &str) -> Result<(), Failure> {
        let agent = self.agent;
        let broker = context.broker().await?;
        // The watch begins before the command is sent, so that its end cannot be missed.
        let feed =
            if self.wait { Some(Feed::open(context, &broker, &agent, None).await?) } else { None };
        let id = broker.command(request_id(), agent.clone(), order).await?;
        let mut sentence = format!("{agent} is {action} (command {id})");
        let mut done = "commanded";
        if let Some(feed) = feed {
            note(&visible_line(&format!("{sentence}; waiting until it is done")));
            wait_until_closed(context, feed, id, &agent).await?;
            (sentence, done) = (format!("{agent} has done it (command {id})"), "carried_out");
        }
        let done = Done::new(done, Some(agent), sentence);
        context.out.one(&Done { command_id: Some(id), ..done })
    }
}

/// Waits until the harness has closed a command, and ends as it did.
async fn wait_until_closed(
    context: &Context,
    feed: Feed,
    id: u64,
    agent: &str,
) -> Result<(), Failure> {
    let agent = || agent.to_owned();
    let timed_out = |seconds| Failure::OrderTimedOut { id, agent: agent(), seconds };
    let interrupted = Failure::OrderInterrupted { id, agent: agent() };
    match context.wait(ending(feed, id), timed_out, interrupted).await? {
        Ending::Done => Ok(()),
        Ending::Refused(why) => Err(Failure::OrderRefused { id, agent: agent(), why }),
        Ending::Missed => Err(Failure::OrderMissed { id, agent: agent() }),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Done,
    Refused(String),
    /// The events about it may have been pruned while the broker was away.
    Missed,
}

async fn ending(mut feed: Feed, id: u64) -> Result<Ending, Failure> {
    loop {
        let event = match feed.next().await? {
            Step::Event(event) => event,
            Step::Gap => return Ok(Ending::Missed),
        };
        if let Some(ending) = ending_of(&event, id) {
            return Ok(ending);
        }
        if event.kind() == EventKind::AgentRetired {
            return Ok(Ending::Refused("the agent was retired".to_owned()));
        }
        if let Some(action) = progress(&event) {
            note(&visible_line(&action));
        }
    }
}

/// Describes what happens while a command waits.
fn progress(event: &Event) -> Option<String> {
    let what = [
        (EventKind::TurnBegun, format!("turn {} begins", event.turn_id)),
        (EventKind::TurnEnded, format!("turn {} has ended", event.turn_id)),
        (EventKind::HarnessAttached, "the harness is attached".to_owned()),
        (EventKind::HarnessLost, "the harness is gone".to_owned()),
    ];
    let (_, action) = what.into_iter().find(|(kind, _)| *kind == event.kind())?;
    Some(if event.detail.is_empty() { action } else { format!("{action}: {}", event.detail) })
}

/// Returns how this command ended, if the event says so.
fn ending_of(event: &Event, id: u64) -> Option<Ending> {
    match event.facts {
        Some(Facts::CommandClosed(CommandClosed { done, command_id })) if command_id == id => {
            // The caller's message names the command itself.
            let before = format!("command {id}: refused: ");
            let why = event.detail.strip_prefix(&before).unwrap_or(&event.detail);
            Some(if done { Ending::Done } else { Ending::Refused(why.to_owned()) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_reports_its_own_command_only() {
        let closed = |done, command_id, detail: &str| Event {
            kind: EventKind::CommandClosed.into(),
            detail: detail.to_owned(),
            facts: Some(Facts::CommandClosed(CommandClosed { done, command_id })),
            ..Event::default()
        };
        assert_eq!(ending_of(&closed(true, 30, "command 30: done"), 30), Some(Ending::Done));
        let refused = closed(false, 30, "command 30: refused: too late: it ended");
        assert_eq!(ending_of(&refused, 30), Some(Ending::Refused("too late: it ended".to_owned())));
        assert_eq!(ending_of(&closed(true, 301, "command 301: done"), 30), None);
        assert_eq!(ending_of(&closed(true, 0, "login: logged in"), 30), None);
        assert_eq!(ending_of(&Event::default(), 30), None);
    }
}
