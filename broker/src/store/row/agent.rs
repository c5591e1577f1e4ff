//! The row of an agent.

use hive_core::agent::{HarnessState, Heard, Policy, Source, Wanted};
use hive_core::park::{Park, Parked};
use hive_core::time::{BootTime, Now, WallTime};
use hive_core::turn::Outcome;
use rusqlite::{Result, Row};

use crate::store::codec::json;
use crate::store::columns::{Columns, columns};
use crate::store::key::AgentKey;

columns! {
    /// The row of an agent.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AgentRow, pub(in crate::store) const COLUMNS {
        pub key: AgentKey = "id",
        /// The name, which no other row has.
        pub name: String = "name",
        /// The source that declared it; `None` for the operator.
        pub source: Option<Source> = "nullif(source, 0)",
        /// The parent; `None` for a root.
        pub parent: Option<AgentKey> = "parent_id",
        /// The purpose of the agent, as others see it.
        pub role: String = "role",
        /// The model; empty for the default.
        pub model: String = "model",
        /// The rights and limits of the agent.
        pub policy: Policy = "policy",
        /// The last declaration of the configuration file, as JSON.
        pub declared: Option<String> = "declared",
        /// Whether it was retired.
        pub retired: bool = "retired",
        /// The status text that the agent set.
        pub status_text: String = "status_text",
        /// When the status text was set.
        pub status_time: Option<WallTime> = "status_time",
        /// The state that its harness reported.
        pub harness_state: HarnessState = "harness_state",
        /// When that state began.
        pub harness_state_time: WallTime = "harness_state_time",
        /// The version of its harness.
        pub revision: String = "revision",
        /// Size of its context in tokens.
        pub context_tokens: u64 = "context_tokens",
        /// Size of its model's window in tokens.
        pub context_window_tokens: u64 = "context_window_tokens",
        /// The number of its last session.
        pub session_epoch: u64 = "session_epoch",
        /// Its session's token; `None` while no session lives.
        pub session_token: Option<String> = "session_token",
        /// The reason for which it starts no turns, if it is parked.
        pub park: Option<Parked> = "park_cause, park_until_time, park_until_boot, park_error",
        /// Turns in a row that could not run.
        pub failures_in_a_row: u32 = "failures_in_a_row",
        /// Whether the operator was notified of the present trouble.
        pub operator_notified: bool = "operator_told",
        /// When the size of its context was measured.
        pub context_time: Option<WallTime> = "context_time",
        /// Models that it may be switched to; empty: any.
        pub available_models: Vec<String> = "available_models",
        /// Whether it was stopped.
        pub stopped: bool = "stopped",
        /// Whether its harness runs on demand only, once it is not stopped.
        pub on_demand: bool = "on_demand",
        /// How many restarts of its harness were requested.
        pub restart_count: u64 = "restart_count",
        /// Of how many of them the parent was notified.
        pub restarts_told: u64 = "restarts_told",
        /// What the parent was notified of.
        pub heard: Heard = "heard",
    }
}

impl AgentRow {
    /// Returns how it is wanted on its host.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        match (self.stopped, self.on_demand) {
            (true, _) => Wanted::Stopped,
            (false, true) => Wanted::OnDemand,
            (false, false) => Wanted::Running,
        }
    }

    /// Returns its park, if that still holds.
    #[must_use]
    pub fn parked(&self, now: Now) -> Option<&Parked> {
        self.park.as_ref().filter(|parked| parked.park.holds(now))
    }
}

impl Columns for Parked {
    const WIDTH: usize = 4;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        let cause = Outcome::read(row, at)?;
        let (wall, boot) = <(Option<WallTime>, Option<BootTime>)>::read(row, at + 1)?;
        Ok(Self { cause, park: Park::new(cause, wall, boot), error: row.get(at + 3)? })
    }
}

impl Columns for Policy {
    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        // Most agents have this one.
        if row.get_ref(at)?.as_str()? == "{}" { Ok(Self::default()) } else { json(row, at) }
    }
}
