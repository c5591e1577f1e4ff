//! One proptest strategy per noun of `hive-core`: every value that its type and its rules allow.

mod command;
mod conversation;
mod effect;
mod event;
mod schedule;
mod turn;

use hive_core::agent::{Agent, HarnessState, Isolation, KickOnStart, Policy, Source};
use hive_core::delivery::{Delivery, Lane, RedeliveryCause, State};
use hive_core::id::{CommandId, MessageId, NUMBER_MAX, QuestionId, ReminderId, TurnId};
use hive_core::message::{Message, Origin, Recipient};
use hive_core::name::{AgentName, Label, RESERVED};
use hive_core::time::WallTime;
use hive_core::trace::TraceContext;
use hive_core::tree::{Child, Found, Kin};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

pub(super) use command::{command, order};
use conversation::system_kind;
pub(super) use conversation::{loose_end, question, reminder};
pub(super) use event::event;
pub(super) use schedule::schedule;
pub(super) use turn::{park, tool_use, turn, usage};

fn unreserved(pattern: &'static str) -> impl Strategy<Value = String> {
    pattern.prop_filter("a reserved word is no name", |text: &String| {
        !RESERVED.contains(&text.as_str())
    })
}

fn agent_name() -> impl Strategy<Value = AgentName> {
    unreserved("[a-z][a-z0-9_-]{0,62}")
        .prop_map(|text| AgentName::parse(&text).expect("made by the rule of names"))
}

fn label() -> impl Strategy<Value = Label> {
    unreserved("[a-z][a-z0-9_.-]{0,62}")
        .prop_map(|text| Label::parse(&text).expect("made by the rule of labels"))
}

/// Generates any text, line breaks and control characters included.
fn text() -> impl Strategy<Value = String> {
    "(?s).{0,40}"
}

pub(super) fn wall_time() -> impl Strategy<Value = WallTime> {
    prop_oneof![any::<i64>(), -10_000..10_000_i64, Just(i64::MIN), Just(i64::MAX)]
        .prop_map(WallTime)
}

fn message_id() -> impl Strategy<Value = MessageId> {
    (1..=NUMBER_MAX).prop_map(|number| MessageId::new(number).expect("not 0"))
}

fn turn_id() -> impl Strategy<Value = TurnId> {
    (1..=NUMBER_MAX).prop_map(|number| TurnId::new(number).expect("not 0"))
}

fn question_id() -> impl Strategy<Value = QuestionId> {
    (1..=NUMBER_MAX).prop_map(|number| QuestionId::new(number).expect("not 0"))
}

fn reminder_id() -> impl Strategy<Value = ReminderId> {
    (1..=NUMBER_MAX).prop_map(|number| ReminderId::new(number).expect("not 0"))
}

fn trace_context() -> impl Strategy<Value = TraceContext> {
    "00-[1-9a-f]{32}-[1-9a-f]{16}-0[0-3]"
        .prop_map(|text| TraceContext::parse(&text).expect("version 00"))
}

fn command_id() -> impl Strategy<Value = CommandId> {
    (1..=NUMBER_MAX).prop_map(|number| CommandId::new(number).expect("not 0"))
}

fn origin() -> impl Strategy<Value = Origin> {
    prop_oneof![
        agent_name().prop_map(Origin::Agent),
        text().prop_map(Origin::Operator),
        Just(Origin::System),
        label().prop_map(Origin::External),
    ]
}

pub(super) fn recipient() -> impl Strategy<Value = Recipient> {
    prop_oneof![
        agent_name().prop_map(Recipient::Agent),
        Just(Recipient::Operator),
        Just(Recipient::Parent),
        Just(Recipient::Everyone),
    ]
}

pub(super) fn message() -> impl Strategy<Value = Message> {
    (
        (
            message_id(),
            origin(),
            (vec(text(), 0..4), any::<u32>()),
            text(),
            option::of(message_id()),
        ),
        (
            wall_time(),
            option::of(system_kind()),
            any::<bool>(),
            option::of(turn_id()),
            option::of("(?s).{1,20}"),
        ),
        (option::of(question_id()), option::of(reminder_id()), option::of(trace_context())),
    )
        .prop_map(
            |(
                (id, origin, (recipients, recipient_count), body, in_reply_to),
                (accept_time, system_kind, broadcast, turn_id, coalescing_key),
                (question_id, reminder_id, traceparent),
            )| {
                Message {
                    id,
                    origin,
                    recipients,
                    recipient_count,
                    body,
                    in_reply_to,
                    accept_time,
                    system_kind,
                    broadcast,
                    turn_id,
                    coalescing_key,
                    question_id,
                    reminder_id,
                    traceparent,
                }
            },
        )
}

pub(super) fn state() -> impl Strategy<Value = State> {
    use State::{Acked, Dead, Dropped, Held, Leased, Ready, Superseded};
    select(vec![Ready, Leased, Held, Dead, Acked, Dropped, Superseded])
}

