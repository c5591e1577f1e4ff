//! The broker's state at the end, when everything is at rest.
//!
//! Invariant: it is read after the last observation of the history that it is checked against.

use crate::noun::{Cause, Kind, Lane, Origin, Outcome, QuestionSeen, State};

/// The complete state of the broker at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Final {
    /// The wall clock when the state was read, in ms since 1970.
    pub wall: i64,
    /// Whether everything was at rest before: every inbox was emptied by its reader, and no waiter
    /// is left. Then a delivery that is still READY or LEASED was forgotten (the operator's inbox
    /// and those of [`Final::unread`] excepted), and every due reminder has fired.
    pub at_rest: bool,
    /// Inboxes without a reader, though everything else is at rest.
    pub unread: Vec<String>,
    pub messages: Vec<Message>,
    pub deliveries: Vec<Delivery>,
    pub questions: Vec<QuestionSeen>,
    pub reminders: Vec<Reminder>,
    /// All turns. If left empty, the rules that check turns of opaque agents are silent.
    pub turns: Vec<Turn>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The message's ID.
    pub id: u64,
    /// The message's author.
    pub origin: Origin,
    /// Names of the recipients, as a list of them has them.
    pub recipients: Vec<String>,
    /// Their number, as the message states it.
    pub recipient_count: u32,
    /// The message's text.
    pub body: String,
    /// The message it replies to; 0 for none.
    pub reply_to: u64,
    /// The turn in which it was sent; 0 for none.
    pub turn: u64,
    /// The coalescing key; empty for none.
    pub key: String,
    /// The question it is about; 0 for none.
    pub question: u64,
    /// The reminder that the message delivers; 0 for none.
    pub reminder: u64,
}

impl Message {
    /// Returns the kind of notice, if the broker made it.
    pub fn kind(&self) -> Option<Kind> {
        match self.origin {
            Origin::System(kind) => Some(kind),
            Origin::Agent(_) | Origin::Operator | Origin::External(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The agent whose inbox holds it; `operator` for the operator's.
    pub agent: String,
    pub message: u64,
    /// The delivery's state.
    pub state: State,
    /// The delivery's lane.
    pub lane: Lane,
    /// The number of the attempt that holds it, or held it last; 0 before the first.
    pub attempt: u32,
    /// The last cause of a redelivery.
    pub cause: Option<Cause>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReminderState {
    /// Waiting for its time.
    Pending,
    /// The message is in the inbox.
    Fired,
    /// Withdrawn.
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reminder {
    /// The reminder's ID.
    pub id: u64,
    /// The agent that set it.
    pub agent: String,
    /// The reminder's text.
    pub body: String,
    /// The reminder's state.
    pub state: ReminderState,
    /// The due time on the wall clock.
    pub due: i64,
    /// When it fired or was withdrawn; 0 while it is pending.
    pub closed: i64,
    /// The message it became; 0 for none.
    pub message: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The turn's ID.
    pub id: u64,
    /// The agent that ran it.
    pub agent: String,
    /// The turn's session epoch.
    pub epoch: u64,
    /// The delivery that started it; 0 for none.
    pub message: u64,
    /// The attempt at that delivery; 0 for none.
    pub attempt: u32,
    /// The outcome of the turn; `None` while the turn is open.
    pub outcome: Option<Outcome>,
    /// Messages received in it besides the one that started it.
    pub received: Vec<u64>,
    /// Messages sent in it.
    pub sent: Vec<u64>,
}
