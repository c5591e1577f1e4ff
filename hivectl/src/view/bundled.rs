//! What a bundle for a report of a fault has of each resource: names, states, numbers and times.
//!
//! Invariant: no record has text that an agent, an operator or a model wrote; [`said`] has the
//! records of that text. Messages are taken apart field by field, so that a new field of the
//! contract breaks this build until it is decided.

pub(crate) mod said;

use hive_core::time::WallTime;
use hive_proto::v1;
use serde::Serialize;

use super::event::facts::Facts;
use super::usage::Usage;
use super::wire::{all, from_wire, optional, present, same};
use super::{Iso, id, optional_word, text, word};
use crate::output::time;

/// The state of the broker.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    version: String,
    #[serde(serialize_with = "Iso::serialize")]
    start_time: Option<WallTime>,
    storage_ok: bool,
    /// The sentence of SQLite or of the host.
    storage_error: Option<String>,
    database_path: String,
    database_bytes: u64,
    agent_count: u32,
    attached_count: u32,
    ready_count: u64,
    leased_count: u64,
    held_count: u64,
    dead_count: u64,
    operator_unread_count: u64,
    operator_question_count: u64,
    open_question_count: u64,
    pending_reminder_count: u64,
    last_event_sequence: u64,
    draining: bool,
    not_isolated_agents: Vec<String>,
    partly_isolated_agents: Vec<String>,
    isolation_accepted_agents: Vec<String>,
    background_tasks: Vec<BackgroundTask>,
    launcher_attached: bool,
}

/// A task of the broker. Its error may quote what a command of the operator's printed.
#[derive(Debug, Serialize)]
struct BackgroundTask {
    name: String,
    #[serde(serialize_with = "Iso::serialize")]
    last_run_time: Option<WallTime>,
    failure_count: u32,
}

/// An agent.
#[derive(Debug, Serialize)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    source: Option<String>,
    state: Option<String>,
    #[serde(serialize_with = "Iso::serialize")]
    state_time: Option<WallTime>,
    running: bool,
    retired: bool,
    stopped: bool,
    on_demand: bool,
    restart_count: u64,
    model: Option<String>,
    context_tokens: Option<u64>,
    context_window_tokens: Option<u64>,
    #[serde(serialize_with = "Iso::serialize")]
    context_time: Option<WallTime>,
    ready_count: u32,
    dead_count: u32,
    open_turn_ids: Vec<u64>,
    isolation: Option<String>,
    kick_on_start: Option<String>,
    park: Option<Park>,
    policy: Policy,
}

#[derive(Debug, Serialize)]
struct Park {
    cause: Option<String>,
    #[serde(serialize_with = "Iso::serialize")]
    until_time: Option<WallTime>,
}

#[derive(Debug, Serialize)]
struct Policy {
    tool_groups: Vec<String>,
    allowed_recipients: Vec<String>,
    capabilities: Vec<String>,
    sends_per_minute_max: Option<u32>,
    sender_stored_bytes_max: Option<u64>,
    questions_open_max: Option<u32>,
    reminders_pending_max: Option<u32>,
    /// What it may do without asking the operator.
    grants: Vec<String>,
    /// Maximum agents below it, for creating by a grant.
    children_max: Option<u32>,
    /// Maximum schedules of its own that have not ended.
    schedules_max: Option<u32>,
}

/// A turn.
#[derive(Debug, Serialize)]
pub(crate) struct Turn {
    id: u64,
    agent: String,
    kind: Option<String>,
    session_epoch: u64,
    message_id: Option<u64>,
    attempt: u32,
    outcome: Option<String>,
    #[serde(serialize_with = "Iso::serialize")]
    start_time: Option<WallTime>,
    #[serde(serialize_with = "Iso::serialize")]
    end_time: Option<WallTime>,
    usage: Usage,
    context_tokens: Option<u64>,
    context_window_tokens: Option<u64>,
    compacted: bool,
    received_message_ids: Vec<u64>,
    sent_message_ids: Vec<u64>,
}

/// A dead letter.
#[derive(Debug, Serialize)]
pub(crate) struct DeadLetter {
    message_id: u64,
    from_kind: Option<String>,
    agent: String,
    state: Option<String>,
    lane: Option<String>,
    attempt: u32,
    redelivery_cause: Option<String>,
    turn_id: Option<u64>,
    #[serde(serialize_with = "Iso::serialize")]
    not_before_time: Option<WallTime>,
    #[serde(serialize_with = "Iso::serialize")]
    state_time: Option<WallTime>,
}

