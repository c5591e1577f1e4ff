//! Agents and their policies.

use hive_core::agent::{
    Agent, HarnessReport, HarnessState, Isolation, KickOnStart, Policy, PolicyPart, Source, Wanted,
};
use hive_core::id::TurnId;

use super::message::{agent_name, optional_agent_name};
use super::time::{optional_wall_time, required_wall_time, timestamp};
use super::{
    FromWire, IntoWire, Invalid, ids, optional_as, optional_value, required, same_values, value,
};
use crate::v1;

same_values!(v1::AgentSource, Source { File, Runtime });

same_values!(
    v1::HarnessState,
    HarnessState {
        Offline,
        Starting,
        Idle,
        Thinking,
        Compacting,
        RateLimited,
        NeedsLogin,
        Unavailable,
        Stopped
    }
);

same_values!(v1::Isolation, Isolation { None, Uid, Partly, Sandbox, Unit });

same_values!(v1::WantedState, Wanted { Running, OnDemand, Stopped });

same_values!(v1::HarnessReport, HarnessReport { Started, Stopped, Crashed, Steady });

same_values!(v1::KickOnStart, KickOnStart { Interrupted, Always, Never });

impl IntoWire for Policy {
    type Wire = v1::Policy;
    fn into_wire(self) -> v1::Policy {
        let Policy {
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
        } = self;
        v1::Policy {
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
            // A policy has one only as a part of an agent.
            etag: String::new(),
        }
    }
}

/// Converts a policy from the wire; its etag belongs to the agent.
#[must_use]
pub fn policy(wire: v1::Policy) -> Policy {
    let v1::Policy {
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
        etag: _,
    } = wire;
    Policy {
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
    }
}

/// Returns the parts of a policy that the paths of a mask name.
pub fn masked_parts(paths: &[String], path: &str) -> Result<Vec<PolicyPart>, Invalid> {
    let part = |name: &String| {
        let known = PolicyPart::ALL.into_iter().find(|part| part.name() == name);
        let names = PolicyPart::ALL.map(PolicyPart::name).join(", ");
        known.ok_or_else(|| {
            let name = name.escape_debug();
            Invalid::new(path, format!("`{name}` is no field of a policy; there are {names}"))
        })
    };
    paths.iter().map(part).collect()
}

/// Resets a list of tool groups that is named and empty to the default. An agent without any group
/// could do nothing; to get that, name a group that has no effect for it.
#[must_use]
pub fn with_default_groups(mut policy: Policy, parts: &[PolicyPart]) -> Policy {
    if policy.tool_groups.is_empty() && parts.contains(&PolicyPart::ToolGroups) {
        policy.tool_groups = Policy::default().tool_groups;
    }
    policy
}

impl IntoWire for Agent {
    type Wire = v1::Agent;
    fn into_wire(self) -> v1::Agent {
        let Agent {
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
            open_turns,
            context_time,
            available_models,
            stopped,
            on_demand,
            restart_count,
            model_in_use,
            kick_on_start,
            etag,
            policy_etag,
        } = self;
        v1::Agent {
            name: name.into(),
            role,
            parent: parent.map(String::from).unwrap_or_default(),
            source: source.into_wire().into(),
            state: state.into_wire().into(),
            state_time: Some(timestamp(state_time)),
            running,
            status_text,
            status_time: status_time.map(timestamp),
            model,
            context_tokens,
            context_window_tokens,
            hive_name,
            swarm_name,
            revision,
            policy: Some(v1::Policy { etag: policy_etag, ..policy.into_wire() }),
            park: park.map(IntoWire::into_wire),
            retired,
            ready_count,
            dead_count,
            isolation: super::optional_number(isolation),
            isolation_notes,
            open_turn_ids: open_turns.into_iter().map(TurnId::get).collect(),
            context_time: context_time.map(timestamp),
            available_models,
            stopped,
            on_demand,
            restart_count,
            model_in_use,
            kick_on_start: kick_on_start.into_wire().into(),
            etag,
        }
    }
}

impl FromWire for Agent {
    type Wire = v1::Agent;
    fn from_wire(wire: v1::Agent) -> Result<Self, Invalid> {
        let v1::Agent {
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
            open_turn_ids,
            context_time,
            available_models,
            stopped,
            on_demand,
            restart_count,
            model_in_use,
            kick_on_start,
            etag,
        } = wire;
        let policy = required(policy, "policy")?;
        Ok(Self {
            name: agent_name(&name, "name")?,
            role,
            parent: optional_agent_name(&parent, "parent")?,
            source: value(source, "source")?,
            state: value(state, "state")?,
            state_time: required_wall_time(state_time, "state_time")?,
            running,
            status_text,
            status_time: optional_wall_time(status_time, "status_time")?,
            model,
            context_tokens,
            context_window_tokens,
            hive_name,
            swarm_name,
            revision,
            policy_etag: policy.etag.clone(),
            policy: self::policy(policy),
            park: optional_as(park, "park")?,
            retired,
            ready_count,
            dead_count,
            isolation: optional_value(isolation, "isolation")?,
            isolation_notes,
            open_turns: ids(open_turn_ids, TurnId::new, "open_turn_ids")?,
            context_time: optional_wall_time(context_time, "context_time")?,
            available_models,
            stopped,
            on_demand,
            restart_count,
            model_in_use,
            kick_on_start: value(kick_on_start, "kick_on_start")?,
            etag,
        })
    }
}
