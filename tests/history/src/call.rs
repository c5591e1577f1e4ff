//! Requests of clients to a broker, and the broker's answers to completed requests.
//!
//! Invariant: an [`Op`] has all that makes two requests the same request; a [`Reply`] has all that
//! must be the same in each answer to it.

use crate::noun::{Cause, Decision, Handed, Outcome, QuestionSeen, State};
use crate::schedule::Terms;

/// The length of a lease that lasts as long as its stream, in ms.
pub const LASTING_MS: u64 = 1 << 42;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A message. `to` holds the recipients' names, resolved by the observer (`operator`, the
    /// parent's name). It is empty for a broadcast.
    Send {
        /// The recipients' names.
        to: Vec<String>,
        /// Whether it is a broadcast, in place of `to`.
        everyone: bool,
        /// The text. It is unique in the history for each send, except for repetitions by a turn
        /// that runs again.
        body: String,
        /// The message that this one answers; 0 for none.
        reply_to: u64,
        /// The turn whose process token the call carries; 0 for none.
        turn: u64,
    },
    /// A message from a co-process to the caller.
    Wake {
        /// The co-process's label.
        label: String,
        /// The text, unique as in `Send`.
        body: String,
        /// The coalescing key; empty for none.
        key: String,
    },
    /// A request to lease mail.
    Receive {
        /// Maximum number of deliveries.
        max: u32,
        /// The requested duration of a consumer's lease, in ms; [`LASTING_MS`] on a stream.
        lease_ms: u64,
        /// The turn whose process token the call carries; 0 for none: a consumer.
        turn: u64,
        /// The tool call in that turn; empty for none.
        tool_use: String,
    },
    /// A lease ends with an ack.
    Ack {
        /// The lease's token.
        token: String,
    },
    /// A lease ends with a nack: the delivery is requeued.
    Nack {
        /// The lease's token.
        token: String,
        /// Whether the failure is permanent.
        permanent: bool,
    },
    /// A lease ends because its holder did not begin.
    Release {
        /// The lease's token.
        token: String,
    },
    /// A request to extend a lease. The beginning and the end of a stream are recorded as
    /// extensions of its leases: to [`LASTING_MS`], and to the orphan grace.
    Extend {
        /// The lease's token.
        token: String,
        /// The new lease length from now, in ms.
        lease_ms: u64,
    },
    /// A harness attaches.
    Attach {
        /// The session to resume; empty for none.
        session: String,
        /// Whether it fences another session.
        take_over: bool,
    },
    BeginTurn {
        session: String,
        /// Whether it is a turn for mail.
        mail: bool,
    },
    EndTurn {
        session: String,
        /// The turn's ID.
        turn: u64,
        /// The turn's outcome.
        outcome: Outcome,
        /// Tool calls whose result reached the model.
        returned: Vec<String>,
    },
    Ask {
        /// The agent or operator asked.
        target: String,
        /// The question's text, unique as in `Send`.
        text: String,
        /// What it asks the operator to approve, in any form; empty for a plain question.
        effect: String,
        /// The time for which the question stays open, in ms; 0: until a caller closes it.
        ttl_ms: u64,
        /// The turn whose process token the call carries; 0 for none.
        turn: u64,
    },
    /// A question to the operator whose effect is a schedule of the caller. A grant of the caller
    /// answers it at once; without one the operator does.
    Schedule {
        /// The question's text, unique as in `Send`.
        text: String,
        /// The time for which the question stays open, in ms; 0: until a caller closes it.
        ttl_ms: u64,
        /// The schedule to change; 0: a new one.
        schedule: u64,
        /// What it sends, where to, and when.
        terms: Terms,
        /// The turn whose process token the call carries; 0 for none.
        turn: u64,
    },
    /// An answer to a question.
    Answer {
        /// The question's ID.
        question: u64,
        /// The chosen options.
        choices: Vec<String>,
        /// The answer's text, unique as in `Send` if there is one.
        text: String,
        /// The digest of the changes that it approves; empty for none.
        digest: String,
    },
    /// A question is withdrawn.
    CancelQuestion {
        /// The question's ID.
        question: u64,
    },
    ReadQuestion {
        /// The question's ID.
        question: u64,
    },
    Remind {
        /// The reminder's text, unique as in `Send`.
        body: String,
        /// The due time.
        due: Due,
        /// The turn whose process token the call carries; 0 for none.
        turn: u64,
    },
    /// A reminder is withdrawn.
    CancelReminder {
        /// The reminder's ID.
        reminder: u64,
    },
    /// A decision of the operator about a delivery without a lease.
    Decide {
        /// The agent whose inbox holds the delivery.
        agent: String,
        /// The message's ID.
        message: u64,
        decision: Decision,
    },
    /// An order of the operator to end a turn; its deliveries are then held.
    CancelTurn {
        /// The agent whose turn ends.
        agent: String,
        /// The turn's ID; 0: the open turn.
        turn: u64,
    },
    /// A harness's report to its agent's parent about a problem.
    ReportProblem {
        /// The subject of the problem.
        subject: String,
        text: String,
    },
    /// Any other request that changes something.
    Other {
        /// The RPC's name.
        rpc: String,
        /// The request's content, in any form.
        content: String,
    },
}

