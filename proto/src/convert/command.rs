//! Commands of the operator to a harness.

use hive_core::command::{Command, Kind, Order};
use hive_core::id::{CommandId, TurnId};
use hive_core::limits::MODEL_CHARS_MAX;

use super::time::{required_wall_time, timestamp};
use super::{FromWire, IntoWire, Invalid, id, required, same_values};
use crate::v1;
use crate::v1::command::Command as WireOrder;

same_values!(
    v1::CommandKind,
    Kind { CancelTurn, StartNewSession, SetModel, RestartHarness, CompactSession, Login }
);

impl IntoWire for Order {
    type Wire = WireOrder;
    fn into_wire(self) -> WireOrder {
        match self {
            Order::CancelTurn(turn) => {
                WireOrder::CancelTurn(v1::CancelTurn { turn_id: turn.get() })
            }
            Order::StartNewSession => WireOrder::StartNewSession(v1::StartNewSession {}),
            Order::SetModel(model) => WireOrder::SetModel(v1::SetModel { model }),
            Order::RestartHarness => WireOrder::RestartHarness(v1::RestartHarness {}),
            Order::CompactSession => WireOrder::CompactSession(v1::CompactSession {}),
        }
    }
}

/// A cancel must name its turn here. The broker replaces the 0 of `SendCommandRequest` by the open
/// turn before this.
impl FromWire for Order {
    type Wire = WireOrder;
    fn from_wire(wire: WireOrder) -> Result<Self, Invalid> {
        Ok(match wire {
            WireOrder::CancelTurn(v1::CancelTurn { turn_id }) => {
                Self::CancelTurn(id(turn_id, TurnId::new, "cancel_turn.turn_id")?)
            }
            WireOrder::StartNewSession(v1::StartNewSession {}) => Self::StartNewSession,
            WireOrder::SetModel(v1::SetModel { model }) => {
                Self::SetModel(self::model(model, "set_model.model")?)
            }
            WireOrder::RestartHarness(v1::RestartHarness {}) => Self::RestartHarness,
            WireOrder::CompactSession(v1::CompactSession {}) => Self::CompactSession,
        })
    }
}

/// Parses a model's name in a field that must have one.
pub fn model(text: String, path: &str) -> Result<String, Invalid> {
    if text.is_empty() {
        return Err(Invalid::new(path, "must name a model"));
    }
    if text.chars().count() > MODEL_CHARS_MAX || text.chars().any(char::is_control) {
        return Err(Invalid::new(
            path,
            format!("must be one line of at most {MODEL_CHARS_MAX} characters"),
        ));
    }
    Ok(text)
}

impl IntoWire for Command {
    type Wire = v1::Command;
    fn into_wire(self) -> v1::Command {
        let Command { id, order, create_time } = self;
        v1::Command {
            id: id.get(),
            command: Some(order.into_wire()),
            create_time: Some(timestamp(create_time)),
        }
    }
}

impl FromWire for Command {
    type Wire = v1::Command;
    fn from_wire(wire: v1::Command) -> Result<Self, Invalid> {
        let v1::Command { id: number, command, create_time } = wire;
        Ok(Self {
            id: id(number, CommandId::new, "id")?,
            order: Order::from_wire(required(command, "command")?)?,
            create_time: required_wall_time(create_time, "create_time")?,
        })
    }
}
