//! The harnesses that run, kept in step with what the broker wants.
//!
//! ```text
//!   broker ──► wanted ──► start   a harness that is due and missing
//!                     ├─► end     the harness of an agent that is stopped, gone or to be restarted
//!                     └─► purge   end the harness, delete the directories, tell the broker
//!   broker ◄── report ◄── what becomes of them
//! ```
//!
//! - `lines`: a line for each agent that changed
//! - `purge`: the end of a purged agent's directories
//!
//! Invariant: no harness of an agent starts before everything of an earlier harness or agent of its
//! name has ended, and the directories of a purged one are deleted.

pub(super) mod lines;
mod purge;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hive_core::agent::{HarnessReport, Wanted as State};
use hive_core::isolation::Level;
use hive_core::name::AgentName;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::output::note;
use crate::output::text::visible_line;
use crate::supervise::UpError;
use crate::supervise::isolation::Isolation;
use crate::supervise::launch::decide::{Next, Seen, Stops, Why, decide};
use crate::supervise::launch::report::Reporter;
use crate::supervise::launch::wanted::{Harness, Wanted};
use crate::supervise::process::child::{Spec, last_words};
use crate::supervise::process::supervised::{Moment, Supervised};
use crate::supervise::setup::plan::{AgentPlan, Plan};
use crate::supervise::setup::settings;

/// Maximum time for a harness to end; its running turn has a separate grace time.
const HARNESS_STOP_MAX: Duration = Duration::from_secs(45);

#[derive(Debug)]
pub(crate) struct Fleet {
    plan: Arc<Plan>,
    isolation: Isolation,
    wanted: Wanted,
    running: BTreeMap<AgentName, Running>,
    reporter: Reporter,
    /// Harnesses that are being ended.
    ending: JoinSet<Over>,
    busy: BTreeSet<AgentName>,
    stops: Stops,
    /// The names and numbers of harnesses that have left, because they run on demand.
    left: UnboundedReceiver<(AgentName, u64)>,
    leaving: UnboundedSender<(AgentName, u64)>,
    /// The number of the next harness.
    next_number: u64,
    refused: BTreeMap<AgentName, Refusal>,
    /// Purges that were tried; another try is made when the configuration is read again.
    tried: BTreeSet<u64>,
    /// Purges that are finished, which the broker does not withdraw.
    purged: BTreeSet<u64>,
    /// Directories outside of the hive's own that the mounts of running harnesses hide.
    hidden: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct Running {
    supervised: Supervised,
    level: Level,
    /// Tells it from others of the same agent.
    number: u64,
    /// The restarts that were requested when it was started.
    restart_count: u64,
}

/// A harness that has ended.
#[derive(Debug)]
struct Over {
    name: AgentName,
    sentence: Option<String>,
    /// The purge that is finished with it.
    purged: Option<u64>,
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
        let (leaving, left) = unbounded_channel();
        Self {
            reporter: Reporter::new(plan.operator_socket()),
            plan,
            isolation,
            wanted: Wanted::default(),
            running: BTreeMap::new(),
            ending: JoinSet::new(),
            busy: BTreeSet::new(),
            stops: Stops::default(),
            left,
            leaving,
            next_number: 0,
            refused: BTreeMap::new(),
            tried: BTreeSet::new(),
            purged: BTreeSet::new(),
            hidden,
        }
    }

    /// Starts and ends harnesses so that they match what the broker wants.
    pub(crate) async fn follow(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        self.wanted.purges.retain(|id, _| !self.purged.contains(id));
        self.refused.retain(|name, _| self.wanted.agents.contains_key(name));
        self.reconcile().await;
    }

    /// Waits until a harness has ended that was being ended, or has left. It is lost nowhere if
    /// this is given up.
    pub(crate) async fn ended(&mut self) {
        tokio::select! {
            Some(over) = self.ending.join_next() => match over {
                Ok(over) => self.is_over(over),
                // A panic has dropped, and so killed, the harness that the task was ending.
                Err(error) => note(&format!("ending a harness failed: {error}")),
            },
            Some((name, number)) = self.left.recv() => {
                if self.running.get(&name).is_some_and(|running| running.number == number) {
                    self.running.remove(&name);
                }
            }
            else => std::future::pending().await,
        }
    }

