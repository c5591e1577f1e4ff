//! The killer: chooses which process dies next, when, and at which point.
//!
//! The broker dies either after a number of answers, counted from its start, or at a fail point of
//! a build that has them; harnesses likewise. Bridges and claudes die at a random moment, found by
//! their names among the processes of the hive's directory. Some brokers are drained, which does
//! not count as a kill; some of those are killed while they drain. Invariant: only processes of
//! this hive are killed.

mod restorer;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use hive_history::{Mark, Op};
use hive_proto::v1::BackupRequest;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_tests::rig::{HarnessOptions, PATIENCE, Rig};
use hive_tests::scripted::appear;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use super::cast::{self, HARNESSED};
use super::dice::Dice;
use super::figures::Figures;
use super::perform::Carried;
use super::tape::{Tape, wall_ms};
use super::voice::Voice;
use super::{last, sound};
pub(crate) use restorer::Backup;

/// Fail points of the broker, and the latest visit at which each may strike.
const BROKER_POINTS: [(&str, u64); 8] = [
    ("broker.commit.before", 40),
    ("broker.commit.after", 40),
    ("broker.replies.between", 40),
    ("broker.checkpoint.before", 1),
    ("broker.fold.before", 1),
    ("broker.spill.written", 1),
    ("broker.backup.copied", 1),
    ("broker.socket.bound", 1),
];
const HARNESS_POINTS: [&str; 5] = [
    "harness.begin.answered",
    "harness.claude.starting",
    "harness.claude.ended",
    "harness.end.leaving",
    "harness.end.answered",
];
const BRIDGE_POINTS: [&str; 2] = ["bridge.call.leaving", "bridge.call.answered"];

const BRIDGE: &str = "hive-mcp";

/// Maximum life of a broker that does not reach its fail point.
const POINT_PATIENCE: Duration = Duration::from_millis(400);
/// Maximum wait for a claude that waits in a call.
const CHILD_WAIT: Duration = Duration::from_millis(1_500);
/// Maximum wait for answers before the kill.
const LULL: Duration = Duration::from_millis(300);

/// The killer of a round, and the programs it kills.
pub(crate) struct Killer {
    pub(crate) rig: Rig,
    tape: Arc<Tape>,
    up: watch::Sender<u64>,
    dice: Dice,
    /// The directory of the programs with fail points.
    programs: Option<PathBuf>,
    /// Whether fail points are in use.
    faults: bool,
    brokers: u64,
    /// Lives of harnesses whose bridges have a fail point: agent, start, and end on the wall clock.
    bridge_lives: Vec<(String, i64, i64)>,
    calmed: bool,
    /// Whether each new broker's database is checked.
    looks: bool,
    operator: Option<Voice>,
    pub(crate) figures: Figures,
}

impl Killer {
    pub(crate) fn new(
        rig: Rig,
        tape: &Arc<Tape>,
        up: watch::Sender<u64>,
        dice: Dice,
        programs: Option<PathBuf>,
    ) -> Self {
        Self {
            rig,
            tape: Arc::clone(tape),
            up,
            dice,
            faults: programs.is_some(),
            programs,
            brokers: 0,
            bridge_lives: Vec::new(),
            calmed: false,
            looks: true,
            operator: None,
            figures: Figures::default(),
        }
    }

    /// Sets the client that makes the backups during which a broker dies.
    pub(crate) fn set_operator(&mut self, operator: Voice) {
        self.operator = Some(operator);
    }

    /// Starts the hive's first broker, which may die while it creates its database.
    pub(crate) async fn first(&mut self) -> anyhow::Result<()> {
        if self.faults && self.dice.chance(30) {
            if self.start_at(Some(("broker.open.migrated", 1))).await? {
                bail!("the first broker made no database");
            }
            self.figures.count("kill broker at broker.open.migrated");
        }
        self.start().await
    }

    /// Starts the broker again over a database that was changed in the meantime.
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

