//! What clients ask a broker to do, and what it answers when it has done it.
//!
//! Invariant: an [`Op`] has all that makes two requests the same request; a [`Reply`] has all that
//! must be the same in each answer to it.

use crate::noun::{Cause, Decision, Handed, Outcome, QuestionSeen, State};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// A message. `to` are the names of the recipients, resolved by the observer (`operator`, the
    /// parent's name); empty where it is to everyone.
    Send {
        /// To whom.
        to: Vec<String>,
        /// To everyone, in place of `to`.
        everyone: bool,
        /// The text: unique in the history for each send, but for the repetitions of a turn that
        /// runs again.
        body: String,
        /// What it answers; 0 for nothing.
        reply_to: u64,
        /// The turn whose process token the call carries; 0 for none.
        turn: u64,
    },
    /// A message from beside the caller, to the caller.
    Wake {
        /// The co-process.
        label: String,
        /// The text, unique as above.
        body: String,
        /// The coalescing key; empty for none.
        key: String,
    },
    /// Mail is to be leased.
    Receive {
        /// At most this many.
        max: u32,
        /// How long a consumer's lease is to last, in ms.
        lease_ms: u64,
        /// The turn whose process token the call carries; 0 for none: a consumer.
        turn: u64,
        /// The tool call in that turn; empty for none.
        tool_use: String,
    },
    /// A lease ends: done.
    Ack {
        /// Its token.
        token: String,
    },
    /// A lease ends: given back.
    Nack {
        /// Its token.
        token: String,
        /// For good.
        permanent: bool,
    },
    /// A lease is to last longer.
    Extend {
        /// Its token.
        token: String,
        /// How long from now, in ms.
        lease_ms: u64,
    },
    /// A harness attaches.
    Attach {
        /// The session to resume; empty for none.
        session: String,
        /// It fences another.
        take_over: bool,
    },
    /// A turn for mail is to begin.
    BeginTurn {
        /// The session.
        session: String,
    },
    /// A turn without mail is to begin.
    OpenTurn {
        /// The session.
        session: String,
    },
    /// A turn ends.
    EndTurn {
        /// The session.
        session: String,
        /// Which.
        turn: u64,
        /// How.
        outcome: Outcome,
        /// Tool calls whose result reached the model.
        returned: Vec<String>,
    },
    /// A question.
    Ask {
        /// Who is asked.
        target: String,
        /// Its text, unique as above.
        text: String,
        /// How long it stays open, in ms; 0: until somebody closes it.
        ttl_ms: u64,
        /// As in `Send`.
        turn: u64,
    },
    /// An answer to a question.
    Answer {
        /// Which.
        question: u64,
        /// The chosen options.
        choices: Vec<String>,
        /// The text, unique as above where there is one.
        text: String,
    },
    /// A question is withdrawn.
    CancelQuestion {
        /// Which.
        question: u64,
    },
    /// A question is read.
    ReadQuestion {
        /// Which.
        question: u64,
    },
    /// A reminder.
    Remind {
        /// Its text, unique as above.
        body: String,
        /// When.
        due: Due,
        /// As in `Send`.
        turn: u64,
    },
    /// A reminder is withdrawn.
    CancelReminder {
        /// Which.
        reminder: u64,
    },
    /// The operator decides about a delivery without a lease.
    Decide {
        /// Whose inbox.
        agent: String,
        /// Which message.
        message: u64,
        /// What.
        decision: Decision,
    },
    /// The operator orders that a turn ends; what it carries is then held.
    CancelTurn {
        /// Whose.
        agent: String,
        /// Which; 0: the open one.
        turn: u64,
    },
    /// A harness tells its agent's parent of something that does not work.
    ReportProblem {
        /// About what.
        subject: String,
        /// The text.
        text: String,
    },
    /// Anything else that changes something.
    Other {
        /// The RPC.
        rpc: String,
        /// What was asked for, in whatever form.
        content: String,
    },
}

/// When a reminder is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// So many ms after it was set.
    After(u64),
    /// At this time on the wall, in ms since 1970.
    At(i64),
}

/// That it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A message is on disk.
    Sent {
        /// Its id.
        message: u64,
        /// It was there already, from an earlier run of the turn.
        already: bool,
        /// Whom a broadcast left out.
        skipped: Vec<String>,
    },
    /// A wake is on disk.
    Woken {
        /// Its id.
        message: u64,
        /// The message whose place it took; 0 for none.
        superseded: u64,
    },
    /// Mail was leased; may be empty.
    Leased(Vec<Handed>),
    /// A delivery is acked.
    Acked,
    /// A delivery was given back.
    Nacked(State),
    /// A lease lasts longer.
    Extended,
    /// A harness is attached.
    Attached {
        /// Its session.
        session: String,
        /// The number of the session.
        epoch: u64,
        /// An earlier session goes on.
        resumed: bool,
        /// The turn it has open; 0 for none.
        open_turn: u64,
    },
    /// A turn has begun.
    Turn {
        /// Which.
        turn: u64,
        /// In which session epoch.
        epoch: u64,
        /// What woke it.
        delivery: Option<Handed>,
    },
    /// A turn has ended.
    TurnEnded(Counts),
    /// A question is on disk.
    Asked {
        /// Its id.
        question: u64,
        /// The message that brings it.
        message: u64,
        /// It was there already, from an earlier run of the turn.
        already: bool,
    },
    /// A question, as it stands.
    Question(QuestionSeen),
    /// A reminder is on disk.
    Reminded {
        /// Its id.
        reminder: u64,
        /// When it is due, on the wall.
        due: i64,
        /// It was there already, from an earlier run of the turn.
        already: bool,
    },
    /// A message that tells of a problem is on disk.
    Reported {
        /// Its id.
        message: u64,
    },
    /// Done; the text is all that must be the same in every answer.
    Done(String),
}

/// What became of a turn's deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Acked.
    pub acked: u32,
    /// Given back.
    pub returned: u32,
    /// Dead letters.
    pub dead: u32,
    /// Held.
    pub held: u32,
}

impl Counts {
    /// How many there were.
    #[must_use]
    pub fn total(self) -> u32 {
        self.acked + self.returned + self.dead + self.held
    }
}

impl Op {
    /// The RPC: request ids count within it.
    #[must_use]
    pub fn rpc(&self) -> &str {
        match self {
            Self::Send { .. } => "SendMessage",
            Self::Wake { .. } => "Wake",
            Self::Receive { .. } => "ReceiveMessages",
            Self::Ack { .. } | Self::Decide { decision: Decision::Ack, .. } => "AckDelivery",
            Self::Nack { .. } => "NackDelivery",
            Self::Extend { .. } => "ExtendLease",
            Self::Attach { .. } => "Attach",
            Self::BeginTurn { .. } => "BeginTurn",
            Self::OpenTurn { .. } => "OpenTurn",
            Self::EndTurn { .. } => "EndTurn",
            Self::Ask { .. } => "AskQuestion",
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
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Nack { .. } => Some(Cause::Nacked),
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
            | Self::OpenTurn { .. }
            | Self::Ask { .. }
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
