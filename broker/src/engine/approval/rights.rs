//! What an asker itself may do, which the operator sees beside each change, and which bounds what
//! it does by a grant.
//!
//! Invariant: a right that the asker has by a default is compared as if it were written out, so
//! that a list or a number that is left out never passes for less than it is.

use hive_core::agent::{Policy, PolicyPart};
use hive_core::limits::Limits;

use crate::store::agent::AgentRow;

/// The rights of an asker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rights<'a> {
    pub(super) asker: &'a AgentRow,
    pub(super) limits: &'a Limits,
}

impl Rights<'_> {
    /// Returns what a part of a policy has that the asker has not, as a sentence; empty: nothing.
    pub(super) fn lack_of(self, part: PolicyPart, wanted: &Policy) -> String {
        let (own, limits) = (&self.asker.policy, self.limits);
        let small = |of: fn(&Policy) -> Option<u32>, of_the_hive: u32| {
            let [own, wanted] = [own, wanted].map(|policy| of(policy).unwrap_or(of_the_hive));
            self.lack_of_number(own.into(), wanted.into())
        };
        match part {
            PolicyPart::ToolGroups => {
                self.lack_of_names("does not have", &wanted.tool_groups, &own.tool_groups)
            }
            PolicyPart::AllowedRecipients => self.lack_of_recipients(wanted),
            PolicyPart::Capabilities => {
                self.lack_of_names("does not have", &wanted.capabilities, &own.capabilities)
            }
            PolicyPart::SendsPerMinuteMax => {
                small(|policy| policy.sends_per_minute_max, limits.sends_per_minute_max)
            }
            PolicyPart::SenderStoredBytesMax => {
                let of = |policy: &Policy| {
                    policy.sender_stored_bytes_max.unwrap_or(limits.sender_stored_bytes_max)
                };
                self.lack_of_number(of(own), of(wanted))
            }
            PolicyPart::QuestionsOpenMax => {
                small(|policy| policy.questions_open_max, limits.questions_open_max)
            }
            PolicyPart::RemindersPendingMax => {
                small(|policy| policy.reminders_pending_max, limits.reminders_pending_max)
            }
            // No effect has these; if one had, an asker could not give them.
            PolicyPart::Grants => self.lack_of_names("cannot give", &wanted.grants, &[]),
            PolicyPart::ChildrenMax => self.lack_of_own(wanted.children_max),
            PolicyPart::SchedulesMax => self.lack_of_own(wanted.schedules_max),
        }
    }

    /// Returns whether the asker may not use a model, as a sentence.
    pub(super) fn lack_of_model(self, model: &str) -> String {
        lack_of_model(self.asker, model)
    }

    fn lack_of_own(self, wanted: Option<u32>) -> String {
        wanted.map_or_else(String::new, |_| format!("{} cannot give it", self.asker.name))
    }

    fn lack_of_names(self, how: &str, wanted: &[String], own: &[String]) -> String {
        let lacking: Vec<&str> =
            wanted.iter().filter(|name| !own.contains(name)).map(String::as_str).collect();
        if lacking.is_empty() {
            return String::new();
        }
        format!("{} {how} {}", self.asker.name, lacking.join(", "))
    }

    fn lack_of_recipients(self, wanted: &Policy) -> String {
        let AgentRow { name, policy: own, .. } = self.asker;
        if own.allowed_recipients.is_empty() {
            return String::new();
        }
        if wanted.allowed_recipients.is_empty() {
            return format!("{name} may not send to everyone");
        }
        // Every agent may send to its parent, and the asker is the parent of its children.
        let mut own = own.allowed_recipients.clone();
        own.push(name.clone());
        self.lack_of_names("may not send to", &wanted.allowed_recipients, &own)
    }

    fn lack_of_number(self, own: u64, wanted: u64) -> String {
        if wanted <= own { String::new() } else { format!("{} has {own}", self.asker.name) }
    }
}

/// Returns whether the asker may not use a model, as a sentence; empty if it may.
pub(super) fn lack_of_model(asker: &AgentRow, model: &str) -> String {
    let AgentRow { name, model: own, available_models, .. } = asker;
    let may = available_models.is_empty()
        || model == own
        || available_models.iter().any(|known| known == model);
    match (may, model) {
        (true, _) => String::new(),
        (false, "") => format!("{name} may not use every model"),
        (false, model) => format!("{name} may not use {model}"),
    }
}
