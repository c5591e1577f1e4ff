//! Commands of the operator to a harness. A command is a row until a harness has acknowledged it.

use serde::{Deserialize, Serialize};

use crate::id::{CommandId, TurnId};
use crate::time::WallTime;

/// The content of a command to a harness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// End this turn; its deliveries are held.
    CancelTurn(TurnId),
    /// Start the next turn with a fresh conversation.
    StartNewSession,
    /// Run on this model from the next turn on.
    SetModel(String),
    /// Requeue the deliveries of the running turn and restart.
    RestartHarness,
    /// Compact the conversation, once no turn runs.
    CompactSession,
}

/// What the operator asks of a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// [`Order::CancelTurn`].
    CancelTurn,
    /// [`Order::StartNewSession`].
    StartNewSession,
    /// [`Order::SetModel`].
    SetModel,
    /// [`Order::RestartHarness`].
    RestartHarness,
    /// [`Order::CompactSession`].
    CompactSession,
    /// A login dialogue, which is no command.
    Login,
}

impl Order {
    /// Returns what it asks.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::CancelTurn(_) => Kind::CancelTurn,
            Self::StartNewSession => Kind::StartNewSession,
            Self::SetModel(_) => Kind::SetModel,
            Self::RestartHarness => Kind::RestartHarness,
            Self::CompactSession => Kind::CompactSession,
        }
    }
}

/// An order until a harness acknowledges it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Unique id.
    pub id: CommandId,
    /// The order.
    pub order: Order,
    /// When the operator gave it.
    pub create_time: WallTime,
}
