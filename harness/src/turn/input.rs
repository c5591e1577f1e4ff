//! What the machine is told.

use std::sync::Arc;

use hive_core::agent::Agent;
use hive_core::command::Command;
use hive_core::delivery::Delivery;
use hive_core::limits::Backoff;
use hive_core::message::Message;
use hive_core::park;
use hive_core::question::Question;
use hive_core::reminder::Reminder;
use hive_core::tree::Kin;

use crate::claude::event::Event;
use crate::claude::outcome::Exit;
use crate::config::Spans;
use crate::turn::machine::Defaults;

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// The broker took us in; a session began or goes on.
    Attached(Box<Attachment>),
    /// The broker says that the agent's policy, parent or model changed.
    AgentChanged(Box<Agent>),
    /// The broker says that the agent's parent or a child changed.
    KinChanged(Kin),
    /// The operator wants something.
    Command(Command),
    /// The operator wants something that this version does not know; the number of the command.
    UnknownCommand(u64),
    /// The settings of the harness changed; they hold from the next turn on.
    Configured(Box<Configured>),
    /// The session is no longer ours.
    Fenced(String),
    /// There is a turn to run.
    Begun(Arc<Begun>),
    /// The turn that we asked for is open.
    Opened(u64),
    /// The turn that we asked for may not start now.
    NotOpened,
    /// A call was refused in a way that should not happen.
    Refused(String),
    /// The broker settled the turn.
    Ended(Answer),
    /// The broker says that this turn is not open any more.
    TurnGone(u64),
    /// The CLI was looked at: it can be used, or not, and why.
    Probed(Result<Found, String>),
    /// claude could not be started.
    NotStarted(String),
    /// claude printed a line of its stream.
    Event(Box<Event>),
    /// claude printed a line on stderr.
    Stderr(String),
    /// claude and everything that it started are gone.
    Exited(Exit),
    /// Somebody logged claude in.
    LoggedIn,
    /// An operator wants to log claude in.
    LoginWanted(LoginWanted),
    /// The login dialogue is over: claude says that it went well, or it does not.
    LoginEnded(bool),
    /// We are to shut down. The second time: at once.
    Drain,
    /// No turn will begin any more; this one was open.
    Left(Option<u64>),
    /// A deadline passed.
    Tick,
}

/// Changed settings.
#[derive(Clone, Debug)]
pub struct Configured {
    /// Spans that the machine works with.
    pub spans: Spans,
    /// What holds where the broker says nothing else.
    pub defaults: Defaults,
    /// Whether the CLI has to be probed again: the program, its environment or its plugins changed.
    pub probes: bool,
}

/// A CLI that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether it has a login.
    pub logged_in: bool,
    /// What around it does not work: a subject and words each.
    pub problems: Vec<(String, String)>,
}

/// How the broker took us in.
#[derive(Clone, Debug, Default)]
pub struct Attachment {
    /// Whether an earlier session goes on.
    pub resumed: bool,
    /// The agent; `None` before the first session.
    pub agent: Option<Agent>,
    /// Its parent and children.
    pub kin: Kin,
    /// The turn that the session has open.
    pub open_turn: Option<u64>,
    /// The operator's pronouns; empty if the broker knows none.
    pub operator_pronouns: String,
    /// The hive's domain; empty if it has none.
    pub hive_domain: String,
    /// The pause before the next look for a claude that cannot run.
    pub park_backoff: Backoff,
}

/// A turn to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The turn.
    pub turn_id: u64,
    /// The delivery that woke it.
    pub delivery: Delivery,
    /// How many more are ready.
    pub pending_count: u32,
    /// What earlier attempts at the delivery sent.
    pub already_sent: Vec<Message>,
    /// What they asked.
    pub already_asked: Vec<Question>,
    /// What they want to be reminded of.
    pub already_reminded: Vec<Reminder>,
    /// Commands that were open when the turn began.
    pub commands: Vec<Command>,
}

/// An operator who waits for a login dialogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginWanted {
    /// The number of the dialogue.
    pub login_id: u64,
    /// The operator's terminal.
    pub terminal: Terminal,
}

/// An operator's terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Its lines; 0 if unknown.
    pub rows: u32,
    /// Its columns; 0 if unknown.
    pub columns: u32,
    /// Its kind; empty if unknown.
    pub kind: String,
}

/// What became of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Deliveries that are ready now.
    pub pending_count: u32,
    /// Whether the agent asked for another turn.
    pub next_turn_requested: bool,
    /// Why no turn may start for now.
    pub park: Option<park::View>,
}
