//! Deliveries, their states, lanes and causes, and the key of a delivery.

use hive_core::delivery::{Delivery, Lane, RedeliveryCause, State};
use hive_core::id::{MessageId, TurnId, number};
use hive_core::message::OPERATOR;

use super::message::agent_name;
use super::time::{optional_wall_time, required_wall_time, timestamp};
use super::{
    FromWire, IntoWire, Invalid, id, optional_id, optional_value, required, required_as,
    same_values, value,
};
use crate::v1;

same_values!(v1::DeliveryState, State { Ready, Leased, Held, Dead, Acked, Dropped, Superseded });

same_values!(v1::Lane, Lane { System, Normal });

same_values!(
    v1::RedeliveryCause,
    RedeliveryCause {
        TurnFailed,
        HarnessVanished,
        RateLimited,
        AuthFailed,
        Unavailable,
        Drained,
        Released,
        Redriven,
        NotReceived,
        Nacked,
        LeaseExpired,
        Restored,
    }
);

impl IntoWire for Delivery {
    type Wire = v1::Delivery;
    fn into_wire(self) -> v1::Delivery {
        let Delivery {
            message,
            agent,
            lane,
            state,
            attempt,
            cause,
            last_error,
            output_tail,
            turn_id,
            not_before,
            state_time,
            settled_by,
        } = self;
        v1::Delivery {
            message: Some(message.into_wire()),
            agent,
            state: state.into_wire().into(),
            lane: lane.into_wire().into(),
            attempt,
            redelivery_cause: super::optional_number(cause),
            last_error,
            output_tail,
            turn_id: number(turn_id, TurnId::get),
            not_before_time: not_before.map(timestamp),
            state_time: Some(timestamp(state_time)),
            settled_by,
        }
    }
}

impl FromWire for Delivery {
    type Wire = v1::Delivery;
    fn from_wire(wire: v1::Delivery) -> Result<Self, Invalid> {
        let v1::Delivery {
            message,
            agent,
            state,
            lane,
            attempt,
            redelivery_cause,
            last_error,
            output_tail,
            turn_id,
            not_before_time,
            state_time,
            settled_by,
        } = wire;
        Ok(Self {
            message: required_as(message, "message")?,
            agent,
            lane: value(lane, "lane")?,
            state: value(state, "state")?,
            attempt,
            cause: optional_value(redelivery_cause, "redelivery_cause")?,
            last_error,
            output_tail,
            turn_id: optional_id(turn_id, TurnId::new, "turn_id")?,
            not_before: optional_wall_time(not_before_time, "not_before_time")?,
            state_time: required_wall_time(state_time, "state_time")?,
            settled_by,
        })
    }
}

/// Parses the inbox and the message of a key; the inbox is an agent's name or [`OPERATOR`].
pub fn key(wire: Option<v1::DeliveryKey>, path: &str) -> Result<(String, MessageId), Invalid> {
    let v1::DeliveryKey { agent, message_id } = required(wire, path)?;
    if agent != OPERATOR {
        agent_name(&agent, "agent").map_err(|fault| fault.within(path))?;
    }
    let message_id =
        id(message_id, MessageId::new, "message_id").map_err(|fault| fault.within(path))?;
    Ok((agent, message_id))
}

/// Parses the states in a filter.
pub fn states(numbers: &[i32], path: &str) -> Result<Vec<State>, Invalid> {
    numbers.iter().map(|number| value(*number, path)).collect()
}
