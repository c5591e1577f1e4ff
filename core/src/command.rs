//! Commands of the operator to a harness. A command is a row until a harness has acknowledged it.

use serde::{Deserialize, Serialize};

use crate::id::{CommandId, TurnId};
use crate::time::WallTime;

/// What a harness is told to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// End this turn; its deliveries are held.
    CancelTurn(TurnId),
    /// Start the next turn with a fresh conversation.
    StartNewSession,
    /// Run on this model from the next turn on.
    SetModel(String),
    /// Hand back the running turn and start anew.
    RestartHarness,
    /// Compact the conversation, once no turn runs.
    CompactSession,
}

/// An order on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its id.
    pub id: CommandId,
    /// What to do.
    pub order: Order,
    /// When it was given.
    pub create_time: WallTime,
}
