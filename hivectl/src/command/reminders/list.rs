//! `hivectl reminders [list] [AGENT]`: what is pending.

use clap::Args;
use hive_proto::v1::ReminderState;

use crate::command::choice::choice;
use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::reminder::Reminder;

/// Where a reminder stands.
const STATES: [(&str, ReminderState); 3] = [
    ("pending", ReminderState::Pending),
    ("fired", ReminderState::Fired),
    ("cancelled", ReminderState::Cancelled),
];

/// List reminders.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Whose [default: everyone's]
    #[arg(add = complete::agents())]
    agent: Option<String>,
    /// Only those that stand so; may be repeated [default: pending]
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
