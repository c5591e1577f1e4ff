//! What a turn is about.

use std::sync::Arc;

use hive_core::turn::Kind;
use hive_proto::v1;

/// What a turn is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Occasion {
    /// A message.
    Mail(Arc<v1::BeginTurnResponse>),
    /// The agent asked for it.
    Continue,
}

impl Occasion {
    /// The turn's kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Mail(_) => Kind::Mail,
            Self::Continue => Kind::Continue,
        }
    }

    /// The message, and which attempt at it this is, in words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Mail(begun) => {
                let delivery = begun.delivery.as_ref();
                let id = delivery.and_then(|delivery| delivery.message.as_ref()).map_or(0, |message| message.id);
                format!("message {id}, attempt {}", delivery.map_or(0, |delivery| delivery.attempt))
            }
            Self::Continue => "continued".to_owned(),
        }
    }
}

/// A turn that is open.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The turn.
    pub turn_id: u64,
    /// What it is about.
    pub occasion: Occasion,
}
