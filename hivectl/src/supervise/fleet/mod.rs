//! The harnesses that run, kept in step with the agents that the broker has.
//!
//! ```text
//!   broker: active agents, purges ──► follow ──► start   a harness for each agent without one
//!                                            ├─► end     the harness of an agent that is gone
//!                                            └─► purge   end the harness, delete the directories, tell the broker
//! ```
//!
//! - `follow`: what the broker has, and a line for each agent that changed
//! - `purge`: the end of a purged agent's directories
//!
//! Invariant: no harness of an agent starts before everything of an earlier agent of its name has
//! ended and its directories are deleted.

pub(super) mod follow;
mod purge;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hive_core::isolation::Level;
use hive_core::name::AgentName;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::output::note;
use crate::output::text::visible_line;
use crate::supervise::UpError;
use crate::supervise::isolation::Isolation;
use crate::supervise::process::child::Spec;
use crate::supervise::process::supervised::Supervised;
use crate::supervise::setup::plan::{AgentPlan, Plan};
use crate::supervise::setup::settings;

/// Maximum time for a harness to end; its running turn has a separate grace time.
const HARNESS_STOP_MAX: Duration = Duration::from_secs(45);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) agents: BTreeSet<AgentName>,
    /// Purges whose directories must be deleted: id and name.
    pub(crate) purges: BTreeMap<u64, AgentName>,
}

#[derive(Debug)]
pub(crate) struct Fleet {
    plan: Arc<Plan>,
    isolation: Isolation,
    wanted: Wanted,
    running: BTreeMap<AgentName, Running>,
    /// Harnesses that are being ended; each task returns the name and a note.
    ending: JoinSet<(AgentName, Option<String>)>,
    busy: BTreeSet<AgentName>,
    refused: BTreeMap<AgentName, Refusal>,
    /// Purges that were tried; another try is made when the configuration is read again.
    tried: BTreeSet<u64>,
    /// Directories outside of the hive's own that the mounts of running harnesses hide.
    hidden: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct Running {
    supervised: Supervised,
    level: Level,
}

/// Why an agent cannot be started; reported once.
#[derive(Debug)]
struct Refusal {
    sentence: String,
    /// When it is tried again; `None`: only after the configuration is read again.
    again_at: Option<Instant>,
}

impl Fleet {
    pub(crate) fn new(plan: Arc<Plan>, isolation: Isolation) -> Self {
        let hidden = outside(&plan);
        Self {
            plan,
            isolation,
            wanted: Wanted::default(),
            running: BTreeMap::new(),
            ending: JoinSet::new(),
            busy: BTreeSet::new(),
            refused: BTreeMap::new(),
            tried: BTreeSet::new(),
            hidden,
        }
    }

    /// Starts and ends harnesses so that they match the broker's agents.
    pub(crate) async fn follow(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        self.refused.retain(|name, _| self.wanted.agents.contains(name));
        self.reconcile().await;
    }

    /// Waits until something that was being ended has ended. It is lost nowhere if this is given
    /// up.
    pub(crate) async fn ended(&mut self) {
        match self.ending.join_next().await {
            Some(Ok((name, sentence))) => {
                self.busy.remove(&name);
                if let Some(sentence) = sentence {
                    note(&sentence);
                }
            }
            // A panic has dropped, and so killed, the harness that the task was ending.
            Some(Err(error)) => note(&format!("ending a harness failed: {error}")),
            None => std::future::pending().await,
        }
    }

    /// Starts missing harnesses and ends those without an agent.
    pub(crate) async fn reconcile(&mut self) {
        let purges: Vec<(u64, AgentName)> =
            self.wanted.purges.iter().map(|(id, name)| (*id, name.clone())).collect();
        for (id, name) in purges {
            if !self.busy.contains(&name) && self.tried.insert(id) {
                self.end(name, Some(id));
            }
        }
        let gone: Vec<AgentName> = self
            .running
            .keys()
            .filter(|name| !self.wanted.agents.contains(*name))
            .cloned()
            .collect();
        for name in gone {
            self.end(name, None);
        }
        let missing: Vec<AgentName> =
            self.wanted.agents.iter().filter(|name| self.may_start(name)).cloned().collect();
        for name in missing {
            self.try_start(name).await;
        }
    }

    /// Returns when an agent that was not started is to be tried again.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        let missing = self.refused.iter().filter(|(name, _)| self.is_missing(name));
        missing.filter_map(|(_, refusal)| refusal.again_at).min()
    }

    /// Tries an agent again that was not started for what may have passed: one, because a trial
    /// may take half a minute, and the caller has other things to do in between.
    pub(crate) async fn try_again(&mut self) {
        let now = Instant::now();
        let is_due = |name: &&AgentName| {
            self.refused.get(name).and_then(|refusal| refusal.again_at).is_some_and(|at| at <= now)
        };
        let mut due = self.wanted.agents.iter().filter(is_due);
        let next = due.find(|name| self.is_missing(name)).cloned();
        if let Some(name) = next {
            self.try_start(name).await;
        }
    }

