//! What agents, operators and models said, of the resources that a bundle has without it.
//!
//! Invariant: these records are in a bundle only if its maker asked for them.

use hive_core::time::WallTime;
use hive_proto::v1;
use serde::Serialize;

use super::super::wire::{from_wire, same};
use super::super::{Iso, text};
use crate::output::time;

/// What an agent, its harness and its model say of it.
#[derive(Debug, Serialize)]
pub(crate) struct Agent {
    name: String,
    status_text: Option<String>,
    #[serde(serialize_with = "Iso::serialize")]
    status_time: Option<WallTime>,
    revision: Option<String>,
    model_in_use: Option<String>,
    isolation_notes: Vec<String>,
    park_error: Option<String>,
}

/// The error of a turn and the end of its output.
#[derive(Debug, Serialize)]
pub(crate) struct Turn {
    id: u64,
    agent: String,
    model: Option<String>,
    error: Option<String>,
    output_tail: Option<String>,
}

/// The words about an event.
#[derive(Debug, Serialize)]
pub(crate) struct Event {
    sequence: u64,
    detail: Option<String>,
}

from_wire! {
    Agent => Agent {
        same => name, isolation_notes;
        text => status_text, revision, model_in_use;
        time::from_wire => status_time;
    }
    without role, parent, source, state, state_time, running, model, context_tokens,
        context_window_tokens, hive_name, swarm_name, policy, park, retired, ready_count,
        dead_count, isolation, open_turn_ids, context_time, available_models, stopped,
        on_demand, restart_count, kick_on_start, etag
    with park_error = |agent: &v1::Agent| text(agent.park.as_ref()?.error.clone())
}

from_wire! {
    Turn => Turn {
        same => id, agent;
        text => model, error, output_tail;
    }
    without kind, conversation, session_epoch, message_id, attempt, outcome, start_time, end_time,
        usage, context_tokens, context_window_tokens, compacted, received_message_ids,
        sent_message_ids, traceparent
}

from_wire! {
    Event => Event {
        same => sequence;
        text => detail;
    }
    without kind, time, agent, message_id, turn_id, question_id, reminder_id, facts
}
