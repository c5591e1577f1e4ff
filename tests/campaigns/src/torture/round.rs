//! A round: a separate hive is kept busy while its processes are killed, comes to rest, and is
//! checked against the contract.
//!
//! Invariant: a round depends on its seed, except for the timing of its programs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use hive_history::{
    Answer, Decision, Delivery, Final, History, Op, QuestionState, ReminderState, State, Violation,
    check,
};
use hive_tests::rig::Rig;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::cast::{self, AGENTS, CALLED, CONSUMERS, GUEST, HARNESSED};
use super::dice::Dice;
use super::figures::Figures;
use super::guest::Host;
use super::killer::{Backup, Killer};
use super::last;
use super::perform::Carried;
use super::players::{self, Table};
use super::reads;
use super::tape::Tape;
use super::turns::Harness;
use super::voice::Voice;

/// Maximum duration of a round; a longer one hangs.
const ROUND_MAX: Duration = Duration::from_secs(120);
/// Maximum number of ready deliveries left for a real harness; the others are dropped.
const TURNS_LEFT: usize = 3;
/// Maximum number of checks for rest.
const LOOKS_MAX: usize = 400;

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) kills: u64,
    /// Programs with fail points; `None`: the plain ones, which die at random only.
    pub(crate) faults: Option<PathBuf>,
    /// The change made to the database when all is at rest, to check that it is found.
    pub(crate) tamper: Option<fn(&Path)>,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) figures: Figures,
    pub(crate) violations: Vec<Violation>,
    pub(crate) history: History,
    /// The rig that owns the hive's directory.
    pub(crate) rig: Rig,
}

/// All participants of a round, as long as it lasts.
struct Scene {
    killer: Killer,
    tape: Arc<Tape>,
    up: watch::Receiver<u64>,
    table: Arc<Table>,
    operator: Voice,
    agents: Vec<String>,
}

pub(crate) async fn play(plan: &Plan) -> anyhow::Result<Outcome> {
    let mut rig = Rig::new(cast::CONFIG);
    if let Some(dir) = &plan.faults {
        rig = rig.with_programs(dir);
    }
    let tape = Tape::new(cast::setting());
    let (sender, up) = watch::channel(0);
    let operator = Voice::new("operator", &rig.operator_socket(), &tape, &up);
    let mut killer =
        Killer::new(rig, &tape, sender, Dice::new(plan.seed, "killer"), plan.faults.clone());
    killer.set_operator(operator.clone());
    let agents = AGENTS.iter().chain([&GUEST]).map(|name| (*name).to_owned()).collect();
    let mut scene =
        Scene { killer, tape, up, table: Table::new(&AGENTS, plan.seed), operator, agents };
    let played = tokio::time::timeout(ROUND_MAX, scene.run(plan))
        .await
        .unwrap_or_else(|_| Err(anyhow!("the round does not end")));
    if let Err(error) = played {
        let dir = scene.killer.rig.keep();
        let history = scene.tape.copy();
        let (open, tail) = (history.open(), history.tail(60));
        let told = format!(
            "seed {}; the hive is kept in {}\nthe last of the history:\n{tail}calls without an end:\n{open}",
            plan.seed,
            dir.display()
        );
        return Err(error.context(told));
    }
    let (history, last) = (scene.tape.copy(), played?);
    let mut violations = check(&history, &last);
    violations.extend(scene.table.facts.violations(&last));
    let mut figures = std::mem::take(&mut scene.killer.figures);
    figures.take(&history, &last);
    for (rpc, count) in scene.table.facts.counts() {
        figures.add(&format!("rpc {rpc}"), count);
    }
    Ok(Outcome { figures, violations, history, rig: scene.killer.rig })
}

impl Scene {
    fn voice(&self, name: &str) -> Voice {
        Voice::new(name, &self.killer.rig.agent_socket(name), &self.tape, &self.up)
    }

