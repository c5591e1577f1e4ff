//! The agents' state directories that this host knows.
//!
//! Invariant: a directory that the configuration names has precedence over the one that `hivectl
//! up` gives to every agent; long reminders are below one of the broker's own, if it has one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use hive_core::name::AgentName;

/// The agents' state directories on this host.
#[derive(Debug, Default)]
pub struct Directories {
    named: Mutex<BTreeMap<AgentName, PathBuf>>,
    /// The directory of all other agents' directories, as `NAME/state`. Set if one program runs all
    /// harnesses of this host.
    agents_dir: Option<PathBuf>,
    /// The directory of all agents' folders of long reminders, as `NAME/reminders`.
    reminders_dir: Option<PathBuf>,
}

impl Directories {
    /// Returns these directories; `agents_dir` holds those of all agents that are not named.
    #[must_use]
    pub fn new(
        named: BTreeMap<AgentName, PathBuf>,
        agents_dir: Option<PathBuf>,
        reminders_dir: Option<PathBuf>,
    ) -> Self {
        Self { named: Mutex::new(named), agents_dir, reminders_dir }
    }

    /// Replaces the named directories.
    pub fn set_named(&self, named: BTreeMap<AgentName, PathBuf>) {
        *self.named.lock().unwrap_or_else(PoisonError::into_inner) = named;
    }

    /// Returns the state directory of an agent; `None` if this host does not know it.
    #[must_use]
    pub fn state_dir(&self, agent: &AgentName) -> Option<PathBuf> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner).get(agent).cloned();
        named.or_else(|| Some(self.agents_dir.as_ref()?.join(agent.as_str()).join("state")))
    }

    /// Returns the directory in which an agent's folder of long reminders is.
    #[must_use]
    pub fn of_reminders(&self, agent: &AgentName) -> Option<PathBuf> {
        match &self.reminders_dir {
            Some(dir) => Some(dir.join(agent.as_str())),
            None => self.state_dir(agent),
        }
    }

    /// Creates the folder of an agent's long reminders, so that its service can find it before
    /// there is one. Does nothing where the folder is in the agent's own directory.
    pub fn prepare(&self, agent: &AgentName) {
        let Some(dir) = &self.reminders_dir else { return };
        if let Err(error) = crate::spill::prepare(&dir.join(agent.as_str())) {
            tracing::warn!(%agent, %error, "there is no folder for long reminders; messages carry their bodies");
        }
    }

    /// Returns whether one program runs all harnesses of this host and deletes the directories of
    /// purged agents.
    #[must_use]
    pub fn are_managed(&self) -> bool {
        self.agents_dir.is_some()
    }
}