    fn is_over(&mut self, Over { name, sentence, purged }: Over) {
        self.busy.remove(&name);
        if let Some(id) = purged {
            self.wanted.purges.remove(&id);
            self.purged.insert(id);
        }
        if let Some(sentence) = sentence {
            note(&sentence);
        }
    }

    /// Starts harnesses that are due and ends those that are not wanted.
    pub(crate) async fn reconcile(&mut self) {
        self.stops.retain(&self.wanted);
        for (name, running) in &self.running {
            let on_demand = |harness: &Harness| harness.state == State::OnDemand;
            running.supervised.let_leave(self.wanted.agents.get(name).is_some_and(on_demand));
        }
        for (name, next) in decide(&self.wanted, &self.seen()) {
            match next {
                Next::End(Why::Purge(id)) => {
                    if self.tried.insert(id) {
                        self.end(name, Why::Purge(id));
                    }
                }
                Next::End(why) => self.end(name, why),
                Next::ReportStopped => {
                    if self.stops.is_new(&name) {
                        self.reporter.line(name, 0).report(HarnessReport::Stopped, String::new());
                    }
                }
                Next::Start { .. } => {
                    if !self.refused.contains_key(&name) {
                        self.try_start(name).await;
                    }
                }
            }
        }
    }

    /// Returns the harnesses as they are.
    fn seen(&self) -> BTreeMap<AgentName, Seen> {
        let busy = self.busy.iter().map(|name| (name.clone(), Seen::Changing));
        let running = self.running.iter().map(|(name, running)| {
            (name.clone(), Seen::Running { restart_count: running.restart_count })
        });
        running.chain(busy).collect()
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
        let mut due = self.wanted.agents.keys().filter(is_due);
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

    fn is_missing(&self, name: &AgentName) -> bool {
        let purged = self.wanted.purges.values().any(|purged| purged == name);
        let is_due = self.wanted.agents.get(name).is_some_and(|harness| harness.is_due());
        is_due && !self.running.contains_key(name) && !self.busy.contains(name) && !purged
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
        let (number, log) = (self.next_number, spec.log.clone());
        self.next_number += 1;
        let wanted = self.wanted.agents.get(name);
        let restart_count = wanted.map_or(0, |harness| harness.restart_count);
        let line = self.reporter.line(name.clone(), restart_count);
        let leaving = self.leaving.clone();
        let of = name.clone();
        let observer = move |moment| match moment {
            Moment::Started => line.report(HarnessReport::Started, String::new()),
            Moment::Steady => line.report(HarnessReport::Steady, String::new()),
            Moment::Ended(ended) => {
                let text = format!("{}{}", ended.description, last_words(&log));
                line.report(HarnessReport::Crashed, text);
            }
            // At the end it has no reader.
            Moment::Left => drop(leaving.send((of.clone(), number))),
        };
        let supervised = Supervised::start(spec, self.isolation.registry(), Box::new(observer));
        supervised.let_leave(wanted.is_some_and(|harness| harness.state == State::OnDemand));
        let running = Running { supervised, level: choice.level, number, restart_count };
        self.running.insert(name.clone(), running);
        Ok(())
    }

    /// Returns whether the mounts of the other agents hide a directory, at the level at which they
    /// share files.
    fn is_hidden(&self, dir: &Path) -> bool {
        dir.starts_with(&self.plan.agents_dir) || self.hidden.contains(dir)
    }

    fn end(&mut self, name: AgentName, why: Why) {
        let harness = self.running.remove(&name);
        self.busy.insert(name.clone());
        let files = purge::AgentFiles::new(&self.plan, &name);
        self.ending.spawn(async move {
            let ran = harness.is_some();
            if let Some(harness) = harness {
                harness.supervised.stop(Some(HARNESS_STOP_MAX)).await;
            }
            let (mut purged, mut sentence) = (None, None);
            match why {
                Why::Purge(id) => {
                    let (said, is_finished) = purge::run(files, id).await;
                    (purged, sentence) = (is_finished.then_some(id), Some(said));
                }
                Why::Gone if ran => {
                    sentence = Some(format!("{name} is removed, and its harness has ended"));
                }
                Why::Restart => sentence = Some(format!("{name} is restarted, as was requested")),
                Why::Stopped => {
                    sentence = Some(format!("{name} is stopped, and its harness has ended"));
                }
                Why::Gone => {}
            }
            Over { name, sentence, purged }
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
                Over { name, sentence: None, purged: None }
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