    async fn run(&mut self, plan: &Plan) -> anyhow::Result<Final> {
        for name in AGENTS {
            std::fs::create_dir_all(self.killer.rig.path(format!("agents/{name}/state")))?;
        }
        self.killer.first().await?;
        for name in HARNESSED {
            self.killer.start_harness(name);
        }
        let mut number = 1;
        // A change of the database is to be found in all that happened.
        if plan.tamper.is_none() {
            // A backup, and kills before and after it that its restore takes back.
            let (harness, backup) = self.act(plan, number, plan.kills / 3, true).await?;
            drop(harness);
            if let Some(backup) = backup {
                self.killer.restore(&backup, &self.table.facts).await?;
            }
            self.table.open();
            number += 1;
        }
        let kills = plan.kills.saturating_sub(self.killer.figures.kills());
        let (mut harness, _) = self.act(plan, number, kills, false).await?;
        let mut last = self.rest(&mut harness).await?;
        self.killer.count_bridges().await?;
        if let Some(tamper) = plan.tamper {
            self.killer.restart_over(tamper).await?;
            last =
                last::read(&self.operator, &self.agents).await.context("the hive can be read")?;
        }
        Ok(last)
    }

    /// Lets all players act until this number of processes was killed, and then go home; with a
    /// backup until as many were killed again after it. Returns the harness made of calls.
    async fn act(
        &mut self,
        plan: &Plan,
        number: u64,
        kills: u64,
        with_backup: bool,
    ) -> anyhow::Result<(Harness, Option<Backup>)> {
        let mut players = JoinSet::new();
        let again = if number > 1 { " again" } else { "" };
        let dice = |player: &str| Dice::new(plan.seed, &format!("{player}{again}"));
        for name in CONSUMERS {
            let voice = self.voice(name);
            players.spawn(players::talk(
                voice.clone(),
                Arc::clone(&self.table),
                dice(&format!("{name} talks")),
            ));
            for worker in 0..2 {
                let dice = dice(&format!("{name} consumes {worker}"));
                players.spawn(players::consume(voice.clone(), Arc::clone(&self.table), dice));
            }
        }
        let harnessed = HARNESSED.iter().map(|name| (*name).to_owned()).collect();
        players.spawn(players::operate(
            self.operator.clone(),
            Arc::clone(&self.table),
            harnessed,
            dice("operator"),
        ));
        let mut host = Host::new(
            self.operator.clone(),
            self.voice(GUEST),
            CONSUMERS.map(|name| self.voice(name)).into(),
            Arc::clone(&self.table),
            dice("host"),
        );
        if number == 1 {
            // Before a backup can be made: it is restored for players who know the guest.
            host.create().await;
        }
        players.spawn(host.run());
        let mut harness = Harness::new(self.voice(CALLED), &self.table, dice("attachments"));
        let (table, turns) = (Arc::clone(&self.table), dice(CALLED));
        let called = tokio::spawn(async move {
            harness.run(table, turns).await;
            harness
        });
        let killed = self.kill_and_back_up(kills, with_backup, &mut players).await;
        self.table.close();
        if killed.is_err() {
            players.abort_all();
            called.abort();
        }
        let backup = killed?;
        while let Some(ended) = players.join_next().await {
            ended.context("a player gave up")?;
        }
        Ok((called.await.context("the harness of calls gave up")?, backup))
    }

    async fn kill_and_back_up(
        &mut self,
        kills: u64,
        with_backup: bool,
        players: &mut JoinSet<()>,
    ) -> anyhow::Result<Option<Backup>> {
        self.kill(kills, players).await?;
        if !with_backup {
            return Ok(None);
        }
        let backup = {
            // Its host goes on with the guest after the restore.
            let table = Arc::clone(&self.table);
            let _there = table.without_guest.lock().await;
            self.killer.back_up(&table.facts).await?
        };
        self.kill(kills, players).await?;
        Ok(Some(backup))
    }

