//! Effects: the changes that an agent may ask the operator to approve.
//!
//! Invariant: no effect names a program, an environment, a path, a user or a parent, and none gives
//! a grant. So an approval decides about agents and their rights, and of the host only about
//! actions that the operator has configured.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent::{Policy, PolicyPart};
use crate::id::ScheduleId;
use crate::limits::EFFECT_BYTES_MAX;
use crate::name::AgentName;
use crate::schedule::{self, Edit, Terms};

/// The answer that applies the effect.
pub const APPROVE: &str = "approve";

/// The answer that changes nothing.
pub const DENY: &str = "deny";

/// A change that the broker makes once the operator approves it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Creates a child of the asker.
    CreateAgent {
        /// The name of the new agent.
        name: AgentName,
        /// What it is for, as others see it.
        role: String,
        /// Its model; empty for the default.
        model: String,
        /// Its rights and quotas.
        policy: Policy,
    },
    /// Retires a child of the asker.
    RetireAgent {
        /// The agent.
        name: AgentName,
    },
    /// Changes the role or the model of the asker or of a child.
    SetAgent {
        /// The agent.
        name: AgentName,
        /// The new role.
        role: Option<String>,
        /// The new model.
        model: Option<String>,
    },
    /// Changes parts of the policy of the asker or of a child.
    SetPolicy {
        /// The agent.
        name: AgentName,
        /// The new values.
        policy: Policy,
        /// The parts to change.
        parts: Vec<PolicyPart>,
    },
    /// Runs an action of the configuration.
    RunAction {
        /// The name of the action.
        action: String,
        /// Its arguments by name.
        args: BTreeMap<String, String>,
        /// The lines of its preview, which the broker adds; `None` if no preview ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<Vec<String>>,
    },
    /// Creates a schedule of the asker.
    CreateSchedule {
        /// What it sends, where to, and when.
        terms: Terms,
    },
    /// Changes a schedule of the asker.
    ChangeSchedule {
        /// The schedule.
        id: ScheduleId,
        /// The new values.
        edit: Edit,
    },
}

