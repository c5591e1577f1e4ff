//! Isolation: the level that each agent is started at, and its sandbox.
//!
//! - `choice`: what was chosen, in words; `levels`: what works here; `trial`, `own`: trying a level
//! - `grants`, `shown`, `programs`: what is granted, what else is shown, what no grant may contain
//! - `sandbox`, `shared`, `passwd`, `bwrap`, `remedy`: the arguments of bubblewrap, and which one
//! - `confined`, `unconfined`: one start; `expected`, `verdict`: its checks, and what they mean
//! - `sharing`: directories that agents share
//!
//! If the configuration states no level, the best one that works is used and printed; a stated
//! level that does not work is refused. Invariants: no agent is started at a level that its trial
//! did not reach. While confined agents run, no failed trial lowers a level, because they may have
//! caused the failure.

mod bwrap;
mod choice;
mod confined;
mod expected;
mod grants;
mod levels;
mod own;
mod passwd;
mod programs;
mod remedy;
mod sandbox;
mod shared;
mod sharing;
mod shown;
mod trial;
mod unconfined;
mod verdict;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use hive_core::config::AgentConfig;
use hive_core::isolation::{Found, Level};

pub(super) use self::choice::Choice;

use self::bwrap::Bubblewrap;
use self::confined::Confined;
use self::levels::Levels;
use self::sharing::Sharing;
use self::trial::Failed;
use self::unconfined::Unconfined;
use self::verdict::Verdict;
use crate::supervise::UpError;
use crate::supervise::broker::link::Registrar;
use crate::supervise::process::child::Registry;
use crate::supervise::process::start::Start;
use crate::supervise::setup::binaries::Binaries;
use crate::supervise::setup::environment::{self, Env};
use crate::supervise::setup::plan::{AgentPlan, Plan};

#[derive(Clone, Debug)]
pub(crate) struct Tools {
    pub(crate) claude: PathBuf,
    pub(crate) binaries: Binaries,
    pub(crate) caller: Env,
    pub(crate) registry: Registry,
    pub(crate) registrar: Registrar,
}

/// Chooses levels, and makes starts from them.
#[derive(Debug)]
pub(crate) struct Isolation {
    bwrap: Result<Bubblewrap, String>,
    /// `--no-isolation` was given.
    unwanted: bool,
    tools: Tools,
    /// The results of trials, by the settings that they depend on.
    tried: BTreeMap<String, Choice>,
    levels: Levels,
    sharing: Option<(Arc<Plan>, Sharing)>,
}

/// Returns the bubblewrap that this user makes sandboxes with, or why there is none, as a sentence
/// without a full stop.
pub(crate) fn sandboxes() -> Result<PathBuf, String> {
    let bwrap = find()?;
    trial::minimal(&bwrap.program).map(|()| bwrap.program)
}

fn find() -> Result<Bubblewrap, String> {
    if rustix::process::geteuid().is_root() {
        return Err(
            "this runs as root, which no sandbox of its own user holds; start it as another user"
                .to_owned(),
        );
    }
    Bubblewrap::find()
}

impl Isolation {
    pub(crate) fn new(unwanted: bool, tools: Tools) -> Self {
        Self {
            bwrap: find(),
            unwanted,
            tools,
            tried: BTreeMap::new(),
            levels: Levels::default(),
            sharing: None,
        }
    }

    pub(crate) async fn choose(
        &mut self,
        plan: &Arc<Plan>,
        agent: &AgentPlan,
    ) -> Result<Choice, UpError> {
        let stated = plan.config.isolation_of(Some(&agent.config));
        let none =
            |why: Vec<String>| Choice { level: Level::None, stated, why, found: Found::default() };
        if self.unwanted {
            return Ok(none(vec!["--no-isolation was given".to_owned()]));
        }
        let candidates: &[Level] = match stated {
            Some(Level::None) => return Ok(none(Vec::new())),
            Some(Level::SharedFiles) => &[Level::SharedFiles],
            Some(Level::Sandbox) => &[Level::Sandbox],
            None => &[Level::Sandbox, Level::SharedFiles],
        };
        self.check_grants(plan, agent, stated)?;
        if !agent.is_laid_out {
            // A trial would fail if the place leads over a link.
            plan.agent(&agent.name)?;
        }
        let AgentConfig {
            sandbox, extra_mcp_servers, marketplaces, env, state_dir, home_dir, ..
        } = &agent.config;
        // The values of `env` are not in its format for people, and may be paths.
        let env = serde_json::json!(env);
        let key = format!(
            "{stated:?} {sandbox:?} {extra_mcp_servers:?} {marketplaces:?} {env} {state_dir:?} {home_dir:?}"
        );
        if let Some(choice) = self.tried.get(&key) {
            return Ok(choice.clone());
        }
        let choice = self.try_levels(plan, agent, stated, candidates).await?;
        self.tried.insert(key, choice.clone());
        Ok(choice)
    }

