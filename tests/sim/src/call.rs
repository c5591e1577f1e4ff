//! The calls of simulated clients, in the types of the engine.
//!
//! Invariant: apart from the caller, a call has everything that makes two requests the same.

use hive_core::agent::PolicyPart;
use hive_core::delivery::Decision;
use hive_core::effect::Effect;
use hive_core::turn::{Kind, Outcome};
use hive_history as history;

/// The recipient of a message, as a sender writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// An agent, or the operator.
    Name(String),
    Parent,
    Everyone,
}

/// When a reminder is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    In(u64),
    At(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Send {
        to: To,
        body: String,
        reply_to: u64,
    },
    Wake {
        label: String,
        body: String,
        key: String,
    },
    Receive {
        max: u32,
        wait_ms: u64,
        lease_ms: u64,
        tool_use: String,
        /// What is settled first.
        settle: Vec<Call>,
    },
    /// Settlements in one commit.
    Settle {
        entries: Vec<Call>,
    },
    Release {
        token: String,
    },
    Ack {
        token: String,
    },
    Nack {
        token: String,
        permanent: bool,
    },
    Extend {
        token: String,
        lease_ms: u64,
    },
    Attach {
        session: String,
        take_over: bool,
    },
    Begin {
        session: String,
        process: String,
        kind: Kind,
    },
    End {
        session: String,
        turn: u64,
        outcome: Outcome,
        returned: Vec<String>,
        retry_at: Option<i64>,
        compacted: bool,
    },
    NextTurn,
    Heartbeat {
        session: String,
    },
    Report {
        session: String,
        idle: bool,
    },
    Problem {
        session: String,
        subject: String,
        text: String,
    },
    AckCommand {
        session: String,
        command: u64,
    },
    Ask {
        to: To,
        text: String,
        options: Vec<String>,
        /// What it asks the operator to approve.
        effect: Option<Box<Effect>>,
        ttl_ms: u64,
    },
    /// A question about a schedule: a new one if the number is 0.
    Schedule {
        text: String,
        ttl_ms: u64,
        schedule: u64,
        terms: history::Terms,
    },
    CancelSchedule {
        schedule: u64,
    },
    FireSchedule {
        schedule: u64,
    },
    PauseSchedule {
        schedule: u64,
    },
    ResumeSchedule {
        schedule: u64,
    },
    Answer {
        question: u64,
        choices: Vec<String>,
        text: String,
        /// The digest of the changes that it approves.
        digest: String,
    },
    CancelQuestion {
        question: u64,
    },
    ReadQuestion {
        question: u64,
    },
    Remind {
        body: String,
        due: Due,
    },
    CancelReminder {
        reminder: u64,
    },
    Decide {
        agent: String,
        message: u64,
        decision: Decision,
    },
    CancelTurn {
        agent: String,
    },
    RestartHarness {
        agent: String,
    },
    Create {
        agent: String,
        parent: Option<String>,
        adopt: bool,
        rights: Rights,
    },
    /// Changes a number in the policy of an agent.
    SetPolicy {
        agent: String,
        part: PolicyPart,
        number: u32,
    },
    Retire {
        agent: String,
    },
    /// Purges an agent.
    Purge {
        agent: String,
    },
    /// Stops an agent.
    Stop {
        agent: String,
    },
    /// Starts a stopped agent.
    Start {
        agent: String,
    },
}

/// What an agent may do beyond the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    /// It may create schedules by a grant.
    pub(crate) schedules: bool,
    /// It may ask the operator to approve changes.
    pub(crate) approvals: bool,
}

/// The caller and its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// An agent's name, or `operator`.
    pub(crate) name: String,
    /// Whether it is the second operator, which has a uid of its own.
    pub(crate) is_second: bool,
    /// The token of the process, and the turn it runs.
    pub(crate) process: Option<(String, u64)>,
}

impl Who {
    pub(crate) fn operator() -> Self {
        Self::agent("operator".to_owned())
    }

    pub(crate) fn second_operator() -> Self {
        Self { is_second: true, ..Self::operator() }
    }

    /// Returns an agent outside any process of it.
    pub(crate) fn agent(name: String) -> Self {
        Self { name, is_second: false, process: None }
    }

    fn turn(&self) -> u64 {
        self.process.as_ref().map_or(0, |(_, turn)| *turn)
    }
}

