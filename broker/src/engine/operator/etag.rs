//! Etags: digests by which a change of an agent depends on what its caller has read.
//!
//! A digest has the declared values, the key of the agent's row and the log. So it needs no column,
//! and no change can forget it. Invariant: nothing that a harness or mail changes is in it, and no
//! later agent of a name has an etag of an earlier one.

use std::fmt::Write as _;

use hive_core::name::AgentName;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::engine::Refusal;
use crate::engine::declared::kick_on_start;
use crate::engine::error::AgentError;
use crate::store::AgentKey;
use crate::store::agent::AgentRow;

/// Bytes of the digest that an etag has.
const BYTES: usize = 12;

/// An agent that a command changes, as its caller has read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name of the agent.
    pub name: AgentName,
    /// The etag that the change depends on; `None` for any.
    pub etag: Option<String>,
}

impl From<AgentName> for Target {
    fn from(name: AgentName) -> Self {
        Self { name, etag: None }
    }
}

/// Makes the etags of one log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Etags<'l> {
    log_id: &'l str,
}

impl<'l> Etags<'l> {
    pub(crate) fn new(log_id: &'l str) -> Self {
        Self { log_id }
    }

    /// Returns the etag of an agent.
    pub(crate) fn of_agent(self, row: &AgentRow) -> String {
        // Destructured, so that the author of a new column decides.
        let AgentRow {
            key,
            name,
            source,
            parent,
            role,
            model,
            policy,
            // What matters of it is in the other columns, and in `kick_on_start`.
            declared: _,
            retired,
            available_models,
            stopped,
            on_demand,
            // A restart changes nothing that is declared.
            restart_count: _,
            restarts_told: _,
            heard: _,
            status_text: _,
            status_time: _,
            harness_state: _,
            harness_state_time: _,
            revision: _,
            context_tokens: _,
            context_window_tokens: _,
            session_epoch: _,
            session_token: _,
            park: _,
            failures_in_a_row: _,
            operator_notified: _,
            context_time: _,
        } = row;
        let parent = parent.unwrap_or(AgentKey::OPERATOR).0;
        let place = (key.0, name, source, parent);
        let settings = (role, model, available_models, kick_on_start(row), policy);
        self.digest(&("agent", place, settings, (retired, stopped, on_demand)))
    }

    /// Returns the etag of the policy of an agent.
    pub(crate) fn of_policy(self, row: &AgentRow) -> String {
        self.digest(&("policy", row.key.0, &row.policy))
    }

    /// Refuses a change if the agent is no longer as the caller has read it.
    pub(crate) fn check_agent(self, target: &Target, row: &AgentRow) -> Result<(), Refusal> {
        check(target, "agent", self.of_agent(row))
    }

    /// Refuses a change if the agent's policy is no longer as the caller has read it.
    pub(super) fn check_policy(self, target: &Target, row: &AgentRow) -> Result<(), Refusal> {
        check(target, "the policy of agent", self.of_policy(row))
    }

    /// Returns a digest of other values that are about this log.
    pub(crate) fn of_values(self, values: &impl Serialize) -> String {
        self.digest(values)
    }

    fn digest(self, values: &impl Serialize) -> String {
        let json = serde_json::to_vec(&(self.log_id, values)).expect("declared values are JSON");
        let digest = Sha256::digest(json);
        digest.iter().take(BYTES).fold(String::with_capacity(2 * BYTES), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string succeeds");
            text
        })
    }
}

fn check(target: &Target, what: &'static str, etag: String) -> Result<(), Refusal> {
    match &target.etag {
        Some(given) if *given != etag => {
            let (agent, given) = (target.name.to_string(), given.clone());
            Err(AgentError::Changed { what, agent, given, etag }.into())
        }
        Some(_) | None => Ok(()),
    }
}