impl Effect {
    /// Returns what it is about: the name of the agent that it changes or of the action that it
    /// runs, or the schedule.
    #[must_use]
    pub fn subject(&self) -> Cow<'_, str> {
        match self {
            Self::CreateAgent { name, .. }
            | Self::RetireAgent { name }
            | Self::SetAgent { name, .. }
            | Self::SetPolicy { name, .. } => name.as_str().into(),
            Self::RunAction { action, .. } => action.into(),
            Self::CreateSchedule { .. } => "schedule".into(),
            Self::ChangeSchedule { id, .. } => format!("schedule {id}").into(),
        }
    }

    /// Returns what it does, for the first line of a text.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::CreateAgent { name, .. } => format!("create the agent {name}"),
            Self::RetireAgent { name } => format!("retire the agent {name}"),
            Self::SetAgent { name, .. } => format!("change the settings of {name}"),
            Self::SetPolicy { name, .. } => format!("change the policy of {name}"),
            Self::RunAction { action, .. } => format!("run the action {action}"),
            Self::CreateSchedule { .. } => "create a schedule".to_owned(),
            Self::ChangeSchedule { id, .. } => format!("change the schedule {id}"),
        }
    }

    /// Returns what the asker asked for, without what the broker has added.
    #[must_use]
    pub fn as_asked(&self) -> Cow<'_, Self> {
        match self {
            Self::RunAction { action, args, preview: Some(_) } => Cow::Owned(Self::RunAction {
                action: action.clone(),
                args: args.clone(),
                preview: None,
            }),
            Self::RunAction { preview: None, .. }
            | Self::CreateAgent { .. }
            | Self::RetireAgent { .. }
            | Self::SetAgent { .. }
            | Self::SetPolicy { .. }
            | Self::CreateSchedule { .. }
            | Self::ChangeSchedule { .. } => Cow::Borrowed(self),
        }
    }

    /// Checks what does not depend on the agents of the hive.
    pub fn check(&self) -> Result<(), Fault> {
        let (policy, parts) = match self {
            Self::RetireAgent { .. } => return Ok(()),
            Self::RunAction { .. } => return self.check_size(),
            Self::CreateSchedule { terms } => {
                terms.check()?;
                return self.check_size();
            }
            Self::ChangeSchedule { edit, .. } if edit.is_empty() => {
                return Err(Fault::Nothing("a new value"));
            }
            Self::ChangeSchedule { .. } => return self.check_size(),
            Self::SetAgent { role: None, model: None, .. } => {
                return Err(Fault::Nothing("a role or a model"));
            }
            Self::SetAgent { role, .. } => {
                check_line(role.as_deref().unwrap_or_default())?;
                return self.check_size();
            }
            Self::CreateAgent { role, policy, .. } => {
                check_line(role)?;
                (policy, &[][..])
            }
            Self::SetPolicy { parts, .. } if parts.is_empty() => {
                return Err(Fault::Nothing("a part of the policy"));
            }
            Self::SetPolicy { policy, parts, .. } => (policy, &parts[..]),
        };
        // A value without its name in `parts` too: it would be dropped without a word.
        let given =
            |part: &PolicyPart| parts.contains(part) || !part.same(policy, &Policy::default());
        if let Some(part) = PolicyPart::OF_THE_OPERATOR.into_iter().find(given) {
            return Err(Fault::OfTheOperator(part));
        }
        self.check_size()
    }

    /// Bounded, so that a diff can be shown and read as a whole.
    fn check_size(&self) -> Result<(), Fault> {
        let bytes = serde_json::to_vec(&self.as_asked()).expect("an effect is plain data").len();
        if bytes > EFFECT_BYTES_MAX { Err(Fault::TooLarge(bytes)) } else { Ok(()) }
    }
}

/// Refuses a text that would not stay on one line of a diff.
fn check_line(text: &str) -> Result<(), Fault> {
    let ends = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if text.contains(ends) { Err(Fault::NotALine) } else { Ok(()) }
}

/// Why an effect cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It changes nothing.
    #[error("it changes nothing; name {0}")]
    Nothing(&'static str),
    /// The role has control characters.
    #[error("a role is one line, without control characters")]
    NotALine,
    /// It names a part of a policy that only the operator changes.
    #[error("`{}` is set by the operator alone, and no approval changes it; leave it out", .0.name())]
    OfTheOperator(PolicyPart),
    /// There can be no such schedule.
    #[error(transparent)]
    Schedule(#[from] schedule::Fault),
    /// It is too large.
    #[error("it has {0} bytes; at most {EFFECT_BYTES_MAX} are allowed. Ask for less at once")]
    TooLarge(usize),
}

/// One value that an effect changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The changed value.
    pub field: String,
    /// The value before; empty for none.
    pub before: String,
    /// The value after it; empty for none.
    pub after: String,
    /// What the asker itself may not do of it; empty: nothing.
    pub exceeds: String,
}

/// What a question asks the operator to approve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// The effect of the answer [`APPROVE`].
    pub effect: Effect,
    /// While the question is open: what approving it would change now. Once it is approved: what it
    /// has changed.
    pub changes: Vec<Change>,
    /// The digest of the changes; empty once the question is closed.
    pub diff_digest: String,
    /// Why it cannot be approved now; empty if it can.
    pub problem: String,
    /// How far an approved action is; `None` for anything else.
    pub run: Option<ActionRun>,
}

/// How far an approved action is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRun {
    /// Whether it waits, runs or has ended.
    pub state: RunState,
    /// How many runs began.
    pub runs: u32,
    /// How it ended, on one line; empty before.
    pub detail: String,
}

