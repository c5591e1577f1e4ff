//! Policies: what agents may do, checked and changed.
//!
//! Invariant: a policy in a row names only groups and capabilities that exist, so that a typo never
//! silently denies or allows.

use std::sync::Arc;

use hive_core::agent::{
    Agent, CAPABILITIES, CREATE_AGENT, OWN_SCHEDULES, Policy, PolicyPart, TOOL_GROUPS, is_grant,
};
use hive_core::caller::Caller;
use hive_core::event::{AgentChange, AgentChanged};
use hive_core::message::OPERATOR;
use hive_core::name::{AgentName, nearest};

use super::etag::{Etags, Target};
use crate::engine::{Engine, Refusal, actor};
use crate::store::agent::{self as agents, AgentRow};
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;
use crate::store::{Effect, Tx};

/// The grants, as a refusal names them.
const KNOWN_GRANTS: [&str; 3] = [CREATE_AGENT, OWN_SCHEDULES, "action:NAME"];

/// Refuses values that no agent can have.
pub(crate) fn check(policy: &Policy) -> Result<(), Refusal> {
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
    } = policy;
    let refuse = |field, problem| Err(Refusal::Field { field, problem });
    if let Some(group) = unknown(tool_groups, &TOOL_GROUPS) {
        return refuse(
            "policy.tool_groups",
            format!("there is no group {}", offer(group, &TOOL_GROUPS)),
        );
    }
    if let Some(capability) = unknown(capabilities, &CAPABILITIES) {
        return refuse(
            "policy.capabilities",
            format!("there is no capability {}", offer(capability, &CAPABILITIES)),
        );
    }
    if let Some(grant) = grants.iter().find(|grant| !is_grant(grant)) {
        return refuse(
            "policy.grants",
            format!("there is no grant {}", offer(grant, &KNOWN_GRANTS)),
        );
    }
    let is_recipient = |name: &&String| *name == OPERATOR || AgentName::parse(name).is_ok();
    if let Some(name) = allowed_recipients.iter().find(|name| !is_recipient(name)) {
        return refuse(
            "policy.allowed_recipients",
            format!("`{}` is no agent's name and not `{OPERATOR}`", name.escape_debug()),
        );
    }
    for (field, number) in [
        ("policy.sends_per_minute_max", sends_per_minute_max.map(u64::from)),
        ("policy.sender_stored_bytes_max", *sender_stored_bytes_max),
        ("policy.questions_open_max", questions_open_max.map(u64::from)),
        ("policy.reminders_pending_max", reminders_pending_max.map(u64::from)),
        ("policy.children_max", children_max.map(u64::from)),
        ("policy.schedules_max", schedules_max.map(u64::from)),
    ] {
        if number == Some(0) {
            return refuse(
                field,
                "it must be at least 1; to forbid it, take the tool group away".to_owned(),
            );
        }
    }
    Ok(())
}

fn unknown<'a>(names: &'a [String], known: &[&str]) -> Option<&'a str> {
    names.iter().map(String::as_str).find(|name| !known.contains(name))
}

fn offer(name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    match near.first() {
        Some(near) => format!("`{}`; did you mean `{near}`?", name.escape_debug()),
        None => format!("`{}`; there are {}", name.escape_debug(), known.join(", ")),
    }
}

/// Stores parts of a policy. `why` is for the log; empty for a change of the operator.
pub(crate) fn store(
    tx: &Tx<'_>,
    row: &AgentRow,
    wanted: &Policy,
    parts: &[PolicyPart],
    why: &str,
) -> Result<(), Refusal> {
    let mut row = row.clone();
    for part in parts {
        part.copy(wanted, &mut row.policy);
    }
    agents::update(tx, &row)?;
    tx.after_commit(Effect::Changed(row.key));
    let changed: Vec<&str> = parts.iter().map(|part| part.name()).collect();
    let why = if why.is_empty() { String::new() } else { format!("; {why}") };
    let detail = format!("policy: {}{why}", changed.join(", "));
    log(tx, Fact::about(AgentChanged { change: AgentChange::Policy }, row.key).detail(&detail));
    Ok(())
}

impl Engine {
    /// Changes parts of an agent's policy. The etag of the target is that of the policy.
    pub async fn set_policy(
        &self,
        caller: Caller,
        request: RequestKey,
        target: impl Into<Target>,
        wanted: Policy,
        parts: Vec<PolicyPart>,
    ) -> Result<Agent, Refusal> {
        self.check_open()?;
        check(&wanted)?;
        let target = target.into();
        let (name, log_id) = (target.name.clone(), Arc::clone(&self.log_id));
        self.command(caller, request, move |tx| {
            let row = actor::active(tx, target.name.as_str())?;
            Etags::new(&log_id).check_policy(&target, &row)?;
            store(tx, &row, &wanted, &parts, "")
        })
        .await?;
        self.get_agent(name).await
    }
}
