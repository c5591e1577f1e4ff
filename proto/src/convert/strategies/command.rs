//! Orders to a harness, and the commands that carry them.

use hive_core::command::{Command, Order};
use proptest::prelude::*;

use super::{command_id, turn_id, wall_time};

pub(in crate::convert) fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        turn_id().prop_map(Order::CancelTurn),
        Just(Order::StartNewSession),
        "\\PC{1,40}".prop_map(Order::SetModel),
        Just(Order::RestartHarness),
        Just(Order::CompactSession),
    ]
}

pub(in crate::convert) fn command() -> impl Strategy<Value = Command> {
    (command_id(), order(), wall_time()).prop_map(|(id, order, create_time)| Command {
        id,
        order,
        create_time,
    })
}