impl Call {
    /// Returns the RPC's name.
    pub(crate) fn rpc(&self) -> &'static str {
        match self {
            Self::Send { .. } => "SendMessage",
            Self::Wake { .. } => "Wake",
            Self::Receive { .. } => "ReceiveMessages",
            Self::Settle { .. } | Self::Release { .. } => "SettleDeliveries",
            Self::Ack { .. } => "AckDelivery",
            Self::Nack { .. } => "NackDelivery",
            Self::Extend { .. } => "ExtendLease",
            Self::Attach { .. } => "Attach",
            Self::Begin { .. } => "BeginTurn",
            Self::End { .. } => "EndTurn",
            Self::NextTurn => "RequestNextTurn",
            Self::Heartbeat { .. } => "Heartbeat",
            Self::Report { .. } => "ReportHarness",
            Self::Problem { .. } => "ReportProblem",
            Self::AckCommand { .. } => "AckCommand",
            Self::Ask { .. } | Self::Schedule { .. } => "AskQuestion",
            Self::CancelSchedule { .. } => "CancelSchedule",
            Self::FireSchedule { .. } => "FireSchedule",
            Self::PauseSchedule { .. } => "PauseSchedule",
            Self::ResumeSchedule { .. } => "ResumeSchedule",
            Self::Answer { .. } => "AnswerQuestion",
            Self::CancelQuestion { .. } => "CancelQuestion",
            Self::ReadQuestion { .. } => "GetQuestion",
            Self::Remind { .. } => "CreateReminder",
            Self::CancelReminder { .. } => "CancelReminder",
            Self::Decide { decision: Decision::Ack, .. } => "AckDelivery",
            Self::Decide { decision: Decision::Drop, .. } => "DropDelivery",
            Self::Decide { decision: Decision::Release, .. } => "ReleaseDelivery",
            Self::Decide { decision: Decision::Redrive | Decision::Supersede, .. } => {
                "RedriveDelivery"
            }
            Self::CancelTurn { .. } | Self::RestartHarness { .. } => "SendCommand",
            Self::Create { .. } => "CreateAgent",
            Self::SetPolicy { .. } => "SetPolicy",
            Self::Retire { .. } | Self::Purge { .. } => "RetireAgent",
            Self::Stop { .. } => "StopAgent",
            Self::Start { .. } => "StartAgent",
        }
    }

    /// Returns the settlements in it.
    pub(crate) fn entries(&self) -> &[Self] {
        let (Self::Settle { entries } | Self::Receive { settle: entries, .. }) = self else {
            return &[];
        };
        entries
    }

    /// Returns whether it has a request id.
    pub(crate) fn is_repeatable(&self) -> bool {
        !matches!(
            self,
            Self::Settle { .. }
                | Self::Release { .. }
                | Self::Extend { .. }
                | Self::Attach { .. }
                | Self::NextTurn
                | Self::Heartbeat { .. }
                | Self::Report { .. }
                | Self::AckCommand { .. }
                | Self::ReadQuestion { .. }
        )
    }

    /// Returns whether it may wait for long.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Self::Begin { kind: Kind::Mail, .. } | Self::Receive { .. })
    }

    /// Returns the call as the observer records it, with the caller's current parent, or `None` if
    /// no rule uses it.
    pub(crate) fn observed(&self, who: &Who, parent: &str) -> Option<history::Op> {
        use history::Op;
        let resolve = |to: &To| match to {
            To::Name(name) => name.clone(),
            To::Parent => parent.to_owned(),
            To::Everyone => "*".to_owned(),
        };
        let turn = who.turn();
        let other = |call: &Self| {
            Some(Op::Other { rpc: call.rpc().to_owned(), content: format!("{call:?}") })
        };
        Some(match self.clone() {
            Self::Send { to, body, reply_to } => {
                let everyone = to == To::Everyone;
                let to = if everyone { Vec::new() } else { vec![resolve(&to)] };
                Op::Send { to, everyone, body, reply_to, turn }
            }
            Self::Wake { label, body, key } => Op::Wake { label, body, key },
            Self::Receive { max, wait_ms: _, lease_ms, tool_use, settle: _ } => {
                Op::Receive { max, lease_ms, turn, tool_use }
            }
            // Each of its entries is observed by itself.
            Self::Settle { .. } => return None,
            Self::Release { token } => Op::Release { token },
            Self::Ack { token } => Op::Ack { token },
            Self::Nack { token, permanent } => Op::Nack { token, permanent },
            Self::Extend { token, lease_ms } => Op::Extend { token, lease_ms },
            Self::Attach { session, take_over } => Op::Attach { session, take_over },
            Self::Begin { session, process: _, kind } => {
                Op::BeginTurn { session, mail: kind == Kind::Mail }
            }
            Self::End { session, turn, outcome, returned, retry_at: _, compacted: _ } => {
                Op::EndTurn { session, turn, outcome: crate::seen::outcome(outcome), returned }
            }
            Self::Ask { to, text, options: _, effect, ttl_ms } => {
                let effect = effect.map(|effect| format!("{effect:?}")).unwrap_or_default();
                Op::Ask { target: resolve(&to), text, effect, ttl_ms, turn }
            }
            Self::Schedule { text, ttl_ms, schedule, terms } => {
                Op::Schedule { text, ttl_ms, schedule, terms, turn }
            }
            Self::Answer { question, choices, text, digest } => {
                Op::Answer { question, choices, text, digest }
            }
            Self::CancelQuestion { question } => Op::CancelQuestion { question },
            Self::ReadQuestion { question } => Op::ReadQuestion { question },
            Self::Remind { body, due } => {
                let due = match due {
                    Due::In(delay) => history::Due::After(delay),
                    Due::At(time) => history::Due::At(time),
                };
                Op::Remind { body, due, turn }
            }
            Self::CancelReminder { reminder } => Op::CancelReminder { reminder },
            Self::Decide { agent, message, decision } => {
                let decision = match decision {
                    Decision::Ack => history::Decision::Ack,
                    Decision::Drop => history::Decision::Drop,
                    Decision::Release => history::Decision::Release,
                    Decision::Redrive | Decision::Supersede => history::Decision::Redrive,
                };
                Op::Decide { agent, message, decision }
            }
            Self::CancelTurn { agent } => Op::CancelTurn { agent, turn: 0 },
            Self::Problem { session: _, subject, text } => Op::ReportProblem { subject, text },
            Self::NextTurn | Self::Heartbeat { .. } | Self::Report { .. } => return None,
            Self::AckCommand { .. }
            | Self::CancelSchedule { .. }
            | Self::FireSchedule { .. }
            | Self::PauseSchedule { .. }
            | Self::ResumeSchedule { .. }
            | Self::RestartHarness { .. }
            | Self::Create { .. }
            | Self::SetPolicy { .. }
            | Self::Retire { .. }
            | Self::Purge { .. }
            | Self::Stop { .. }
            | Self::Start { .. } => {
                return other(self);
            }
        })
    }
}