    /// Starts a broker, perhaps with a fail point; returns whether it came up.
    async fn start_at(&mut self, point: Option<(&str, u64)>) -> anyhow::Result<bool> {
        let mut command = self.rig.broker_command();
        // Long reminders are stored as files there.
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
        let now = wall_ms();
        self.bridge_lives
            .iter_mut()
            .filter(|(agent, _, to)| agent == name && *to > now)
            .for_each(|(_, _, to)| *to = now);
        let waits = (!self.calmed).then(|| self.waits(name));
        let mut options =
            HarnessOptions { rules: cast::script(waits.as_deref()), ..HarnessOptions::default() };
        options.env.insert("HIVE_LOG".to_owned(), "info".to_owned());
        if let Some(dir) = &self.programs {
            options.claude = dir.join("scripted-claude");
        }
        if self.faults {
            let visit = 1 + self.dice.below(3);
            if self.dice.chance(60) {
                let point = format!("{}:{visit}", self.dice.pick(&HARNESS_POINTS));
                options.env.insert("HIVE_FAIL_POINT".to_owned(), point);
            } else if self.dice.chance(30)
                && let Some(dir) = &self.programs
            {
                // A bridge's environment is made from an allow-list, so a wrapper program sets its
                // fail point.
                let program = self.rig.path(format!("{name}.bridge"));
                let (point, real) = (self.dice.pick(&BRIDGE_POINTS), dir.join(BRIDGE));
                let text = format!(
                    "#!/bin/sh\nHIVE_FAIL_POINT={point}:{visit} exec '{}' \"$@\"\n",
                    real.display()
                );
                write_program(&program, &text);
                options.env.insert("HIVE_MCP".to_owned(), program.display().to_string());
                self.bridge_lives.push((name.to_owned(), now, i64::MAX));
            }
        }
        self.rig.start_harness_with(name, &options);
    }

    /// Ends all killing: harnesses with a fail point are started again without it.
    pub(crate) async fn calm(&mut self) {
        self.faults = false;
        let first = !self.calmed;
        self.calmed = true;
        for name in HARNESSED {
            if first {
                self.tape.mark(Mark::Detached { agent: name.to_owned() });
                if self.rig.harness_ended(name).is_none() {
                    self.rig.kill_harness(name).await;
                }
                self.start_harness(name);
            }
        }
    }

    /// Counts the bridges that reached their fail point: the claude of each gets an error.
    pub(crate) async fn count_bridges(&mut self) -> anyhow::Result<()> {
        let Some(operator) = self.operator.clone() else { return Ok(()) };
        let cut =
            last::cut_calls(&operator, &self.bridge_lives).await.context("turns can be read")?;
        self.figures.add("kill bridge at a fail point", cut);
        Ok(())
    }

    /// Kills one process.
    pub(crate) async fn step(&mut self) -> anyhow::Result<()> {
        self.bury();
        let throw = self.dice.below(100);
        let dead = match throw {
            0..9 => {
                self.harness().await;
                true
            }
            9..21 => self.child(BRIDGE, "bridge").await,
            21..33 => self.child("scripted-claude", "claude").await,
            33..38 => {
                self.drain().await?;
                true
            }
            _ => false,
        };
        if !dead {
            self.broker().await?;
        }
        Ok(())
    }

    /// Starts the harnesses again that reached their fail point.
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

    /// Returns the file that an agent's claude creates when it begins to wait in a call.
    fn waits(&self, agent: &str) -> PathBuf {
        self.rig.path(format!("{agent}.waits"))
    }

