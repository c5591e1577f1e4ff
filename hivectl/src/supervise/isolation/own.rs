//! An agent's own directories, as a start or a trial mounts them.
//!
//! A trial has new ones: what an agent has left in its own must not decide the level at which it is
//! started.
//!
//! Invariant: no such directory is reached over a link, and the one for temporary files is empty.

use std::io;
use std::path::{Path, PathBuf};

use crate::output::note;
use crate::supervise::files::delete;
use crate::supervise::files::host_path::{AgentsWrite, HostPath, WalkError};
use crate::supervise::setup::plan::{AgentPlan, Plan};

#[derive(Debug)]
pub(super) struct Own {
    pub(super) tmp: HostPath,
    pub(super) state: HostPath,
    pub(super) home: HostPath,
}

/// Directories of a trial; deleted with this.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) own: Own,
    dir: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum OwnError {
    #[error("{} cannot be emptied: {source}", .path.display())]
    NotEmptied { path: PathBuf, source: io::Error },
    #[error("{} cannot be used: {source}", .path.display())]
    Walk { path: PathBuf, source: WalkError },
}

impl Own {
    /// Returns the directories of an agent. Its old temporary files are deleted in the background.
    pub(super) fn of_agent(plan: &Plan, agent: &AgentPlan) -> Result<Self, OwnError> {
        let tmp = plan.tmp_dir(&agent.name);
        let heap = delete::Heap::collect(&tmp)
            .map_err(|source| OwnError::NotEmptied { path: tmp.clone(), source })?;
        tokio::task::spawn_blocking(move || {
            if let Some(Err(error)) = heap.as_ref().map(delete::Heap::empty) {
                note(&format!("temporary files of an earlier start are not deleted: {error}"));
            }
        });
        Self::at(&plan.agents_write, &tmp, &agent.state_dir, &agent.home_dir)
    }

    fn at(
        agents_write: &AgentsWrite,
        tmp: &Path,
        state: &Path,
        home: &Path,
    ) -> Result<Self, OwnError> {
        let directory = |path: &Path| {
            HostPath::directory(path, agents_write)
                .map_err(|source| OwnError::Walk { path: path.to_path_buf(), source })
        };
        Ok(Self { tmp: directory(tmp)?, state: directory(state)?, home: directory(home)? })
    }
}

impl Trial {
    /// Makes new ones, below the hive's directory.
    pub(super) fn new(plan: &Plan) -> Result<Self, OwnError> {
        let dir = plan.trial_dir();
        // An interrupted trial may have left some.
        delete::tree(&dir).map_err(|source| OwnError::NotEmptied { path: dir.clone(), source })?;
        let own = Own::at(
            &AgentsWrite::default(),
            &dir.join("tmp"),
            &dir.join("state"),
            &dir.join("home"),
        )?;
        Ok(Self { own, dir })
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // The next trial deletes what stays.
        let _ = delete::tree(&self.dir);
    }
}
