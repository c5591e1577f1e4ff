//! Where the machine stands.

use hive_core::park;
use hive_core::time::{BootTime, Now};
use hive_core::turn::{Kind, Outcome};

use crate::claude::fences::Expected;
use crate::claude::outcome::StopCause;
use crate::claude::transcript::Transcript;
use crate::turn::course::Course;
use crate::turn::job::{Job, Step};
use crate::turn::output::Signal;

/// Where the machine stands.
#[derive(Debug)]
pub(crate) enum Phase {
    /// No session.
    Detached,
    /// A session; the CLI is looked at for the first time.
    Starting,
    /// A session of a stopped agent; nothing is done until it is started.
    Stopped,
    /// Waiting for a turn.
    Beginning,
    /// Waiting for a turn of this kind that we asked for.
    Opening(Kind),
    /// A turn is open, and the CLI is looked at before it.
    Probing(Job),
    /// A turn is open, and claude runs.
    Running(Box<Run>),
    /// The turn is no longer ours, and its claude dies.
    Discarding(After),
    /// claude is gone, and the broker is told.
    Ending {
        /// The turn.
        turn_id: u64,
        /// What it was.
        kind: Kind,
        /// How it ended.
        outcome: Outcome,
        /// What went wrong.
        error: String,
    },
    /// Something is wrong between us and the broker; a new session is tried then.
    Recovering(BootTime),
    /// Waiting for the broker to say that no turn is open.
    Leaving,
    /// The program ends.
    Gone,
}

/// What comes after a claude that is thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// A new session.
    Attach,
    /// The next turn.
    Rest,
}

/// A claude at work.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) course: Course,
    pub(crate) step: Step,
    pub(crate) model: String,
    /// Whether it begins a new conversation, and has not said so yet.
    pub(crate) fresh: bool,
    /// Whether it began a new conversation.
    pub(crate) was_fresh: bool,
    pub(crate) expected: Expected,
    pub(crate) transcript: Transcript,
    pub(crate) stop: Option<Stop>,
    pub(crate) idle_at: Option<BootTime>,
}

/// A claude that is being ended.
#[derive(Debug)]
pub(crate) struct Stop {
    pub(crate) cause: StopCause,
    pub(crate) sent: Signal,
    /// When the next stronger signal follows.
    pub(crate) next_at: Option<BootTime>,
}

/// What is known of the CLI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cli {
    /// Nothing yet.
    Unknown,
    /// It can be used.
    Ready,
    /// It cannot.
    Broken {
        /// Why.
        error: String,
        /// When to look again.
        next_at: BootTime,
        /// How often it could not.
        failures: u32,
    },
}

/// Why no turn may start for now.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    pub(crate) park: park::View,
    pub(crate) ends_at: Option<BootTime>,
}

impl Parked {
    pub(crate) fn new(park: park::View, now: Now) -> Self {
        Self { ends_at: park.remaining.map(|remaining| now.boot.after(remaining)), park }
    }
}
