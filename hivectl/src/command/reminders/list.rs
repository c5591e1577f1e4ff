//! `hivectl reminders [list] [AGENT]`: what is pending.

use clap::{Args, ValueEnum};
use hive_proto::v1::ReminderState;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::fetch;
use crate::view::reminder::Reminder;

/// List reminders.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Whose [default: everyone's]
    #[arg(add = complete::agents())]
    agent: Option<String>,
    /// Only those that stand so; may be repeated [default: pending]
    #[arg(long, value_enum, value_name = "STATE")]
    state: Vec<State>,
    /// Fired and cancelled ones too, as long as they are kept
    #[arg(long, conflicts_with = "state")]
    all: bool,
}

/// Where a reminder stands.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Pending,
    Fired,
    Cancelled,
}

impl From<State> for ReminderState {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::Fired => Self::Fired,
            State::Cancelled => Self::Cancelled,
        }
    }
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let states = if self.all { State::value_variants() } else { &self.state };
        let states: Vec<ReminderState> = states.iter().map(|state| (*state).into()).collect();
        let agent = self.agent.unwrap_or_default();
        let reminders: Vec<Reminder> =
            fetch::reminders(&broker, &agent, &states, fetch::ALL).await?;
        context.out.list(&reminders)?;
        Ok(Exit::Ok)
    }
}
