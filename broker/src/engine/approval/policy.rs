//! Changing parts of the policy of the asker, or of a child of it.

use std::borrow::Borrow as _;

use hive_core::agent::{Policy, PolicyPart};
use hive_core::limits::Limits;
use hive_core::name::AgentName;

use super::rights::Rights;
use super::{Approved, Plan, asker_or_child, change};
use crate::engine::operator::policy;
use crate::engine::{Refusal, actor};
use crate::store::Tx;
use crate::store::agent::{AgentRow, Agents};

pub(super) fn plan<A: Agents>(
    conn: &A,
    limits: &Limits,
    asker: &AgentRow,
    name: &AgentName,
    wanted: &Policy,
    parts: &[PolicyPart],
) -> Result<Plan, Refusal> {
    policy::check(wanted)?;
    let row = asker_or_child(conn, asker, name)?;
    let row = row.borrow();
    let rights = Rights { asker, limits };
    // In the order of the wire, and each once.
    let named = PolicyPart::ALL.into_iter().filter(|part| parts.contains(part));
    let changes = named.filter(|part| !part.same(&row.policy, wanted)).map(|part| {
        let [before, after] = [&row.policy, wanted].map(|policy| value(part, policy, limits));
        let field = format!("{name}.policy.{}", part.name());
        change(&field, &before, &after, rights.lack_of(part, wanted))
    });
    Ok(Plan { key: Some(row.key), changes: changes.collect(), narrows: false })
}

pub(super) fn apply(
    tx: &Tx<'_>,
    approved: Approved<'_>,
    name: &AgentName,
    wanted: &Policy,
    parts: &[PolicyPart],
) -> Result<(), Refusal> {
    policy::store(tx, &*actor::active(tx, name.as_str())?, wanted, parts, &approved.detail())
}

/// Returns a part of a policy on one line.
pub(super) fn value(part: PolicyPart, policy: &Policy, limits: &Limits) -> String {
    let number = |own: Option<u64>, of_the_hive: u64| match own {
        Some(own) => own.to_string(),
        None => format!("{of_the_hive}, as for all agents"),
    };
    let small = |own: Option<u32>, of_the_hive: u32| number(own.map(u64::from), of_the_hive.into());
    match part {
        PolicyPart::ToolGroups => policy.tool_groups.join(", "),
        PolicyPart::AllowedRecipients if policy.allowed_recipients.is_empty() => {
            "everyone".to_owned()
        }
        PolicyPart::AllowedRecipients => policy.allowed_recipients.join(", "),
        PolicyPart::Capabilities => policy.capabilities.join(", "),
        PolicyPart::SendsPerMinuteMax => {
            small(policy.sends_per_minute_max, limits.sends_per_minute_max)
        }
        PolicyPart::SenderStoredBytesMax => {
            number(policy.sender_stored_bytes_max, limits.sender_stored_bytes_max)
        }
        PolicyPart::QuestionsOpenMax => small(policy.questions_open_max, limits.questions_open_max),
        PolicyPart::RemindersPendingMax => {
            small(policy.reminders_pending_max, limits.reminders_pending_max)
        }
        PolicyPart::Grants => policy.grants.join(", "),
        PolicyPart::ChildrenMax => small(policy.children_max, limits.children_max),
        PolicyPart::SchedulesMax => small(policy.schedules_max, limits.schedules_max),
    }
}
