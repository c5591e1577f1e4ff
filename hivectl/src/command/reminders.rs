//! `hivectl reminders`: what agents set themselves for later.

use clap::{Args, Subcommand};
use hive_proto::v1::{CancelReminderRequest, ReminderState};

use crate::command::choice::choice;
use crate::command::each::change_each;
use crate::connect::{self, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::view::reminder::Reminder;
use crate::{complete, fetch};

/// Reminders that agents set for themselves.
///
/// Without arguments: all that is pending, with the time that is left.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Reminders {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: List,
}

/// The verbs; without one they are listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List reminders; for an agent whose name is also a verb of this command
    List(List),
    /// Withdraw pending reminders
    Cancel(Cancel),
}

impl Reminders {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        match self.verb {
            None => self.list.run(context).await,
            Some(Verb::List(list)) => list.run(context).await,
            Some(Verb::Cancel(cancel)) => cancel.run(context).await,
        }
    }
}

const STATES: [(&str, ReminderState); 3] = [
    ("pending", ReminderState::Pending),
    ("fired", ReminderState::Fired),
    ("cancelled", ReminderState::Cancelled),
];

/// List reminders.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// The agent [default: all agents]
    #[arg(add = complete::agents())]
    agent: Option<String>,
    /// Only reminders in this state; may be repeated [default: pending]
    #[arg(long, value_name = "STATE", value_parser = choice(&STATES))]
    state: Vec<ReminderState>,
    /// Fired and cancelled ones too, as long as they are kept
    #[arg(long, conflicts_with = "state")]
    all: bool,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let states = if self.all { STATES.map(|(_, state)| state).to_vec() } else { self.state };
        let agent = self.agent.unwrap_or_default();
        let reminders: Vec<Reminder> =
            fetch::reminders(&broker, &agent, &states, fetch::ALL).await?;
        context.out.list(&reminders)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The reminders
    #[arg(required = true, value_name = "ID", add = complete::reminders())]
    ids: Vec<u64>,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        change_each(context, self.ids, async |reminder_id| {
            let request = CancelReminderRequest { request_id: request_id(), reminder_id };
            let response = broker
                .change(broker.reminders(), request, connect::Reminders::cancel_reminder)
                .await?;
            Ok(Some(require::<_, Reminder>(response.reminder, "reminder")?))
        })
        .await
    }
}