/// The state of an approved action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It waits for its run.
    Queued,
    /// A run of it began.
    Running,
    /// It ended well.
    Done,
    /// It failed, and is not run again.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> AgentName {
        AgentName::parse(text).expect("a name")
    }

    fn create(role: &str, policy: Policy) -> Effect {
        Effect::CreateAgent {
            name: name("kim"),
            role: role.to_owned(),
            model: String::new(),
            policy,
        }
    }

    fn set(policy: Policy, parts: &[PolicyPart]) -> Effect {
        Effect::SetPolicy { name: name("kim"), policy, parts: parts.to_vec() }
    }

    fn previewed(lines: &[&str]) -> Effect {
        let preview = Some(lines.iter().map(|&line| line.to_owned()).collect());
        Effect::RunAction { action: "apply".to_owned(), args: BTreeMap::new(), preview }
    }

    #[test]
    fn a_preview_is_no_part_of_what_was_asked_for() {
        let long = "x".repeat(EFFECT_BYTES_MAX);
        assert_eq!(previewed(&[&long]).check(), Ok(()));
        assert_eq!(previewed(&[&long]).as_asked(), previewed(&[]).as_asked());
        let json = serde_json::to_string(&previewed(&[]).as_asked()).expect("JSON");
        assert_eq!(json, r#"{"run_action":{"action":"apply","args":{}}}"#);
    }

    #[test]
    fn no_effect_has_what_only_the_operator_sets() {
        let grants = Policy { grants: vec!["create_agent".to_owned()], ..Policy::default() };
        let of_the_operator = Err(Fault::OfTheOperator(PolicyPart::Grants));
        assert_eq!(create("tester", grants.clone()).check(), of_the_operator);
        assert_eq!(set(grants.clone(), &[PolicyPart::Grants]).check(), of_the_operator);
        assert_eq!(set(grants, &[PolicyPart::ToolGroups]).check(), of_the_operator);
        // Resetting it is a change of it too.
        assert_eq!(set(Policy::default(), &[PolicyPart::Grants]).check(), of_the_operator);
        let children = Policy { children_max: Some(9), ..Policy::default() };
        assert_eq!(
            create("tester", children).check(),
            Err(Fault::OfTheOperator(PolicyPart::ChildrenMax))
        );
        assert_eq!(create("tester", Policy::default()).check(), Ok(()));
    }

    #[test]
    fn a_role_is_one_line_of_the_diff() {
        for role in ["a\n+ policy.grants: all", "a\rb", "a\u{2028}b", "a\u{1b}[2Kb", "a\u{85}b"] {
            assert_eq!(create(role, Policy::default()).check(), Err(Fault::NotALine), "{role:?}");
        }
    }

    #[test]
    fn an_effect_that_changes_nothing_or_too_much_is_refused() {
        let nothing = Effect::SetAgent { name: name("kim"), role: None, model: None };
        assert!(matches!(nothing.check(), Err(Fault::Nothing(_))));
        assert!(matches!(set(Policy::default(), &[]).check(), Err(Fault::Nothing(_))));
        let many = vec!["bob".to_owned(); EFFECT_BYTES_MAX / 6];
        let policy = Policy { allowed_recipients: many, ..Policy::default() };
        assert!(matches!(create("tester", policy).check(), Err(Fault::TooLarge(_))));
    }

    #[test]
    fn an_effect_survives_the_database() {
        for effect in [
            create("tester", Policy::default()),
            Effect::RetireAgent { name: name("kim") },
            Effect::SetAgent { name: name("kim"), role: Some("r".to_owned()), model: None },
            Effect::RunAction {
                action: "apply".to_owned(),
                args: BTreeMap::from([("commit".to_owned(), "0a".to_owned())]),
                preview: None,
            },
            previewed(&["a | 2 +", ""]),
            set(Policy::default(), &[PolicyPart::ToolGroups, PolicyPart::QuestionsOpenMax]),
        ] {
            let json = serde_json::to_string(&effect).expect("JSON");
            assert_eq!(serde_json::from_str::<Effect>(&json).expect("an effect"), effect);
        }
    }
}