fn redelivery_cause() -> impl Strategy<Value = RedeliveryCause> {
    use RedeliveryCause as Cause;
    select(vec![
        Cause::TurnFailed,
        Cause::HarnessVanished,
        Cause::RateLimited,
        Cause::AuthFailed,
        Cause::Unavailable,
        Cause::Drained,
        Cause::Released,
        Cause::Redriven,
        Cause::NotReceived,
        Cause::Nacked,
        Cause::LeaseExpired,
        Cause::Restored,
    ])
}

pub(super) fn delivery() -> impl Strategy<Value = Delivery> {
    (
        (
            message(),
            text(),
            select(vec![Lane::System, Lane::Normal]),
            state(),
            any::<u32>(),
            option::of(redelivery_cause()),
        ),
        (text(), text(), option::of(turn_id()), option::of(wall_time()), wall_time(), text()),
    )
        .prop_map(
            |(
                (message, agent, lane, state, attempt, cause),
                (last_error, output_tail, turn_id, not_before, state_time, settled_by),
            )| {
                Delivery {
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
                }
            },
        )
}

pub(super) fn policy() -> impl Strategy<Value = Policy> {
    (
        (vec(text(), 0..3), vec(text(), 0..3), vec(text(), 0..3), vec(text(), 0..3)),
        (
            option::of(any::<u32>()),
            option::of(any::<u64>()),
            option::of(any::<u32>()),
            option::of(any::<u32>()),
            option::of(any::<u32>()),
            option::of(any::<u32>()),
        ),
    )
        .prop_map(
            |(
                (tool_groups, allowed_recipients, capabilities, grants),
                (
                    sends_per_minute_max,
                    sender_stored_bytes_max,
                    questions_open_max,
                    reminders_pending_max,
                    children_max,
                    schedules_max,
                ),
            )| Policy {
                tool_groups,
                allowed_recipients,
                capabilities,
                sends_per_minute_max,
                sender_stored_bytes_max,
                questions_open_max,
                reminders_pending_max,
                grants,
                children_max,
                schedules_max,
            },
        )
}

fn harness_state() -> impl Strategy<Value = HarnessState> {
    use HarnessState::{
        Compacting, Idle, NeedsLogin, Offline, RateLimited, Starting, Stopped, Thinking,
        Unavailable,
    };
    select(vec![
        Offline,
        Starting,
        Idle,
        Thinking,
        Compacting,
        RateLimited,
        NeedsLogin,
        Unavailable,
        Stopped,
    ])
}

pub(super) fn kin() -> impl Strategy<Value = Kin> {
    let child = (agent_name(), text()).prop_map(|(name, role)| Child { name, role });
    (text(), vec(child, 0..3), any::<u32>()).prop_map(|(parent_role, children, children_count)| {
        Kin { parent_role, children, children_count }
    })
}

pub(super) fn found() -> impl Strategy<Value = Found> {
    (agent_name(), option::of(agent_name()), text(), harness_state(), text(), any::<bool>())
        .prop_map(|(name, parent, role, state, status_text, may_write)| Found {
            name,
            parent,
            role,
            state,
            status_text,
            may_write,
        })
}

fn isolation() -> impl Strategy<Value = Isolation> {
    select(vec![
        Isolation::None,
        Isolation::Partly,
        Isolation::Sandbox,
        Isolation::Uid,
        Isolation::Unit,
    ])
}

pub(super) fn agent() -> impl Strategy<Value = Agent> {
    (
        (
            agent_name(),
            text(),
            option::of(agent_name()),
            select(vec![Source::File, Source::Runtime]),
            harness_state(),
        ),
        (
            wall_time(),
            any::<bool>(),
            text(),
            option::of(wall_time()),
            text(),
            any::<u64>(),
            any::<u64>(),
        ),
        (text(), text(), text(), policy(), option::of(park())),
        (
            any::<bool>(),
            any::<u32>(),
            any::<u32>(),
            option::of(isolation()),
            vec(text(), 0..3),
            option::of(turn_id()),
        ),
        (
            option::of(wall_time()),
            vec(text(), 0..3),
            (any::<bool>(), any::<bool>(), any::<u64>()),
            text(),
            select(KickOnStart::ALL.to_vec()),
            (text(), text()),
        ),
    )
        .prop_map(
            |(
                (name, role, parent, source, state),
                (
                    state_time,
                    running,
                    status_text,
                    status_time,
                    model,
                    context_tokens,
                    context_window_tokens,
                ),
                (hive_name, swarm_name, revision, policy, park),
                (retired, ready_count, dead_count, isolation, isolation_notes, open_turn),
                (
                    context_time,
                    available_models,
                    (stopped, on_demand, restart_count),
                    model_in_use,
                    kick_on_start,
                    (etag, policy_etag),
                ),
            )| Agent {
                name,
                role,
                parent,
                source,
                state,
                state_time,
                running,
                status_text,
                status_time,
                model,
                context_tokens,
                context_window_tokens,
                hive_name,
                swarm_name,
                revision,
                policy,
                park,
                retired,
                ready_count,
                dead_count,
                isolation,
                isolation_notes,
                open_turns: open_turn.into_iter().collect(),
                context_time,
                available_models,
                stopped,
                on_demand,
                restart_count,
                model_in_use,
                kick_on_start,
                etag,
                policy_etag,
            },
        )
}
