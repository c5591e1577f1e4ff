//! Policies: what agents may do, checked and changed.
//!
//! Invariant: a policy in a row names only groups and capabilities that exist, so that a typo never
//! silently denies or allows.

use std::sync::Arc;

use hive_core::agent::{Agent, CAPABILITIES, Policy, TOOL_GROUPS};
use hive_core::caller::Caller;
use hive_core::event::{AgentChange, AgentChanged};
use hive_core::message::OPERATOR;
use hive_core::name::{AgentName, nearest};

use super::etag::{Etags, Target};
use crate::engine::{Engine, Refusal, actor};
use crate::store::Effect;
use crate::store::agent as agents;
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;

/// A part of a policy that can be changed separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The tool groups.
    ToolGroups,
    /// The agents that it may send to.
    AllowedRecipients,
    /// Further rights.
    Capabilities,
    /// Messages that it may send in a minute.
    SendsPerMinuteMax,
    /// Limit of its stored bytes.
    SenderStoredBytesMax,
    /// Limit of its open questions.
    QuestionsOpenMax,
    /// Limit of its pending reminders.
    RemindersPendingMax,
}

impl Part {
    /// Every part, in the order of the wire.
    pub const ALL: [Self; 7] = [
        Self::ToolGroups,
        Self::AllowedRecipients,
        Self::Capabilities,
        Self::SendsPerMinuteMax,
        Self::SenderStoredBytesMax,
        Self::QuestionsOpenMax,
        Self::RemindersPendingMax,
    ];

    /// Returns its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ToolGroups => "tool_groups",
            Self::AllowedRecipients => "allowed_recipients",
            Self::Capabilities => "capabilities",
            Self::SendsPerMinuteMax => "sends_per_minute_max",
            Self::SenderStoredBytesMax => "sender_stored_bytes_max",
            Self::QuestionsOpenMax => "questions_open_max",
            Self::RemindersPendingMax => "reminders_pending_max",
        }
    }

    /// Copies this part of `from` into `to`.
    pub(crate) fn copy(self, from: &Policy, to: &mut Policy) {
        match self {
            Self::ToolGroups => to.tool_groups.clone_from(&from.tool_groups),
            Self::AllowedRecipients => to.allowed_recipients.clone_from(&from.allowed_recipients),
            Self::Capabilities => to.capabilities.clone_from(&from.capabilities),
            Self::SendsPerMinuteMax => to.sends_per_minute_max = from.sends_per_minute_max,
            Self::SenderStoredBytesMax => to.sender_stored_bytes_max = from.sender_stored_bytes_max,
            Self::QuestionsOpenMax => to.questions_open_max = from.questions_open_max,
            Self::RemindersPendingMax => to.reminders_pending_max = from.reminders_pending_max,
        }
    }

    /// Returns whether two policies agree in this part.
    pub(crate) fn same(self, one: &Policy, other: &Policy) -> bool {
        let mut copy = one.clone();
        self.copy(other, &mut copy);
        copy == *one
    }
}

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

impl Engine {
    /// Changes parts of an agent's policy. The etag of the target is that of the policy.
    pub async fn set_policy(
        &self,
        caller: Caller,
        request: RequestKey,
        target: impl Into<Target>,
        wanted: Policy,
        parts: Vec<Part>,
    ) -> Result<Agent, Refusal> {
        self.check_open()?;
        check(&wanted)?;
        let target = target.into();
        let (name, log_id) = (target.name.clone(), Arc::clone(&self.log_id));
        self.command(caller, request, move |tx| {
            let mut row = (*actor::active(tx, target.name.as_str())?).clone();
            Etags::new(&log_id).check_policy(&target, &row)?;
            for part in &parts {
                part.copy(&wanted, &mut row.policy);
            }
            agents::update(tx, &row)?;
            tx.after_commit(Effect::Changed(row.key));
            let changed: Vec<&str> = parts.iter().map(|part| part.name()).collect();
            let detail = format!("policy: {}", changed.join(", "));
            log(
                tx,
                Fact::about(AgentChanged { change: AgentChange::Policy }, row.key).detail(&detail),
            );
            Ok(())
        })
        .await?;
        self.get_agent(name).await
    }
}