    /// Starts an agent, or reports a new reason why it cannot be started.
    async fn try_start(&mut self, name: AgentName) {
        let Err(error) = self.start(&name).await else {
            self.refused.remove(&name);
            return;
        };
        let sentence = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        if self.refused.get(&name).is_none_or(|before| before.sentence != sentence) {
            note(&format!("{name} is not started: {}", visible_line(&sentence)));
        }
        let again_at = error.retry_after().map(|pause| Instant::now() + pause);
        self.refused.insert(name, Refusal { sentence, again_at });
    }

    fn may_start(&self, name: &AgentName) -> bool {
        self.is_missing(name) && !self.refused.contains_key(name)
    }

    fn is_missing(&self, name: &AgentName) -> bool {
        let purged = self.wanted.purges.values().any(|purged| purged == name);
        !self.running.contains_key(name) && !self.busy.contains(name) && !purged
    }

    async fn start(&mut self, name: &AgentName) -> Result<(), UpError> {
        let agent = self.plan.agent(name)?;
        let choice = self.isolation.choose(&self.plan, &agent).await?;
        let unhidden =
            || agent.dirs().into_iter().find(|dir| !self.is_hidden(dir)).map(Path::to_path_buf);
        let peers_share_files =
            self.running.values().any(|running| running.level == Level::SharedFiles);
        if (choice.level == Level::SharedFiles || peers_share_files)
            && let Some(path) = unhidden()
        {
            return Err(UpError::NotHidden { path });
        }
        settings::write(&self.plan, &agent, choice.level)?;
        let spec = Spec {
            name: agent.name.to_string(),
            start: self.isolation.start(&self.plan, &agent, &choice),
            dir: agent.state_dir.clone(),
            log: self.plan.log_file(agent.name.as_str()),
            is_filtered: true,
            // bubblewrap has its own death signal.
            own_death_signal: choice.level == Level::None,
        };
        let supervised = Supervised::start(spec, self.isolation.registry(), None);
        self.running.insert(name.clone(), Running { supervised, level: choice.level });
        Ok(())
    }

    /// Returns whether the mounts of the other agents hide a directory, at the level at which they
    /// share files.
    fn is_hidden(&self, dir: &Path) -> bool {
        dir.starts_with(&self.plan.agents_dir) || self.hidden.contains(dir)
    }

    fn end(&mut self, name: AgentName, purge: Option<u64>) {
        let harness = self.running.remove(&name);
        self.busy.insert(name.clone());
        let files = purge::AgentFiles::new(&self.plan, &name);
        self.ending.spawn(async move {
            let ran = harness.is_some();
            if let Some(harness) = harness {
                harness.supervised.stop(Some(HARNESS_STOP_MAX)).await;
            }
            let sentence = match purge {
                Some(id) => Some(purge::run(files, id).await),
                None => ran.then(|| format!("{name} is removed, and its harness has ended")),
            };
            (name, sentence)
        });
    }

    /// Applies a configuration that was read again; returns the agents whose settings changed.
    pub(crate) async fn configure(&mut self, plan: Plan) -> Vec<AgentName> {
        // A running harness keeps its directories.
        self.plan = Arc::new(plan.keeping_dirs_of(&self.plan, self.running.keys()));
        self.refused.clear();
        self.tried.clear();
        let outside = outside(&self.plan);
        self.hidden.retain(|dir| outside.contains(dir));
        let mut changed = Vec::new();
        for (name, running) in &self.running {
            let written = self
                .plan
                .agent(name)
                .and_then(|agent| settings::write(&self.plan, &agent, running.level));
            match written {
                Ok(true) => changed.push(name.clone()),
                Ok(false) => {}
                Err(error) => note(&format!("the settings of {name} stay as they were: {error}")),
            }
        }
        self.reconcile().await;
        changed
    }

    /// Ends all harnesses at once, so that they can still requeue their turns.
    pub(crate) async fn drain(self) {
        let Self { running, mut ending, .. } = self;
        for (name, harness) in running {
            ending.spawn(async move {
                harness.supervised.stop(Some(HARNESS_STOP_MAX)).await;
                (name, None)
            });
        }
        // A panic of a task has killed its harness by dropping it.
        while ending.join_next().await.is_some() {}
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Returns the directories of agents that are not below the hive's own.
fn outside(plan: &Plan) -> BTreeSet<PathBuf> {
    let dirs = plan.agents.iter().filter(|agent| agent.is_laid_out).flat_map(AgentPlan::dirs);
    dirs.filter(|dir| !dir.starts_with(&plan.agents_dir)).map(Path::to_path_buf).collect()
}