/// An event. Its facts are words and numbers.
#[derive(Debug, Serialize)]
pub(crate) struct Event {
    sequence: u64,
    kind: Option<String>,
    #[serde(serialize_with = "Iso::serialize")]
    time: Option<WallTime>,
    agent: Option<String>,
    message_id: Option<u64>,
    turn_id: Option<u64>,
    question_id: Option<u64>,
    reminder_id: Option<u64>,
    facts: Option<Facts>,
}

/// An agent in the tree, with the agents below it.
#[derive(Debug, Serialize)]
pub(crate) struct Node {
    name: String,
    children: Vec<Node>,
}

from_wire! {
    GetBrokerStatusResponse => Status {
        same => version, storage_ok, database_path, database_bytes, agent_count, attached_count,
            ready_count, leased_count, held_count, dead_count, operator_unread_count,
            not_isolated_agents, last_event_sequence, draining, operator_question_count,
            open_question_count, pending_reminder_count, partly_isolated_agents,
            isolation_accepted_agents, launcher_attached;
        time::from_wire => start_time;
        text => storage_error;
        all => background_tasks;
    }
    without pid
}

from_wire! {
    BackgroundTask => BackgroundTask {
        same => name, failure_count;
        time::from_wire => last_run_time;
    }
    without error
}

from_wire! {
    Agent => Agent {
        same => name, running, retired, ready_count, dead_count, stopped, on_demand, restart_count,
            open_turn_ids;
        text => parent, model;
        id => context_tokens, context_window_tokens;
        time::from_wire => state_time, context_time;
        optional => park;
        present => policy;
        word::<v1::AgentSource> => source;
        word::<v1::HarnessState> => state;
        optional_word::<v1::Isolation> => isolation;
        word::<v1::KickOnStart> => kick_on_start;
    }
    // The names of a model in use and of a revision are what a harness says of itself.
    without role, status_text, status_time, hive_name, swarm_name, revision, model_in_use,
        isolation_notes, available_models, etag
}

from_wire! {
    Park => Park {
        time::from_wire => until_time;
        word::<v1::TurnOutcome> => cause;
    }
    without error, remaining
}

from_wire! {
    Policy => Policy {
        same => tool_groups, allowed_recipients, capabilities, sends_per_minute_max,
            sender_stored_bytes_max, questions_open_max, reminders_pending_max, grants, children_max,
            schedules_max;
    }
    without etag
}

from_wire! {
    Turn => Turn {
        same => id, agent, session_epoch, attempt, compacted, received_message_ids,
            sent_message_ids;
        id => message_id, context_tokens, context_window_tokens;
        time::from_wire => start_time, end_time;
        present => usage;
        word::<v1::TurnKind> => kind;
        optional_word::<v1::TurnOutcome> => outcome;
    }
    // The trace is of a caller's choice, and names nothing that a bundle has.
    without error, output_tail, model, conversation, traceparent
}

from_wire! {
    Delivery => DeadLetter {
        same => agent, attempt;
        id => turn_id;
        time::from_wire => not_before_time, state_time;
        word::<v1::DeliveryState> => state;
        word::<v1::Lane> => lane;
        optional_word::<v1::RedeliveryCause> => redelivery_cause;
    }
    without message, last_error, output_tail, settled_by
    with
        message_id = |delivery: &v1::Delivery| delivery.message.as_ref().map_or(0, |message| message.id),
        from_kind = |delivery: &v1::Delivery| {
            let from = delivery.message.as_ref()?.origin.as_ref()?;
            word::<v1::OriginKind>(from.kind)
        }
}

from_wire! {
    Event => Event {
        same => sequence;
        text => agent;
        id => message_id, turn_id, question_id, reminder_id;
        time::from_wire => time;
        word::<v1::EventKind> => kind;
        optional => facts;
    }
    without detail
}

/// Returns the agents that have no parent among these, each with those below it.
pub(crate) fn tree(agents: &[Agent]) -> Vec<Node> {
    let is_root = |agent: &&Agent| {
        agent.parent.as_ref().is_none_or(|parent| agents.iter().all(|other| other.name != *parent))
    };
    agents.iter().filter(is_root).map(|agent| node(agent, agents)).collect()
}

fn node(agent: &Agent, agents: &[Agent]) -> Node {
    let below = agents.iter().filter(|below| below.parent.as_deref() == Some(&agent.name));
    Node { name: agent.name.clone(), children: below.map(|below| node(below, agents)).collect() }
}
