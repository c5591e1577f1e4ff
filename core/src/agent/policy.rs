//! Policies: the rights and quotas of an agent, and the names that may be in one.
//!
//! Invariant: a grant never gives more than the agent has itself, and only the operator gives one.

use serde::{Deserialize, Serialize};

use crate::action::{GRANT_PREFIX, is_name};

/// Tool groups of an agent whose declaration names none.
pub const DEFAULT_TOOL_GROUPS: [&str; 4] = ["messaging", "inbox", "meta", "execution"];

/// All tool groups.
pub const TOOL_GROUPS: [&str; 9] = [
    "messaging",
    "inbox",
    "meta",
    "execution",
    "web_tools",
    LIFECYCLE,
    APPROVALS,
    DIAGNOSTICS,
    SCHEDULING,
];

/// The tool group for starting and stopping the agents below an agent.
pub const LIFECYCLE: &str = "lifecycle";

/// The tool group for asking the operator to approve changes.
pub const APPROVALS: &str = "approvals";

/// The tool group for reading logs.
pub const DIAGNOSTICS: &str = "diagnostics";

/// The tool group for schedules.
pub const SCHEDULING: &str = "scheduling";

/// Lets an agent read the loose ends of agents that are not its children.
pub const QUERY_AGENT_STATE: &str = "query_agent_state";

/// Lets an agent start and stop all agents below it and read their logs, and not those of its
/// children alone.
pub const MANAGE_SUBTREE: &str = "manage_subtree";

/// Lets an agent read the journal of the host, of the units that the operator named.
pub const READ_HOST_JOURNAL: &str = "read_host_journal";

/// All capabilities.
pub const CAPABILITIES: [&str; 3] = [QUERY_AGENT_STATE, MANAGE_SUBTREE, READ_HOST_JOURNAL];

/// Lets an agent create children without asking, with at most what it has itself.
pub const CREATE_AGENT: &str = "create_agent";

/// Lets an agent create and change its own schedules without asking.
pub const OWN_SCHEDULES: &str = "own_schedules";

/// All grants but those of actions.
pub const GRANTS: [&str; 2] = [CREATE_AGENT, OWN_SCHEDULES];

/// Returns whether a text can be a grant: a known word, or `action:` and the name of an action,
/// which lets an agent have that action run without asking.
#[must_use]
pub fn is_grant(text: &str) -> bool {
    GRANTS.contains(&text) || text.strip_prefix(GRANT_PREFIX).is_some_and(is_name)
}

/// The rights and quotas of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Policy {
    /// Tool groups that its bridge offers.
    pub tool_groups: Vec<String>,
    /// Names it may send to; empty: all. The parent is always allowed.
    pub allowed_recipients: Vec<String>,
    /// Further rights, from [`CAPABILITIES`].
    pub capabilities: Vec<String>,
    /// Maximum messages per minute, if it differs from the hive's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends_per_minute_max: Option<u32>,
    /// Maximum bytes of unsettled bodies that it may have stored, if it differs from the hive's
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_stored_bytes_max: Option<u64>,
    /// Maximum open questions that it may have asked, if it differs from the hive's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions_open_max: Option<u32>,
    /// Maximum pending reminders, if it differs from the hive's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminders_pending_max: Option<u32>,
    /// What it may do without asking the operator: see [`is_grant`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// Maximum agents below it, for creating by a grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children_max: Option<u32>,
    /// Maximum schedules of its own that have not ended, if it differs from the hive's limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedules_max: Option<u32>,
}

impl Policy {
    /// Returns whether the policy names this tool group.
    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        self.tool_groups.iter().any(|known| known == group)
    }

    /// Returns whether the policy names this capability.
    #[must_use]
    pub fn has_capability(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|known| known == capability)
    }

    /// Returns whether the policy names this grant.
    #[must_use]
    pub fn has_grant(&self, grant: &str) -> bool {
        self.grants.iter().any(|known| known == grant)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            tool_groups: DEFAULT_TOOL_GROUPS.map(str::to_owned).to_vec(),
            allowed_recipients: Vec::new(),
            capabilities: Vec::new(),
            sends_per_minute_max: None,
            sender_stored_bytes_max: None,
            questions_open_max: None,
            reminders_pending_max: None,
            grants: Vec::new(),
            children_max: None,
            schedules_max: None,
        }
    }
}

/// A part of a policy that can be changed separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyPart {
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
    /// What it may do without asking.
    Grants,
    /// Limit of the agents below it.
    ChildrenMax,
    /// Limit of its schedules that have not ended.
    SchedulesMax,
}

impl PolicyPart {
    /// Every part, in the order of the wire.
    pub const ALL: [Self; 10] = [
        Self::ToolGroups,
        Self::AllowedRecipients,
        Self::Capabilities,
        Self::SendsPerMinuteMax,
        Self::SenderStoredBytesMax,
        Self::QuestionsOpenMax,
        Self::RemindersPendingMax,
        Self::Grants,
        Self::ChildrenMax,
        Self::SchedulesMax,
    ];

    /// The parts that only the operator changes, and never an effect.
    pub const OF_THE_OPERATOR: [Self; 3] = [Self::Grants, Self::ChildrenMax, Self::SchedulesMax];

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
            Self::Grants => "grants",
            Self::ChildrenMax => "children_max",
            Self::SchedulesMax => "schedules_max",
        }
    }

    /// Copies this part of `from` into `to`.
    pub fn copy(self, from: &Policy, to: &mut Policy) {
        match self {
            Self::ToolGroups => to.tool_groups.clone_from(&from.tool_groups),
            Self::AllowedRecipients => to.allowed_recipients.clone_from(&from.allowed_recipients),
            Self::Capabilities => to.capabilities.clone_from(&from.capabilities),
            Self::SendsPerMinuteMax => to.sends_per_minute_max = from.sends_per_minute_max,
            Self::SenderStoredBytesMax => to.sender_stored_bytes_max = from.sender_stored_bytes_max,
            Self::QuestionsOpenMax => to.questions_open_max = from.questions_open_max,
            Self::RemindersPendingMax => to.reminders_pending_max = from.reminders_pending_max,
            Self::Grants => to.grants.clone_from(&from.grants),
            Self::ChildrenMax => to.children_max = from.children_max,
            Self::SchedulesMax => to.schedules_max = from.schedules_max,
        }
    }

    /// Returns whether two policies agree in this part.
    #[must_use]
    pub fn same(self, one: &Policy, other: &Policy) -> bool {
        let mut copy = one.clone();
        self.copy(other, &mut copy);
        copy == *one
    }
}
