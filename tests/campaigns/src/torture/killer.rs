//! The killer: who dies next, when, and where.
//!
//! The broker dies either after so many answers, counted from its start, or at a fail point of a build that has them; harnesses likewise;
//! bridges and claudes at a random moment, found by their names among the processes of the hive's directory. Invariant: only processes of
//! this hive are killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use hive_history::Mark;
use hive_proto::v1::BackupRequest;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_tests::rig::{HarnessOptions, Rig, strays};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use super::cast::{self, HARNESSED};
use super::dice::Dice;
use super::figures::Figures;
use super::sound;
use super::tape::Tape;
use super::voice::Voice;

/// Fail points of the broker, and how late in its life they may be.
const BROKER_POINTS: [(&str, u64); 7] = [
    ("broker.commit.before", 40),
    ("broker.commit.after", 40),
    ("broker.replies.between", 40),
    ("broker.checkpoint.before", 1),
    ("broker.spill.written", 1),
    ("broker.backup.copied", 1),
    ("broker.socket.bound", 1),
];
/// Fail points of the harness.
const HARNESS_POINTS: [&str; 5] =
    ["harness.begin.answered", "harness.claude.starting", "harness.claude.ended", "harness.end.leaving", "harness.end.answered"];
/// Fail points of the bridge.
const BRIDGE_POINTS: [&str; 2] = ["bridge.call.leaving", "bridge.call.answered"];

/// So long a broker may live without coming to its fail point.
const POINT_PATIENCE: Duration = Duration::from_millis(400);
/// So long one waits for answers before killing all the same.
const LULL: Duration = Duration::from_millis(300);

/// Who kills, and what is killed.
pub(crate) struct Killer {
    pub(crate) rig: Rig,
    tape: Arc<Tape>,
    up: watch::Sender<u64>,
    dice: Dice,
    /// Where programs with fail points are.
    programs: Option<PathBuf>,
    /// Whether somebody may die at one.
    faults: bool,
    brokers: u64,
    /// Nobody dies any more.
    calmed: bool,
    /// Whether each new broker's database is looked at.
    looks: bool,
    operator: Option<Voice>,
    pub(crate) figures: Figures,
}

impl Killer {
    pub(crate) fn new(rig: Rig, tape: &Arc<Tape>, up: watch::Sender<u64>, dice: Dice, programs: Option<PathBuf>) -> Self {
        Self {
            rig,
            tape: Arc::clone(tape),
            up,
            dice,
            faults: programs.is_some(),
            programs,
            brokers: 0,
            calmed: false,
            looks: true,
            operator: None,
            figures: Figures::default(),
        }
    }

    /// Who makes the backups in which a broker dies.
    pub(crate) fn set_operator(&mut self, operator: Voice) {
        self.operator = Some(operator);
    }

    /// Starts the hive's first broker, which may die as it makes its database.
    pub(crate) async fn first(&mut self) -> anyhow::Result<()> {
        if self.faults && self.dice.chance(30) {
            if self.start_at(Some(("broker.open.migrated", 1))).await? {
                bail!("the first broker made no database");
            }
            self.figures.count("kill broker at broker.open.migrated");
        }
        self.start().await
    }

    /// Starts the broker again over a database that somebody has changed meanwhile.
    pub(crate) async fn restart_over(&mut self, change: fn(&Path)) -> anyhow::Result<()> {
        self.down();
        self.rig.kill_broker().await;
        change(&sound::database(&self.rig.path("state"))?);
        self.looks = false;
        self.start().await
    }

    /// Starts a broker without a plan to kill it.
    pub(crate) async fn start(&mut self) -> anyhow::Result<()> {
        if self.start_at(None).await? {
            return Ok(());
        }
        bail!("the broker does not start: {}", self.rig.logs());
    }

    /// Starts a broker, perhaps with a fail point; whether it came up.
    async fn start_at(&mut self, point: Option<(&str, u64)>) -> anyhow::Result<bool> {
        let mut command = self.rig.broker_command();
        // Long reminders become files there.
        command.env("HIVE_LOG", "info").arg("--agents-dir").arg(self.rig.path("agents"));
        if let Some((name, visit)) = point {
            command.env("HIVE_FAIL_POINT", format!("{name}:{visit}"));
        }
        self.figures.count("broker starts");
        if let Err(status) = self.rig.try_start_broker_by(command).await {
            if point.is_none() {
                bail!("hived ended with {status}: {}", self.rig.logs());
            }
            return Ok(false);
        }
        self.brokers += 1;
        self.tape.mark(Mark::BrokerReady);
        self.up.send_replace(self.brokers);
        if self.looks {
            let sound = sound::check(&self.rig.path("state")).await;
            sound.with_context(|| format!("after start {} of the broker", self.brokers))?;
        }
        Ok(true)
    }

