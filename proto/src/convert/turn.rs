//! Turns, their usage, and parks.

use hive_core::id::{MessageId, TurnId, number};
use hive_core::park;
use hive_core::turn::{Kind, Outcome, ToolUse, Turn, Usage};

use super::message::agent_name;
use super::time::{duration, optional_span, optional_wall_time, required_wall_time, timestamp};
use super::{
    FromWire, IntoWire, Invalid, id, ids, optional_id, optional_value, same_values, value,
};
use crate::v1;

same_values!(v1::TurnKind, Kind { Mail, Continue, Checkpoint, Compact });

same_values!(
    v1::TurnOutcome,
    Outcome {
        Ok,
        Failed,
        RateLimited,
        AuthFailed,
        Unavailable,
        Cancelled,
        Drained,
        Vanished,
        Fenced
    }
);

impl IntoWire for Usage {
    type Wire = v1::TurnUsage;
    fn into_wire(self) -> v1::TurnUsage {
        let Usage {
            input_tokens,
            cache_read_tokens,
            cache_creation_tokens,
            output_tokens,
            cost_micro_usd,
            inference_count,
            tool_call_count,
        } = self;
        v1::TurnUsage {
            input_tokens,
            cache_read_tokens,
            cache_creation_tokens,
            output_tokens,
            cost_micro_usd,
            inference_count,
            tool_call_count,
        }
    }
}

/// Converts the usage of a turn from the wire.
#[must_use]
pub fn usage(wire: v1::TurnUsage) -> Usage {
    let v1::TurnUsage {
        input_tokens,
        cache_read_tokens,
        cache_creation_tokens,
        output_tokens,
        cost_micro_usd,
        inference_count,
        tool_call_count,
    } = wire;
    Usage {
        input_tokens,
        cache_read_tokens,
        cache_creation_tokens,
        output_tokens,
        cost_micro_usd,
        inference_count,
        tool_call_count,
    }
}

impl IntoWire for ToolUse {
    type Wire = v1::ToolUse;
    fn into_wire(self) -> v1::ToolUse {
        let ToolUse { name, count } = self;
        v1::ToolUse { name, count }
    }
}

/// Converts the uses of a tool from the wire.
#[must_use]
pub fn tool_use(wire: v1::ToolUse) -> ToolUse {
    let v1::ToolUse { name, count } = wire;
    ToolUse { name, count }
}

impl IntoWire for Turn {
    type Wire = v1::Turn;
    fn into_wire(self) -> v1::Turn {
        let Turn {
            id,
            agent,
            kind,
            conversation,
            session_epoch,
            message_id,
            attempt,
            outcome,
            start_time,
            end_time,
            error,
            output_tail,
            usage,
            model,
            context_tokens,
            context_window_tokens,
            compacted,
            received,
            sent,
            traceparent,
        } = self;
        v1::Turn {
            id: id.get(),
            agent: agent.into(),
            kind: kind.into_wire().into(),
            conversation,
            session_epoch,
            message_id: number(message_id, MessageId::get),
            attempt,
            outcome: super::optional_number(outcome),
            start_time: Some(timestamp(start_time)),
            end_time: end_time.map(timestamp),
            error,
            output_tail,
            usage: Some(usage.into_wire()),
            model,
            context_tokens,
            context_window_tokens,
            compacted,
            received_message_ids: received.into_iter().map(MessageId::get).collect(),
            sent_message_ids: sent.into_iter().map(MessageId::get).collect(),
            traceparent: super::trace::text(traceparent),
        }
    }
}

impl FromWire for Turn {
    type Wire = v1::Turn;
    fn from_wire(wire: v1::Turn) -> Result<Self, Invalid> {
        let v1::Turn {
            id: number,
            agent,
            kind,
            conversation,
            session_epoch,
            message_id,
            attempt,
            outcome,
            start_time,
            end_time,
            error,
            output_tail,
            usage,
            model,
            context_tokens,
            context_window_tokens,
            compacted,
            received_message_ids,
            sent_message_ids,
            traceparent,
        } = wire;
        Ok(Self {
            id: id(number, TurnId::new, "id")?,
            agent: agent_name(&agent, "agent")?,
            kind: value(kind, "kind")?,
            conversation,
            session_epoch,
            message_id: optional_id(message_id, MessageId::new, "message_id")?,
            attempt,
            outcome: optional_value(outcome, "outcome")?,
            start_time: required_wall_time(start_time, "start_time")?,
            end_time: optional_wall_time(end_time, "end_time")?,
            error,
            output_tail,
            usage: usage.map(self::usage).unwrap_or_default(),
            model,
            context_tokens,
            context_window_tokens,
            compacted,
            received: ids(received_message_ids, MessageId::new, "received_message_ids")?,
            sent: ids(sent_message_ids, MessageId::new, "sent_message_ids")?,
            traceparent: super::trace::field(&traceparent),
        })
    }
}

impl IntoWire for park::View {
    type Wire = v1::Park;
    fn into_wire(self) -> v1::Park {
        let park::View { cause, until, remaining, error } = self;
        v1::Park {
            cause: cause.into_wire().into(),
            until_time: until.map(timestamp),
            error,
            remaining: remaining.map(duration),
        }
    }
}

impl FromWire for park::View {
    type Wire = v1::Park;
    fn from_wire(wire: v1::Park) -> Result<Self, Invalid> {
        let v1::Park { cause, until_time, error, remaining } = wire;
        Ok(Self {
            cause: value(cause, "cause")?,
            until: optional_wall_time(until_time, "until_time")?,
            remaining: optional_span(remaining, "remaining")?,
            error,
        })
    }
}
