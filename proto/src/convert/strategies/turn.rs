//! Turns, what they used, and parks.

use std::time::Duration;

use hive_core::park;
use hive_core::turn::{self, Outcome, ToolUse, Turn, Usage};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{agent_name, message_id, text, trace_context, turn_id, wall_time};

pub(super) fn outcome() -> impl Strategy<Value = Outcome> {
    use Outcome::{
        AuthFailed, Cancelled, Drained, Failed, Fenced, Ok, RateLimited, Unavailable, Vanished,
    };
    select(vec![
        Ok,
        Failed,
        RateLimited,
        AuthFailed,
        Unavailable,
        Cancelled,
        Drained,
        Vanished,
        Fenced,
    ])
}

pub(in crate::convert) fn usage() -> impl Strategy<Value = Usage> {
    (any::<(u64, u64, u64, u64, u64)>(), any::<(u32, u32)>()).prop_map(
        |(
            (input_tokens, cache_read_tokens, cache_creation_tokens, output_tokens, cost_micro_usd),
            (inference_count, tool_call_count),
        )| Usage {
            input_tokens,
            cache_read_tokens,
            cache_creation_tokens,
            output_tokens,
            cost_micro_usd,
            inference_count,
            tool_call_count,
        },
    )
}

pub(in crate::convert) fn tool_use() -> impl Strategy<Value = ToolUse> {
    (text(), any::<u32>()).prop_map(|(name, count)| ToolUse { name, count })
}

pub(super) fn turn_kind() -> impl Strategy<Value = turn::Kind> {
    select(vec![
        turn::Kind::Mail,
        turn::Kind::Continue,
        turn::Kind::Checkpoint,
        turn::Kind::Compact,
    ])
}

pub(in crate::convert) fn turn() -> impl Strategy<Value = Turn> {
    (
        (
            turn_id(),
            agent_name(),
            turn_kind(),
            text(),
            any::<u64>(),
            option::of(message_id()),
            any::<u32>(),
        ),
        (
            option::of(outcome()),
            wall_time(),
            option::of(wall_time()),
            text(),
            text(),
            usage(),
            text(),
        ),
        (
            any::<u64>(),
            any::<u64>(),
            any::<bool>(),
            vec(message_id(), 0..4),
            vec(message_id(), 0..4),
            option::of(trace_context()),
        ),
    )
        .prop_map(
            |(
                (id, agent, kind, conversation, session_epoch, message_id, attempt),
                (outcome, start_time, end_time, error, output_tail, usage, model),
                (context_tokens, context_window_tokens, compacted, received, sent, traceparent),
            )| Turn {
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
            },
        )
}

pub(in crate::convert) fn park() -> impl Strategy<Value = park::View> {
    let until = option::of((wall_time(), any::<u32>()));
    (outcome(), until, text()).prop_map(|(cause, until, error)| park::View {
        cause,
        until: until.map(|(until, _)| until),
        remaining: until.map(|(_, millis)| Duration::from_millis(millis.into())),
        error,
    })
}