    async fn kill(&mut self, kills: u64, players: &mut JoinSet<()>) -> anyhow::Result<()> {
        let start = self.killer.figures.kills();
        while self.killer.figures.kills() < start + kills {
            self.killer.step().await?;
            if let Some(ended) = players.try_join_next() {
                ended.context("a player gave up")?;
                bail!("a player went home early");
            }
        }
        Ok(())
    }

    /// Waits until everything is at rest, and reads the final state.
    async fn rest(&mut self, harness: &mut Harness) -> anyhow::Result<Final> {
        self.killer.calm().await;
        for _ in 0..LOOKS_MAX {
            self.withdraw().await?;
            for name in CONSUMERS.iter().chain([&GUEST]) {
                players::drain(&self.voice(name)).await;
            }
            harness.finish().await;
            // Watches from now on, so that no settlement during the read is missed.
            let settling = last::Settling::new(&self.operator).await;
            if last::restless(&self.operator, &self.agents).await == Some(0)
                && let Some(mut last) = last::read_still(&self.operator, &self.agents)
                    .await
                    .context("the hive can be read")?
            {
                let pending =
                    last.reminders.iter().any(|reminder| reminder.state == ReminderState::Pending);
                let ticking = last.questions.iter().any(|question| {
                    question.state == QuestionState::Open && question.deadline.is_some()
                });
                let waits = last.deliveries.iter().any(|delivery| {
                    delivery.agent != "operator"
                        && matches!(delivery.state, State::Ready | State::Leased)
                });
                if !pending && !ticking && !waits {
                    for voice in [self.operator.clone(), self.voice(CALLED)] {
                        reads::everything(&voice, &self.table).await;
                    }
                    last.at_rest = true;
                    return Ok(last);
                }
            }
            // A harness still works.
            settling.wait().await;
        }
        let mut left = Vec::new();
        let last =
            last::read(&self.operator, &self.agents).await.context("the hive can be read")?;
        for delivery in last.deliveries {
            if delivery.agent != "operator"
                && matches!(delivery.state, State::Ready | State::Leased)
            {
                left.push(format!(
                    "{} to {} is {:?}",
                    delivery.message, delivery.agent, delivery.state
                ));
            }
        }
        bail!("the hive does not come to rest; it has {left:?}");
    }

    /// Withdraws what would happen by itself later, and most of what would take real programs long.
    async fn withdraw(&self) -> anyhow::Result<()> {
        let now = last::read(&self.operator, &self.agents).await.context("the hive can be read")?;
        for reminder in
            now.reminders.iter().filter(|reminder| reminder.state == ReminderState::Pending)
        {
            self.operator
                .insist(&Op::CancelReminder { reminder: reminder.id }, &Carried::default())
                .await;
        }
        for name in HARNESSED {
            let waits =
                |delivery: &&Delivery| delivery.agent == name && delivery.state == State::Ready;
            for delivery in now.deliveries.iter().filter(waits).skip(TURNS_LEFT) {
                let op = Op::Decide {
                    agent: name.to_owned(),
                    message: delivery.message,
                    decision: Decision::Drop,
                };
                self.operator.insist(&op, &Carried::default()).await;
            }
        }
        for question in
            now.questions.iter().filter(|question| question.state == QuestionState::Open)
        {
            let answer = self
                .operator
                .insist(&Op::CancelQuestion { question: question.id }, &Carried::default())
                .await;
            debug_assert!(!matches!(answer, Answer::Unknown(_)), "one insists");
        }
        Ok(())
    }
}

/// Returns a report with everything that helps to understand the violations.
pub(crate) fn tell(plan: &Plan, outcome: &Outcome, kept: &Path) -> String {
    let mut text = format!("seed {}; the hive is kept in {}\n", plan.seed, kept.display());
    for violation in &outcome.violations {
        text.push_str(&format!("{violation}\n{}", outcome.history.lines(&violation.seen)));
    }
    text.push_str(&format!("the last of the history:\n{}", outcome.history.tail(40)));
    text
}