    pub(crate) fn start_harness(&mut self, name: &str) {
        let mut options = HarnessOptions { rules: cast::script(), ..HarnessOptions::default() };
        options.env.insert("HIVE_LOG".to_owned(), "info".to_owned());
        if let Some(dir) = &self.programs {
            options.claude = dir.join("scripted-claude");
        }
        if self.faults {
            let visit = 1 + self.dice.below(4);
            if self.dice.chance(50) {
                let point = format!("{}:{visit}", self.dice.pick(&HARNESS_POINTS));
                options.env.insert("HIVE_FAIL_POINT".to_owned(), point);
            } else if self.dice.chance(20) {
                let point = format!("{}:{visit}", self.dice.pick(&BRIDGE_POINTS));
                options.claude_env.insert("HIVE_FAIL_POINT".to_owned(), point);
            }
        }
        self.rig.start_harness_with(name, &options);
    }

    /// From now on nobody dies: who had a fail point is started without.
    pub(crate) async fn calm(&mut self) {
        self.faults = false;
        for name in HARNESSED {
            if !self.calmed {
                self.tape.mark(Mark::Detached { agent: name.to_owned() });
                if self.rig.harness_ended(name).is_none() {
                    self.rig.kill_harness(name).await;
                }
                self.start_harness(name);
            }
        }
        self.calmed = true;
    }

    /// Kills somebody.
    pub(crate) async fn step(&mut self) -> anyhow::Result<()> {
        self.bury();
        let dead = match self.dice.below(100) {
            0..6 => {
                self.harness().await;
                true
            }
            6..18 => self.child("hive-mcp", "bridge"),
            18..30 => self.child("scripted-claude", "claude"),
            _ => false,
        };
        if !dead {
            self.broker().await?;
        }
        Ok(())
    }

    /// Starts those again who came to their fail point.
    fn bury(&mut self) {
        for name in HARNESSED {
            if self.rig.harness_ended(name).is_some() {
                self.tape.mark(Mark::Detached { agent: name.to_owned() });
                self.figures.count("kill harness at a fail point");
                self.start_harness(name);
            }
        }
    }

    async fn harness(&mut self) {
        let name = *self.dice.pick(&HARNESSED);
        self.tape.mark(Mark::Detached { agent: name.to_owned() });
        self.rig.kill_harness(name).await;
        self.figures.count("kill harness at random");
        self.start_harness(name);
    }

    /// Kills a process by its program, if there is one just now.
    fn child(&mut self, program: &str, kind: &str) -> bool {
        let named = |pid: &Pid| {
            let comm = std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).unwrap_or_default();
            comm.trim_end() == program
        };
        let pids: Vec<Pid> = strays(&self.rig.path("")).into_iter().filter(named).collect();
        // It may end by itself just then.
        let killed = !pids.is_empty() && kill_process(*self.dice.pick(&pids), Signal::KILL).is_ok();
        if killed {
            self.figures.count(&format!("kill {kind} at random"));
        }
        killed
    }

    /// Lets the running broker die, and starts another.
    async fn broker(&mut self) -> anyhow::Result<()> {
        // Many die young: what a broker does first is repairing what the one before left.
        let span = *self.dice.pick(&[1, 4, 12, 40]);
        let after = self.dice.below(span);
        self.wait_for_answers(after).await;
        self.down();
        self.rig.kill_broker().await;
        self.figures.count("kill broker at random");
        if self.faults && self.dice.chance(40) {
            let (name, visits) = *self.dice.pick(&BROKER_POINTS);
            let visit = 1 + self.dice.below(visits);
            self.at_point(name, visit).await?;
        }
        self.start().await
    }

    fn down(&mut self) {
        self.tape.mark(Mark::BrokerDown);
        self.up.send_replace(0);
    }

    /// A broker that dies at its fail point, if it comes there.
    async fn at_point(&mut self, name: &str, visit: u64) -> anyhow::Result<()> {
        if self.start_at(Some((name, visit))).await? {
            let backup = self.operator.clone().filter(|_| name == "broker.backup.copied");
            let backing_up = tokio::spawn(async move {
                if let Some(operator) = backup
                    && let Ok(stream) = AdminServiceClient::new(operator.channel()).backup(BackupRequest {}).await
                {
                    let mut stream = stream.into_inner();
                    while let Ok(Some(_)) = stream.message().await {}
                }
            });
            let died = tokio::time::timeout(POINT_PATIENCE, self.rig.broker_ended()).await.is_ok();
            self.down();
            backing_up.abort();
            if !died {
                self.rig.kill_broker().await;
                self.figures.count("kill broker at random");
                return Ok(());
            }
        }
        self.figures.count(&format!("kill broker at {name}"));
        Ok(())
    }

    async fn wait_for_answers(&mut self, count: u64) {
        let mut answers = self.tape.answers();
        let goal = *answers.borrow() + count;
        // Where nobody has anything to say it dies all the same.
        drop(tokio::time::timeout(LULL, answers.wait_for(|seen| *seen >= goal)).await);
    }
}