    /// Kills a process by its program, if there is one now or soon.
    async fn child(&mut self, program: &str, kind: &str) -> bool {
        // Bridges with a fail point are excluded, so that each death has one known place.
        let pointed = |agent: &&str| {
            self.bridge_lives.iter().any(|(whose, _, to)| whose == agent && *to == i64::MAX)
        };
        let agents: Vec<&str> =
            HARNESSED.into_iter().filter(|agent| program != BRIDGE || !pointed(agent)).collect();
        if agents.is_empty()
            || (self.dice.chance(50) && self.kill_one(&agents, program, kind, "at random"))
        {
            return !agents.is_empty();
        }
        let agent = *self.dice.pick(&agents);
        let waits = self.waits(agent);
        if !waits.exists() || self.rig.running(agent, program).is_empty() {
            // The file of an earlier claude, if there was one.
            drop(std::fs::remove_file(&waits));
            if let Some(operator) = &self.operator {
                // A question is served before the mail that waits.
                let text = format!("{} {} of operator", cast::BAIT, self.figures.get("baits"));
                let (target, effect) = (agent.to_owned(), String::new());
                let op = Op::Ask { target, text, effect, ttl_ms: 0, turn: 0 };
                operator.insist(&op, &Carried::default()).await;
                self.figures.count("baits");
            }
            drop(tokio::time::timeout(CHILD_WAIT, appear::wait(&waits)).await);
        }
        let killed = self.kill_one(&[agent], program, kind, "in a call");
        drop(std::fs::remove_file(&waits));
        killed
    }

    fn kill_one(&mut self, agents: &[&str], program: &str, kind: &str, when: &str) -> bool {
        let running = agents.iter().flat_map(|agent| self.rig.running(agent, program));
        let pids: Vec<Pid> = running.filter(|pid| !runs_commands(*pid)).collect();
        // The process may end by itself just then.
        let killed = !pids.is_empty() && kill_process(*self.dice.pick(&pids), Signal::KILL).is_ok();
        if killed {
            self.figures.count(&format!("kill {kind} {when}"));
        }
        killed
    }

    /// Drains the running broker during its work, and starts another; some are killed while they
    /// drain.
    async fn drain(&mut self) -> anyhow::Result<()> {
        let after = self.dice.below(12);
        self.wait_for_answers(after).await;
        let by_call = self.operator.clone().filter(|_| self.dice.chance(50));
        self.down();
        let how = if let Some(operator) = by_call {
            operator
                .once(
                    "",
                    &Op::Other { rpc: "Drain".to_owned(), content: String::new() },
                    &Carried::default(),
                )
                .await;
            "by Drain"
        } else {
            self.rig.broker().signal(Signal::TERM);
            "by SIGTERM"
        };
        if self.dice.chance(30) {
            self.rig.kill_broker().await;
            self.figures.count("kill broker while it drains");
        } else {
            match tokio::time::timeout(PATIENCE, self.rig.broker_ended()).await {
                Ok(status) if status.success() => {
                    self.figures.count(&format!("drained broker {how}"));
                }
                Ok(status) => {
                    bail!("hived was drained {how}, and ended with {status}: {}", self.rig.logs())
                }
                Err(_) => bail!("hived was drained {how}, and does not end: {}", self.rig.logs()),
            }
        }
        self.start().await
    }

    /// Kills the running broker, and starts another.
    async fn broker(&mut self) -> anyhow::Result<()> {
        // Many die young: a broker first repairs what the one before left.
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

    /// Waits for a broker to die at its fail point, if it reaches it.
    async fn at_point(&mut self, name: &str, visit: u64) -> anyhow::Result<()> {
        if self.start_at(Some((name, visit))).await? {
            let backup = self.operator.clone().filter(|_| name == "broker.backup.copied");
            let backing_up = tokio::spawn(async move {
                if let Some(operator) = backup
                    && let Ok(stream) =
                        AdminServiceClient::new(operator.channel()).backup(BackupRequest {}).await
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
        // If no calls are answered, it dies anyway.
        drop(tokio::time::timeout(LULL, answers.wait_for(|seen| *seen >= goal)).await);
    }
}

/// Returns whether a process is the server for shell commands, which is the bridge's program too.
fn runs_commands(pid: Pid) -> bool {
    let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    line.ends_with(b"\0bash\0")
}

/// Writes a program that can be run at once: a file still open for writing cannot.
fn write_program(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).expect("a program is written");
    std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755))
        .expect("it may be run");
    std::fs::rename(&beside, path).expect("it takes its place");
}
