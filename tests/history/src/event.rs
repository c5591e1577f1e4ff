//! What one observer writes down while a hive runs: calls, their answers, what else it saw, and
//! what befell the programs.
//!
//! What it is not: a copy of the wire. Only what a rule looks at is here. Invariant: observations
//! are in the order in which the observer made them, `at` never goes back, and an answer comes
//! after its call; what happened inside the hive happened somewhere between the two.

use std::fmt;

use crate::call::{Op, Reply};
use crate::noun::QuestionSeen;

/// The number of a call, given by the observer; unique in its history.
pub type CallNo = u64;

/// Most characters of a line in a report.
const LINE_CHARS_MAX: usize = 600;

/// Everything that one observer saw, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What the observer knows about the hive beforehand.
    pub setting: Setting,
    /// The observations.
    pub observations: Vec<Observation>,
    next_call: CallNo,
}

/// What the observer knows about the hive beforehand.
#[derive(Clone, Debug)]
pub struct Setting {
    /// After how many failures a delivery is a dead letter.
    pub attempts_max: u32,
    /// How long a harness may be away before its turn is over, in ms.
    pub grace_ms: u64,
    /// Agents whose turns are run by programs that this observer cannot look into: they may have
    /// received, settled, sent, asked and answered anything at any time, so rules that need to know
    /// it are silent about them.
    pub opaque: Vec<String>,
    /// Opaque agents of which it is known that one turn never sends the same text twice: for them
    /// "not doubled" can be checked.
    pub says_once: Vec<String>,
    /// How far the clocks of the observer and of the broker may be apart in what they count, in ms
    /// (rounding, mostly).
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

/// One observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When, in ms on a clock that only goes forward (the boot clock, or a simulation's).
    pub at: u64,
    /// What the clock on the wall showed then, in ms since 1970.
    pub wall: i64,
    /// What.
    pub event: Event,
}

/// What was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A call left the client.
    Invoked {
        /// Its number.
        call: CallNo,
        /// On whose socket: an agent's name, or `operator`.
        caller: String,
        /// The request id; retries of one request have the same. Empty where the call has none.
        request_id: String,
        /// What was asked for.
        op: Op,
    },
    /// The client heard how a call ended. A call without this is as one with [`Answer::Unknown`].
    Answered {
        /// Its number.
        call: CallNo,
        /// How it ended.
        answer: Answer,
    },
    /// A question was seen in a watch.
    Saw(QuestionSeen),
    /// Something befell the hive.
    Mark(Mark),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done, or had been done before.
    Ok(Reply),
    /// A definite no, with its reason: this call wrote nothing.
    Refused(String),
    /// Nobody knows: no answer, a lost connection, STORAGE_UNAVAILABLE, DRAINING.
    Unknown(String),
}

/// What befell the hive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The broker is about to be killed, or to be drained; to be written down *before* it is done.
    BrokerDown,
    /// The broker says that it is ready again.
    BrokerReady,
    /// The host's boot id is about to change. To be written down before it is done.
    Reboot,
    /// A harness lost its connection or was killed; to be written down before it is done. A broker
    /// that goes down detaches all.
    Detached {
        /// Whose.
        agent: String,
    },
    /// An agent is about to be retired.
    Retiring {
        /// Which.
        agent: String,
    },
    /// An agent was stopped: the call has been answered.
    Stopped {
        /// Which.
        agent: String,
    },
    /// A stopped agent is about to be started.
    Starting {
        /// Which.
        agent: String,
    },
    /// An agent is about to be purged.
    Purging {
        /// Which.
        agent: String,
    },
    /// An agent was purged: the call has been answered.
    Purged {
        /// Which.
        agent: String,
    },
    /// The wall clock was set; the observation's `wall` is what it shows now.
    ClockSet,
    /// Anything else worth reading in a tail.
    Note(String),
}

impl History {
    /// An empty one.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        Self { setting, observations: Vec::new(), next_call: 0 }
    }

    /// Writes something down.
    ///
    /// # Panics
    ///
    /// If time goes back.
    pub fn push(&mut self, at: u64, wall: i64, event: Event) {
        assert!(
            self.observations.last().is_none_or(|last| last.at <= at),
            "an observer's time goes forward"
        );
        self.observations.push(Observation { at, wall, event });
    }

    /// A call is about to leave. To be written down before it does.
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

    /// A call ended. To be written down after it did.
    pub fn answer(&mut self, at: u64, wall: i64, call: CallNo, answer: Answer) {
        self.push(at, wall, Event::Answered { call, answer });
    }

    /// The last observations, a line each with its index, for a report.
    #[must_use]
    pub fn tail(&self, count: usize) -> String {
        let skipped = self.observations.len().saturating_sub(count);
        let tail = self.observations.iter().enumerate().skip(skipped);
        tail.map(|(index, observation)| line(index, observation)).collect()
    }

    /// The calls that nobody has heard the end of, a line each.
    #[must_use]
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

    /// The observations with these indices, a line each.
    #[must_use]
    pub fn lines(&self, indices: &[usize]) -> String {
        let known = |index: &usize| {
            self.observations.get(*index).map(|observation| line(*index, observation))
        };
        indices.iter().filter_map(known).collect()
    }
}

/// A line of a report; long ones are cut.
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