    /// Checks the grants of an agent that may run in a sandbox. An error of the file is not one of
    /// the host, and a weaker level does not correct it.
    fn check_grants(
        &self,
        plan: &Arc<Plan>,
        agent: &AgentPlan,
        stated: Option<Level>,
    ) -> Result<(), UpError> {
        let (Ok(bwrap), Some(Level::Sandbox) | None) = (&self.bwrap, stated) else {
            return Ok(());
        };
        let verdict = Verdict { level: Level::Sandbox, stated, notes: Vec::new() };
        let confined = self.confined(bwrap.clone(), plan, agent, verdict);
        let checked = shown::grants(&confined).and_then(|_| shown::files(&confined));
        checked.map(drop).map_err(|refused| UpError::Grant {
            agent: agent.name.to_string(),
            why: refused.to_string(),
            may_be_an_agents: refused.may_be_an_agents(&plan.agents_write),
        })
    }

    /// Tries levels, the best one first, until one works.
    async fn try_levels(
        &mut self,
        plan: &Arc<Plan>,
        agent: &AgentPlan,
        stated: Option<Level>,
        candidates: &[Level],
    ) -> Result<Choice, UpError> {
        let failed = |why| UpError::Trial { agent: agent.name.to_string(), why };
        let mut why: Vec<String> = Vec::new();
        for level in candidates {
            match self.attempt(plan, agent, *level).await {
                Ok(found) => {
                    self.levels.reach(*level);
                    return Ok(Choice { level: *level, stated, why, found });
                }
                Err(Failed::NotHere(reason)) if stated.is_some() || self.levels.miss(*level) => {
                    if why.last() != Some(&reason) {
                        why.push(reason);
                    }
                }
                // A weaker level only because the disk is full, or something was renamed, would be
                // one that an agent can choose.
                Err(Failed::NotHere(why)) => {
                    return Err(failed(format!(
                        "{why}; no weaker level is used while other agents run, unless hive.toml states one"
                    )));
                }
                Err(Failed::NotNow(why)) => return Err(failed(why)),
            }
        }
        match stated {
            Some(level) => Err(UpError::Isolation {
                agent: agent.name.to_string(),
                level,
                why: why.join("; "),
            }),
            None => Ok(Choice { level: Level::None, stated, why, found: Found::default() }),
        }
    }

    /// Tries a level: returns the findings from inside, or why it does not work.
    async fn attempt(
        &self,
        plan: &Arc<Plan>,
        agent: &AgentPlan,
        level: Level,
    ) -> Result<Found, Failed> {
        let bwrap = self.bwrap.as_ref().map_err(|why| Failed::NotHere(why.clone()))?;
        let verdict = Verdict {
            level,
            stated: plan.config.isolation_of(Some(&agent.config)),
            notes: Vec::new(),
        };
        let confined = self.confined(bwrap.clone(), plan, agent, verdict);
        let found = trial::run(&confined, &self.tools.registry).await?;
        let judged = confined.verdict.judge(found.clone());
        let broken = judged.reached == hive_proto::supervisor::Reached::None;
        match (judged.refused, broken) {
            (Some(why), _) => Err(Failed::NotHere(why)),
            (None, true) => Err(Failed::NotHere(judged.notes.join("; "))),
            (None, false) => Ok(found),
        }
    }

    /// Returns how an agent's harness is started.
    pub(crate) fn start(
        &mut self,
        plan: &Arc<Plan>,
        agent: &AgentPlan,
        choice: &Choice,
    ) -> Arc<dyn Start> {
        let notes = self.sharing(plan).notes(&agent.name);
        match (&self.bwrap, choice.level) {
            (Ok(bwrap), Level::Sandbox | Level::SharedFiles) => {
                self.levels.agent_runs();
                let verdict = Verdict { level: choice.level, stated: choice.stated, notes };
                Arc::new(self.confined(bwrap.clone(), plan, agent, verdict))
            }
            (Err(_), _) | (Ok(_), Level::None) => {
                let env = self.env(agent);
                let Tools { binaries, registrar, .. } = &self.tools;
                let notes = choice.why.iter().cloned().chain(notes).collect();
                let verdict = Verdict { level: Level::None, stated: choice.stated, notes };
                let isolation = verdict.judge(Found::default());
                let name = agent.name.to_string();
                Arc::new(Unconfined {
                    name,
                    hive: binaries.hive.clone(),
                    env,
                    isolation,
                    registrar: registrar.clone(),
                })
            }
        }
    }

    fn sharing(&mut self, plan: &Arc<Plan>) -> &Sharing {
        if self.sharing.as_ref().is_none_or(|(of, _)| !Arc::ptr_eq(of, plan)) {
            self.sharing = None;
        }
        &self.sharing.get_or_insert_with(|| (Arc::clone(plan), Sharing::new(plan))).1
    }

    pub(crate) fn registry(&self) -> Registry {
        self.tools.registry.clone()
    }

    fn confined(
        &self,
        bwrap: Bubblewrap,
        plan: &Arc<Plan>,
        agent: &AgentPlan,
        verdict: Verdict,
    ) -> Confined {
        let Tools { claude, binaries, registrar, .. } = self.tools.clone();
        let (plan, level) = (Arc::clone(plan), verdict.level);
        Confined {
            level,
            bwrap,
            plan,
            agent: agent.clone(),
            binaries,
            claude,
            env: self.env(agent),
            verdict,
            registrar,
        }
    }

    fn env(&self, agent: &AgentPlan) -> Env {
        let Tools { claude, binaries, caller, .. } = &self.tools;
        environment::for_agent(caller, agent, claude, binaries)
    }
}
