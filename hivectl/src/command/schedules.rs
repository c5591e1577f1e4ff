//! `hivectl schedules`: mail that agents have sent again and again.

use clap::{Args, Subcommand};
use hive_proto::v1::{
    CancelScheduleRequest, FireScheduleRequest, PauseScheduleRequest, ResumeScheduleRequest,
    ScheduleState,
};

use crate::command::choice::choice;
use crate::command::each::change_each;
use crate::connect::{self, Admin, Broker, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::view::firing::Firing;
use crate::view::schedule::{Changed, Schedule};
use crate::{complete, fetch};

/// Schedules: mail that agents have sent to their targets again and again.
///
/// Without arguments: all that have not ended, with the time until they are due next. An agent asks
/// for a schedule, and `hivectl answer ID` approves it.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Schedules {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: List,
}

/// The verbs. Without a verb, the schedules are listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List schedules, by id
    List(List),
    /// Show a schedule with its text, and what each target got
    Show(Show),
    /// Pause schedules: they have no due times until they are resumed
    Pause(Pause),
    /// Resume paused schedules at their next due times
    Resume(Resume),
    /// End schedules; their owners are notified
    Cancel(Cancel),
    /// Send the message of an active schedule now, besides its due times
    Fire(Fire),
}

impl Schedules {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        match self.verb {
            None => self.list.run(context).await,
            Some(Verb::List(list)) => list.run(context).await,
            Some(Verb::Show(show)) => show.run(context).await,
            Some(Verb::Pause(Pause { ids })) => change(context, Change::Pause, ids).await,
            Some(Verb::Resume(Resume { ids })) => change(context, Change::Resume, ids).await,
            Some(Verb::Cancel(Cancel { ids })) => change(context, Change::Cancel, ids).await,
            Some(Verb::Fire(fire)) => fire.run(context).await,
        }
    }
}

const STATES: [(&str, ScheduleState); 3] = [
    ("active", ScheduleState::Active),
    ("paused", ScheduleState::Paused),
    ("ended", ScheduleState::Ended),
];

/// List schedules, by id.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only schedules of this agent
    #[arg(long, value_name = "OWNER", add = complete::agents())]
    agent: Option<String>,
    /// Only schedules in this state; may be repeated [default: active and paused]
    #[arg(long, value_name = "STATE", value_parser = choice(&STATES))]
    state: Vec<ScheduleState>,
    /// Ended ones too, as long as they are kept
    #[arg(long, conflicts_with = "state")]
    all: bool,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let states = if self.all { STATES.map(|(_, state)| state).to_vec() } else { self.state };
        let agent = self.agent.unwrap_or_default();
        let schedules: Vec<Schedule> =
            fetch::schedules(&broker, &agent, &states, fetch::ALL).await?;
        context.out.list(&schedules)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The schedule
    #[arg(add = complete::schedules())]
    id: u64,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let schedule: Schedule = fetch::schedule(&context.broker().await?, self.id).await?;
        context.out.one(&schedule)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Pause {
    /// The schedules
    #[arg(required = true, value_name = "ID", add = complete::schedules_in(&[ScheduleState::Active]))]
    ids: Vec<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Resume {
    /// The schedules
    #[arg(required = true, value_name = "ID", add = complete::schedules_in(&[ScheduleState::Paused]))]
    ids: Vec<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The schedules
    #[arg(required = true, value_name = "ID", add = complete::schedules())]
    ids: Vec<u64>,
}

/// A change of a schedule that the operator makes.
#[derive(Clone, Copy, Debug)]
enum Change {
    Pause,
    Resume,
    Cancel,
}

impl Change {
    async fn make(self, broker: &Broker, schedule_id: u64) -> Result<Changed, Failure> {
        let request_id = request_id();
        let schedule = match self {
            Self::Pause => {
                let request = PauseScheduleRequest { request_id, schedule_id };
                broker.change(broker.admin(), request, Admin::pause_schedule).await?.schedule
            }
            Self::Resume => {
                let request = ResumeScheduleRequest { request_id, schedule_id };
                broker.change(broker.admin(), request, Admin::resume_schedule).await?.schedule
            }
            Self::Cancel => {
                let request = CancelScheduleRequest { request_id, schedule_id };
                let cancel = connect::Schedules::cancel_schedule;
                broker.change(broker.schedules(), request, cancel).await?.schedule
            }
        };
        Ok(Changed(require(schedule, "schedule")?))
    }
}

/// Changes each schedule, and prints what it is now.
async fn change(context: &mut Context, change: Change, ids: Vec<u64>) -> Result<(), Failure> {
    let broker = context.broker().await?;
    change_each(context, ids, async |id| Ok(Some(change.make(&broker, id).await?))).await
}

#[derive(Args, Debug)]
pub(crate) struct Fire {
    /// The schedule
    #[arg(add = complete::schedules_in(&[ScheduleState::Active]))]
    id: u64,
}

impl Fire {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let request = FireScheduleRequest { request_id: request_id(), schedule_id: self.id };
        let fired =
            broker.change(broker.schedules(), request, connect::Schedules::fire_schedule).await?;
        context.out.one(&Firing::from(fired))
    }
}