/// When a reminder is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// This many ms after it was set.
    After(u64),
    /// At this wall clock time, in ms since 1970.
    At(i64),
}

/// The answer to a request that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A message is on disk.
    Sent {
        /// The message's ID.
        message: u64,
        /// Whether an earlier run of the turn had already sent it.
        already: bool,
        /// The agents that a broadcast skipped.
        skipped: Vec<String>,
    },
    /// A wake is on disk.
    Woken {
        /// The message's ID.
        message: u64,
        /// The message that this one superseded; 0 for none.
        superseded: u64,
    },
    /// Mail was leased; may be empty.
    Leased(Vec<Handed>),
    /// A delivery is acked.
    Acked,
    /// A delivery was nacked; its state afterwards.
    Nacked(State),
    /// A delivery was released.
    Released,
    /// A lease lasts longer.
    Extended,
    /// A harness is attached.
    Attached {
        /// The session's token.
        session: String,
        /// The session's number.
        epoch: u64,
        /// Whether an earlier session was resumed.
        resumed: bool,
        /// The session's open turn; 0 for none.
        open_turn: u64,
    },
    /// A turn has begun.
    Turn {
        /// The turn's ID.
        turn: u64,
        /// The session epoch of the turn.
        epoch: u64,
        /// The delivery that started the turn.
        delivery: Option<Handed>,
    },
    TurnEnded(Counts),
    /// A question is on disk.
    Asked {
        /// The question's ID.
        question: u64,
        /// The message that carries the question.
        message: u64,
        /// Whether an earlier run of the turn had already asked it.
        already: bool,
    },
    /// A question in its current state.
    Question(QuestionSeen),
    /// A reminder is on disk.
    Reminded {
        /// The reminder's ID.
        reminder: u64,
        /// The due time on the wall clock.
        due: i64,
        /// Whether an earlier run of the turn had already set it.
        already: bool,
    },
    /// The message that reports a problem is on disk.
    Reported {
        /// The message's ID.
        message: u64,
    },
    /// The request was done. The text is all that must be the same in every answer.
    Done(String),
}

/// The number of a turn's deliveries in each state after its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub acked: u32,
    /// Requeued.
    pub returned: u32,
    /// Dead letters.
    pub dead: u32,
    pub held: u32,
}

impl Counts {
    /// Returns the number of deliveries.
    pub fn total(self) -> u32 {
        self.acked + self.returned + self.dead + self.held
    }
}

impl Op {
    /// Returns the RPC's name: request ids count within it.
    pub fn rpc(&self) -> &str {
        match self {
            Self::Send { .. } => "SendMessage",
            Self::Wake { .. } => "Wake",
            Self::Receive { .. } => "ReceiveMessages",
            Self::Ack { .. } | Self::Decide { decision: Decision::Ack, .. } => "AckDelivery",
            Self::Nack { .. } => "NackDelivery",
            Self::Release { .. } => "SettleDeliveries",
            Self::Extend { .. } => "ExtendLease",
            Self::Attach { .. } => "Attach",
            Self::BeginTurn { .. } => "BeginTurn",
            Self::EndTurn { .. } => "EndTurn",
            Self::Ask { .. } | Self::Schedule { .. } => "AskQuestion",
            Self::Answer { .. } => "AnswerQuestion",
            Self::CancelQuestion { .. } => "CancelQuestion",
            Self::ReadQuestion { .. } => "GetQuestion",
            Self::Remind { .. } => "CreateReminder",
            Self::CancelReminder { .. } => "CancelReminder",
            Self::Decide { decision: Decision::Drop, .. } => "DropDelivery",
            Self::Decide { decision: Decision::Release, .. } => "ReleaseDelivery",
            Self::Decide { decision: Decision::Redrive, .. } => "RedriveDelivery",
            Self::CancelTurn { .. } => "SendCommand",
            Self::ReportProblem { .. } => "ReportProblem",
            Self::Other { rpc, .. } => rpc,
        }
    }

    /// The cause that a delivery shows after this op ended its lease, or decided about it.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Nack { .. } => Some(Cause::Nacked),
            Self::Release { .. } => Some(Cause::NotReceived),
            Self::EndTurn { outcome, .. } => outcome.cause(),
            Self::Decide { decision: Decision::Release, .. } => Some(Cause::Released),
            Self::Decide { decision: Decision::Redrive, .. } => Some(Cause::Redriven),
            Self::Send { .. }
            | Self::Wake { .. }
            | Self::Receive { .. }
            | Self::Ack { .. }
            | Self::Extend { .. }
            | Self::Attach { .. }
            | Self::BeginTurn { .. }
            | Self::Ask { .. }
            | Self::Schedule { .. }
            | Self::Answer { .. }
            | Self::CancelQuestion { .. }
            | Self::ReadQuestion { .. }
            | Self::Remind { .. }
            | Self::CancelReminder { .. }
            | Self::Decide { decision: Decision::Ack | Decision::Drop, .. }
            | Self::CancelTurn { .. }
            | Self::ReportProblem { .. }
            | Self::Other { .. } => None,
        }
    }
}
