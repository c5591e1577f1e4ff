//! Agents: their names and policies, and the state of their harnesses.

mod policy;

use serde::{Deserialize, Serialize};

use crate::id::TurnId;
use crate::limits::MODEL_CHARS_MAX;
use crate::name::AgentName;
use crate::park;
use crate::time::WallTime;

pub use policy::{
    APPROVALS, CAPABILITIES, CREATE_AGENT, DEFAULT_TOOL_GROUPS, DIAGNOSTICS, GRANTS, LIFECYCLE,
    MANAGE_SUBTREE, OWN_SCHEDULES, Policy, PolicyPart, QUERY_AGENT_STATE, READ_HOST_JOURNAL,
    SCHEDULING, TOOL_GROUPS, is_grant,
};

/// Longest status text, in characters.
pub const STATUS_CHARS_MAX: usize = 200;

/// The exit code of a harness that leaves because its agent runs on demand and has no work. Its
/// supervisor does not start it again; a launcher does, when there is work.
pub const LEFT_CODE: u8 = 10;

/// Returns whether a text can be a model's name: short, on one line, and not taken for a flag by a
/// command line.
#[must_use]
pub fn is_model_name(text: &str) -> bool {
    let length = text.chars().count();
    (1..=MODEL_CHARS_MAX).contains(&length)
        && !text.starts_with('-')
        && !text.contains(char::is_control)
}

/// Origin of an agent's declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Source {
    /// The configuration file.
    File,
    /// The operator, at run time.
    Runtime,
}

/// When the broker notifies an agent to go on at a new session of its harness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KickOnStart {
    /// If its last turn was interrupted and no redelivery reports that.
    #[default]
    Interrupted,
    /// At each new session.
    Always,
    /// Never.
    Never,
}

impl KickOnStart {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Interrupted, Self::Always, Self::Never];

    /// Returns the value in the configuration file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

/// State of an agent's harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HarnessState {
    /// None is attached.
    Offline,
    /// The harness prepares its first turn.
    Starting,
    /// The harness waits for mail.
    Idle,
    /// A turn runs.
    Thinking,
    /// The context is being compacted.
    Compacting,
    /// Parked until the rate limit ends.
    RateLimited,
    /// Parked until claude has a login.
    NeedsLogin,
    /// Parked with backoff.
    Unavailable,
    /// Stopped by the operator or an agent above it.
    Stopped,
}

/// How an agent is wanted on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// Its harness runs.
    Running,
    /// Its harness runs while there is mail.
    OnDemand,
    /// Its harness does not run.
    Stopped,
}

/// What became of a harness, as the launcher sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HarnessReport {
    /// Its process was started.
    Started,
    /// Its process has ended because the agent was stopped.
    Stopped,
    /// Its process ended by itself.
    Crashed,
    /// Its process has run for a minute.
    Steady,
}

/// What the broker last heard of an agent's harness from the launcher, as far as the parent was
/// notified of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Heard {
    /// Nothing special.
    #[default]
    Well,
    /// It has ended, because the agent was stopped.
    Stopped,
    /// It ended by itself, and has not run for a minute since.
    Crashed,
}

/// The isolation of an agent's programs from the operator, the broker and the other agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Not isolated.
    None,
    /// In namespaces of its own, with something missing.
    Partly,
    /// In a sandbox of its own; each probe from inside has passed.
    Sandbox,
    /// By a user id that no other agent has.
    Uid,
    /// By a unit of systemd of its own, whatever its user.
    Unit,
}

/// An agent with its state and policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Unique name in the hive.
    pub name: AgentName,
    /// The agent's purpose.
    pub role: String,
    /// Its parent; `None` for a root.
    pub parent: Option<AgentName>,
    /// Origin of its declaration.
    pub source: Source,
    /// State of its harness.
    pub state: HarnessState,
    /// When `state` last changed.
    pub state_time: WallTime,
    /// Whether a harness is attached.
    pub running: bool,
    /// Status text that the agent set; empty for none.
    pub status_text: String,
    /// When `status_text` was set.
    pub status_time: Option<WallTime>,
    /// Configured model.
    pub model: String,
    /// Size of its context, in tokens; 0 if unknown.
    pub context_tokens: u64,
    /// Size of its model's window, in tokens; 0 if unknown.
    pub context_window_tokens: u64,
    /// The hive's name; empty if none.
    pub hive_name: String,
    /// The swarm's name; empty if none.
    pub swarm_name: String,
    /// The version of its harness; empty if none attached yet.
    pub revision: String,
    /// Rights and quotas.
    pub policy: Policy,
    /// The park, while it starts no turns.
    pub park: Option<park::View>,
    /// Whether it was retired.
    pub retired: bool,
    /// Deliveries that wait in its inbox.
    pub ready_count: u32,
    /// Number of its dead letters.
    pub dead_count: u32,
    /// The isolation of its programs; `None` before a harness has attached.
    pub isolation: Option<Isolation>,
    /// Gaps of its isolation, a sentence each.
    pub isolation_notes: Vec<String>,
    /// Its open turns, oldest first.
    pub open_turns: Vec<TurnId>,
    /// When the size of its context was measured; `None` if never.
    pub context_time: Option<WallTime>,
    /// Models it may be switched to; empty: any.
    pub available_models: Vec<String>,
    /// Whether it was stopped.
    pub stopped: bool,
    /// Whether its harness runs on demand only, once it is not stopped.
    pub on_demand: bool,
    /// How many restarts of its harness were requested.
    pub restart_count: u64,
    /// The model that its newest turn with a known model reported; empty if none has.
    pub model_in_use: String,
    /// When a new session notifies it to go on.
    pub kick_on_start: KickOnStart,
    /// An opaque text that changes with its declaration.
    pub etag: String,
    /// An opaque text that changes with its policy.
    pub policy_etag: String,
}
