//! Records of one observer while a hive runs: calls, their answers, what else it saw, and what
//! happened to the programs.
//!
//! What it is not: a copy of the wire; it holds only what a rule reads. Invariant: observations are
//! in the order in which the observer made them, and `at` never decreases. An answer comes after
//! its call, and the hive's action happened between the two.

use std::fmt;

use crate::call::{Op, Reply};
use crate::noun::QuestionSeen;

/// The number of a call, set by the observer; unique in its history.
pub type CallNo = u64;

/// Maximum characters per line of a report.
const LINE_CHARS_MAX: usize = 600;

/// Everything that one observer saw, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The observer's prior knowledge about the hive.
    pub setting: Setting,
    pub observations: Vec<Observation>,
    next_call: CallNo,
}

/// The observer's prior knowledge about the hive.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The number of failures after which a delivery is a dead letter.
    pub attempts_max: u32,
    /// Maximum time that a harness may be detached before its turn ends, in ms.
    pub grace_ms: u64,
    /// Agents whose turns are run by programs that this observer cannot inspect. They may have
    /// received, settled, sent, asked and answered anything at any time. Rules that need to know it
    /// are silent about them.
    pub opaque: Vec<String>,
    /// Opaque agents that are known never to send the same text twice in one turn: "not doubled"
    /// can be checked for them.
    pub says_once: Vec<String>,
    /// Maximum difference between times measured by the observer and by the broker, in ms (mostly
    /// rounding).
    pub tolerance_ms: u64,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            grace_ms: 60_000,
            opaque: Vec::new(),
            says_once: Vec::new(),
            tolerance_ms: 5,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The time in ms on a clock that only goes forward (the boot clock, or a simulation's).
    pub at: u64,
    /// The wall clock at that time, in ms since 1970.
    pub wall: i64,
    pub event: Event,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call left the client.
    Invoked {
        call: CallNo,
        /// The socket it used: an agent's name, or `operator`.
        caller: String,
        /// The request ID; retries of one request have the same. Empty if the call has none.
        request_id: String,
        /// The operation requested.
        op: Op,
    },
    /// The client received the end of a call. A call without it counts as [`Answer::Unknown`].
    Answered {
        /// The number of the call that ended.
        call: CallNo,
        answer: Answer,
    },
    /// A question was seen in a watch.
    Saw(QuestionSeen),
    /// Something happened to the hive.
    Mark(Mark),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request was done, now or before.
    Ok(Reply),
    /// A definite refusal, with its reason: this call wrote nothing.
    Refused(String),
    /// The outcome is unknown: no answer, a lost connection, STORAGE_UNAVAILABLE, DRAINING.
    Unknown(String),
}

/// Something that happened to the hive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The broker is about to be killed or drained. Recorded *before* it is done.
    BrokerDown,
    /// The broker reports that it is ready again.
    BrokerReady,
    /// A backup is about to be requested.
    BackupBegun {
        /// The number of the backup, unique in its history.
        backup: u64,
    },
    /// The backup is complete.
    BackedUp {
        /// The number of the backup.
        backup: u64,
    },
    /// The backup has replaced the database of a broker that is down.
    Restored {
        /// The number of the backup.
        backup: u64,
    },
    /// The host's boot id is about to change. Recorded before it is done.
    Reboot,
    /// A harness lost its connection or was killed. Recorded before it is done. A broker that goes
    /// down detaches all.
    Detached {
        /// The harness's agent.
        agent: String,
    },
    /// An agent is about to be retired.
    Retiring {
        /// The agent's name.
        agent: String,
    },
    /// An agent was stopped: the call has been answered.
    Stopped {
        /// The agent's name.
        agent: String,
    },
    /// A stopped agent is about to be started.
    Starting {
        /// The agent's name.
        agent: String,
    },
    /// An agent is about to be purged.
    Purging {
        /// The agent's name.
        agent: String,
    },
    /// An agent was purged: the call has been answered.
    Purged {
        /// The agent's name.
        agent: String,
    },
    /// The wall clock was set; the observation's `wall` is what it shows now.
    ClockSet,
    /// A note for the reader of a tail.
    Note(String),
}

impl History {
    /// Creates an empty history.
    pub fn new(setting: Setting) -> Self {
        Self { setting, observations: Vec::new(), next_call: 0 }
    }

    /// Appends an observation.
    pub fn push(&mut self, at: u64, wall: i64, event: Event) {
        assert!(
            self.observations.last().is_none_or(|last| last.at <= at),
            "an observer's time goes forward"
        );
        self.observations.push(Observation { at, wall, event });
    }

    /// Records a call that is about to leave. It must be recorded before it does.
    pub fn invoke(&mut self, at: u64, wall: i64, caller: &str, request_id: &str, op: Op) -> CallNo {
        self.next_call += 1;
        let call = self.next_call;
        self.push(
            at,
            wall,
            Event::Invoked {
                call,
                caller: caller.to_owned(),
                request_id: request_id.to_owned(),
                op,
            },
        );
        call
    }

    /// Records the end of a call. It must be recorded after it ended.
    pub fn answer(&mut self, at: u64, wall: i64, call: CallNo, answer: Answer) {
        self.push(at, wall, Event::Answered { call, answer });
    }

    /// Returns the last observations, a line each with its index, for a report.
    pub fn tail(&self, count: usize) -> String {
        let skipped = self.observations.len().saturating_sub(count);
        let tail = self.observations.iter().enumerate().skip(skipped);
        tail.map(|(index, observation)| line(index, observation)).collect()
    }

    /// Returns the calls without an answer, a line each.
    pub fn open(&self) -> String {
        let ended = |observation: &Observation| match &observation.event {
            Event::Answered { call, .. } => Some(*call),
            Event::Invoked { .. } | Event::Saw(_) | Event::Mark(_) => None,
        };
        let ended: std::collections::HashSet<CallNo> =
            self.observations.iter().filter_map(ended).collect();
        let is_open = |observation: &Observation| match &observation.event {
            Event::Invoked { call, .. } => !ended.contains(call),
            Event::Answered { .. } | Event::Saw(_) | Event::Mark(_) => false,
        };
        let open =
            self.observations.iter().enumerate().filter(|(_, observation)| is_open(observation));
        open.map(|(index, observation)| line(index, observation)).collect()
    }

    /// Returns the observations with these indices, a line each.
    pub fn lines(&self, indices: &[usize]) -> String {
        let known = |index: &usize| {
            self.observations.get(*index).map(|observation| line(*index, observation))
        };
        indices.iter().filter_map(known).collect()
    }
}

/// Formats a line of a report and truncates long ones.
fn line(index: usize, observation: &Observation) -> String {
    let text = format!("#{index} {observation}");
    match text.char_indices().nth(LINE_CHARS_MAX) {
        Some((end, _)) => format!("{}…\n", &text[..end]),
        None => text + "\n",
    }
}

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>8} ms  ", self.at)?;
        match &self.event {
            Event::Invoked { call, caller, request_id, op } => {
                write!(f, "{caller} call {call} [{request_id}] {op:?}")
            }
            Event::Answered { call, answer } => write!(f, "     call {call} -> {answer:?}"),
            Event::Saw(question) => write!(f, "saw {question:?}"),
            Event::Mark(mark) => write!(f, "==== {mark:?}"),
        }
    }
}
