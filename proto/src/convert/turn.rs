//! Turns, their usage, and parks.

use hive_core::id::{MessageId, TurnId, number};
use hive_core::park;
use hive_core::turn::{Kind, Outcome, ToolUse, Turn, Usage};

use super::message::agent_name;
use super::time::{duration, optional_span, optional_wall_time, required_wall_time, timestamp};
use super::{Invalid, id, ids, optional_id, optional_value, same_values, value};
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

impl From<Usage> for v1::TurnUsage {
    fn from(usage: Usage) -> Self {
        let Usage {
            input_tokens,
            cache_read_tokens,
            cache_creation_tokens,
            output_tokens,
            cost_micro_usd,
            inference_count,
            tool_call_count,
        } = usage;
        Self {
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

impl From<v1::TurnUsage> for Usage {
    fn from(wire: v1::TurnUsage) -> Self {
        let v1::TurnUsage {
            input_tokens,
            cache_read_tokens,
            cache_creation_tokens,
            output_tokens,
            cost_micro_usd,
            inference_count,
            tool_call_count,
        } = wire;
        Self {
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

impl From<ToolUse> for v1::ToolUse {
    fn from(tool: ToolUse) -> Self {
        let ToolUse { name, count } = tool;
        Self { name, count }
    }
}

impl From<v1::ToolUse> for ToolUse {
    fn from(wire: v1::ToolUse) -> Self {
        let v1::ToolUse { name, count } = wire;
        Self { name, count }
    }
}

impl From<Turn> for v1::Turn {
    fn from(turn: Turn) -> Self {
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
        } = turn;
        Self {
            id: id.get(),
            agent: agent.into(),
            kind: v1::TurnKind::from(kind).into(),
            conversation,
            session_epoch,
            message_id: number(message_id, MessageId::get),
            attempt,
            outcome: super::optional_number::<v1::TurnOutcome, _>(outcome),
            start_time: Some(timestamp(start_time)),
            end_time: end_time.map(timestamp),
            error,
            output_tail,
            usage: Some(usage.into()),
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

impl TryFrom<v1::Turn> for Turn {
    type Error = Invalid;
    fn try_from(wire: v1::Turn) -> Result<Self, Invalid> {
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
            kind: value::<v1::TurnKind, _>(kind, "kind")?,
            conversation,
            session_epoch,
            message_id: optional_id(message_id, MessageId::new, "message_id")?,
            attempt,
            outcome: optional_value::<v1::TurnOutcome, _>(outcome, "outcome")?,
            start_time: required_wall_time(start_time, "start_time")?,
            end_time: optional_wall_time(end_time, "end_time")?,
            error,
            output_tail,
            usage: usage.map(Usage::from).unwrap_or_default(),
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

impl From<park::View> for v1::Park {
    fn from(park: park::View) -> Self {
        let park::View { cause, until, remaining, error } = park;
        Self {
            cause: v1::TurnOutcome::from(cause).into(),
            until_time: until.map(timestamp),
            error,
            remaining: remaining.map(duration),
        }
    }
}

impl TryFrom<v1::Park> for park::View {
    type Error = Invalid;
    fn try_from(wire: v1::Park) -> Result<Self, Invalid> {
        let v1::Park { cause, until_time, error, remaining } = wire;
        Ok(Self {
            cause: value::<v1::TurnOutcome, _>(cause, "cause")?,
            until: optional_wall_time(until_time, "until_time")?,
            remaining: optional_span(remaining, "remaining")?,
            error,
        })
    }
}
