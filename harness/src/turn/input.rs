//! The inputs of the machine.

use std::sync::Arc;

use hive_core::agent::Agent;
use hive_core::command::Command;
use hive_core::delivery::Delivery;
use hive_core::limits::Backoff;
use hive_core::message::Message;
use hive_core::park;
use hive_core::question::Question;
use hive_core::reminder::Reminder;
use hive_core::trace::TraceContext;
use hive_core::tree::Kin;

use crate::claude::event::Event;
use crate::claude::outcome::Exit;
use crate::config::Spans;
use crate::heartbeat::Agenda;
use crate::turn::machine::Defaults;

/// An event for the machine.
#[derive(Clone, Debug)]
pub enum Input {
    /// The broker accepted the attachment; a session began or continues.
    Attached(Box<Attachment>),
    /// The broker reports that the agent's policy, parent or model changed.
    AgentChanged(Box<Agent>),
    /// The broker reports that the agent's parent or a child changed.
    KinChanged(Kin),
    Command(Command),
    /// A command that this version does not know; its id.
    UnknownCommand(u64),
    /// The settings of the harness changed; they apply from the next turn on.
    Configured(Box<Configured>),
    /// Another harness has the session.
    Fenced(String),
    /// A turn began.
    Begun(Arc<Begun>),
    /// The requested turn is open.
    Opened(Opened),
    /// The requested turn may not start now.
    NotOpened,
    /// A call was refused with an unexpected reason.
    Refused(String),
    /// The broker settled the turn.
    Ended(EndTurnAnswer),
    /// The broker reports that this turn is not open any more.
    TurnGone(u64),
    /// The CLI was probed: it can be used, or the reason why not.
    Probed(Result<Found, String>),
    /// claude could not be started.
    NotStarted(String),
    /// claude printed a line of its stream.
    Event(Box<Event>),
    /// claude printed a line on stderr.
    Stderr(String),
    /// claude and everything that it started are gone.
    Exited(Exit),
    /// claude has a new login.
    LoggedIn,
    /// An operator requests a login dialogue.
    LoginWanted(LoginWanted),
    /// The login dialogue is over; whether claude reports success.
    LoginEnded(bool),
    /// The harness must shut down. The second time: at once.
    Drain,
    /// No turn will begin any more; the turn that was open, if any.
    Left(Vec<u64>),
    /// Whether shell tasks run, or have ended without a report to the agent or the broker.
    TasksRun(bool),
    /// The broker answered whether the harness may end.
    LeaveAnswered(LeaveAnswer),
    /// A deadline passed.
    Tick,
}

/// The broker's answer to the question whether the harness may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveAnswer {
    /// The session has ended, and so must the harness.
    Left,
    /// The session goes on.
    Stays,
    /// An older broker does not serve the question.
    Unserved,
}

/// Changed settings.
#[derive(Clone, Debug)]
pub struct Configured {
    /// Spans that the machine works with.
    pub spans: Spans,
    /// Defaults for values that the broker does not set.
    pub defaults: Defaults,
    /// Whether the CLI has to be probed again: the program, its environment or its plugins changed.
    pub probes: bool,
}

/// A CLI that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub logged_in: bool,
    /// Problems around it: a subject and a text each.
    pub problems: Vec<(String, String)>,
}

/// The broker's answer to the attachment.
#[derive(Clone, Debug, Default)]
pub struct Attachment {
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// The agent; `None` before the first session.
    pub agent: Option<Agent>,
    /// Its parent and children.
    pub kin: Kin,
    /// The turns that the session has open, oldest first.
    pub open_turns: Vec<u64>,
    /// The operator's pronouns; empty if the broker knows none.
    pub operator_pronouns: String,
    /// The hive's domain; empty if it has none.
    pub hive_domain: String,
    /// The pause before the next probe of a claude that cannot run.
    pub park_backoff: Backoff,
    /// The time without work after which a harness on demand asks to leave; `None` if the broker
    /// does not know such harnesses.
    pub leave_after: Option<std::time::Duration>,
}

/// A turn that was opened without a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    pub turn_id: u64,
    /// The span of the turn.
    pub trace: Option<TraceContext>,
}

/// A turn to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    pub turn_id: u64,
    /// The span of the turn.
    pub trace: Option<TraceContext>,
    /// The delivery that started it.
    pub delivery: Delivery,
    /// Number of further ready deliveries.
    pub pending_count: u32,
    /// Messages that earlier attempts at the delivery sent.
    pub already_sent: Vec<Message>,
    /// Questions that they asked.
    pub already_asked: Vec<Question>,
    /// Reminders that they set.
    pub already_reminded: Vec<Reminder>,
    /// Commands that were open when the turn began.
    pub commands: Vec<Command>,
    /// What the agent's file says, if the delivery is its heartbeat.
    pub agenda: Option<Agenda>,
}

/// The request of an operator for a login dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginWanted {
    /// The number of the dialogue.
    pub login_id: u64,
    pub terminal: Terminal,
}

/// An operator's terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Number of lines; 0 if unknown.
    pub rows: u32,
    /// Number of columns; 0 if unknown.
    pub columns: u32,
    /// Terminal kind; empty if unknown.
    pub kind: String,
}

/// The broker's answer to the end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndTurnAnswer {
    /// Number of deliveries that are ready now.
    pub pending_count: u32,
    /// Whether the agent asked for another turn.
    pub next_turn_requested: bool,
    /// The park, if no turn may start for now.
    pub park: Option<park::View>,
}
