//! The trigger of a turn, and the steps of the turn.

use std::sync::Arc;

use hive_core::delivery::Delivery;
use hive_core::trace::TraceContext;
use hive_core::turn::Kind;

use crate::heartbeat::Agenda;
use crate::turn::input::Begun;

/// The trigger of a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A message.
    Mail(Arc<Begun>),
    /// The agent requested another turn.
    Continue,
    /// The agent's notes, before its conversation is compacted.
    Checkpoint,
    /// The conversation is compacted.
    Compact,
}

impl Trigger {
    /// Returns the turn's kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Mail(_) => Kind::Mail,
            Self::Continue => Kind::Continue,
            Self::Checkpoint => Kind::Checkpoint,
            Self::Compact => Kind::Compact,
        }
    }

    /// Returns the step of this trigger.
    pub fn step(&self) -> Step {
        match self {
            Self::Mail(_) | Self::Continue => Step::Work,
            Self::Checkpoint => Step::Checkpoint,
            Self::Compact => Step::Compact,
        }
    }

    /// Returns the message and the number of the attempt, as text.
    pub fn summary(&self) -> String {
        match self {
            Self::Mail(begun) => {
                let Delivery { message, attempt, .. } = &begun.delivery;
                format!("message {}, attempt {attempt}", message.id)
            }
            Self::Continue => "continued".to_owned(),
            Self::Checkpoint => "checkpoint".to_owned(),
            Self::Compact => "compaction".to_owned(),
        }
    }
}

/// One run of claude within a turn. Most turns have one, of the turn's own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The work of the turn.
    Work,
    /// The agent writes its notes.
    Checkpoint,
    /// claude compacts the conversation.
    Compact,
}

/// A turn that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub turn_id: u64,
    /// The span of the turn.
    pub trace: Option<TraceContext>,
    pub trigger: Trigger,
}

impl Job {
    /// Returns whether it is a heartbeat for which the agent has noted nothing.
    pub fn needs_no_claude(&self) -> bool {
        let Trigger::Mail(begun) = &self.trigger else { return false };
        begun.agenda == Some(Agenda::Nothing)
    }
}
