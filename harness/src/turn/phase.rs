//! The phases of the machine.

use hive_core::park;
use hive_core::time::{BootTime, Now};
use hive_core::turn::{Kind, Outcome};

use crate::claude::fences::Expected;
use crate::claude::outcome::StopCause;
use crate::claude::transcript::Transcript;
use crate::turn::job::{Job, Step};
use crate::turn::output::Signal;
use crate::turn::plan::TurnPlan;

/// A phase of the machine.
#[derive(Debug)]
pub(crate) enum Phase {
    /// No session.
    Detached,
    /// A session; the first probe of the CLI runs.
    Starting,
    /// A session of a stopped agent; the machine waits until it is started.
    Stopped,
    /// Waiting for a turn.
    Beginning,
    /// Waiting for a requested turn of this kind.
    Opening(Kind),
    /// A turn is open, and the CLI is probed before it.
    Probing(Job),
    /// A turn is open, and claude runs.
    Running(Box<Run>),
    /// The turn is lost, and its claude is killed.
    Discarding(After),
    /// claude is gone, and the end of the turn is reported to the broker.
    Ending { turn_id: u64, kind: Kind, outcome: Outcome, error: String },
    /// Waiting until this time for a new session, after an unexpected refusal.
    Recovering(BootTime),
    /// The session is lost, for this reason, while the broker is asked whether the harness may end:
    /// the answer decides between a new session and the end.
    Unsure(String),
    /// Waiting for the broker's confirmation that no turn is open.
    Leaving,
    /// The program ends.
    Gone,
}

/// The next phase after a claude whose turn was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// A new session.
    Attach,
    /// The next turn.
    Rest,
}

/// A running claude.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) plan: TurnPlan,
    pub(crate) step: Step,
    pub(crate) model: String,
    /// Whether it begins a new conversation, and has not reported it yet.
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

/// The result of the last probe of the CLI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cli {
    /// No probe has ended yet.
    Unknown,
    /// The CLI can be used.
    Ready,
    /// The CLI cannot be used.
    Broken {
        error: String,
        /// When to probe again.
        next_at: BootTime,
        /// Number of failed probes in a row.
        failures: u32,
    },
}

/// The park of the agent.
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
