//! What the broker says at the end, when everything has come to rest.
//!
//! Invariant: it is read after the last observation of the history that it is checked against.

use crate::noun::{Cause, Kind, Lane, Origin, Outcome, QuestionSeen, State};

/// Everything that is in the broker at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Final {
    /// What the clock on the wall showed when it was read, in ms since 1970.
    pub wall: i64,
    /// Whether everything came to rest before: every inbox was emptied by its reader, and nobody
    /// waits for anything. Then what is still READY or LEASED was forgotten (the operator's inbox
    /// and those of [`Final::unread`] excepted), and what is due has fired.
    pub at_rest: bool,
    /// Inboxes that nobody emptied, though everything else is at rest.
    pub unread: Vec<String>,
    /// All messages.
    pub messages: Vec<Message>,
    /// All deliveries.
    pub deliveries: Vec<Delivery>,
    /// All questions.
    pub questions: Vec<QuestionSeen>,
    /// All reminders.
    pub reminders: Vec<Reminder>,
    /// All turns; may be left empty, then the rules that look at turns of opaque agents are silent.
    pub turns: Vec<Turn>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: u64,
    /// Its author.
    pub origin: Origin,
    /// Names of the recipients.
    pub recipients: Vec<String>,
    /// Its text.
    pub body: String,
    /// What it answers; 0 for nothing.
    pub reply_to: u64,
    /// The turn in which it was sent; 0 for none.
    pub turn: u64,
    /// Its coalescing key; empty for none.
    pub key: String,
    /// The question it is about; 0 for none.
    pub question: u64,
    /// The reminder it comes from; 0 for none.
    pub reminder: u64,
}

impl Message {
    /// What it tells, where the broker made it.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self.origin {
            Origin::System(kind) => Some(kind),
            Origin::Agent(_) | Origin::Operator | Origin::External(_) => None,
        }
    }
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Whose inbox; `operator` for the operator's.
    pub agent: String,
    /// The message.
    pub message: u64,
    /// Where it stands.
    pub state: State,
    /// Its lane.
    pub lane: Lane,
    /// The number of the try that holds it, or held it last; 0 before the first.
    pub attempt: u32,
    /// Why it came back last.
    pub cause: Option<Cause>,
}

/// Where a reminder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReminderState {
    /// Waiting for its time.
    Pending,
    /// Its message is in the inbox.
    Fired,
    /// Withdrawn.
    Cancelled,
}

/// A reminder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reminder {
    /// Its id.
    pub id: u64,
    /// Whose.
    pub agent: String,
    /// Its text.
    pub body: String,
    /// Where it stands.
    pub state: ReminderState,
    /// When it is due, on the wall.
    pub due: i64,
    /// When it fired or was withdrawn; 0 while it is pending.
    pub closed: i64,
    /// The message it became; 0 for none.
    pub message: u64,
}

/// A turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its id.
    pub id: u64,
    /// Whose.
    pub agent: String,
    /// Its session epoch.
    pub epoch: u64,
    /// The delivery that woke it; 0 for none.
    pub message: u64,
    /// The attempt at that delivery; 0 for none.
    pub attempt: u32,
    /// How it ended; `None` while it is open.
    pub outcome: Option<Outcome>,
    /// Messages received in it besides the waking one.
    pub received: Vec<u64>,
    /// Messages sent in it.
    pub sent: Vec<u64>,
}
