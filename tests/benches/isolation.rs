//! Isolation: what a sandbox costs over none. Two hives of `hivectl up` side by side, of which one
//! states `sandbox` and the other `none`; every figure is the difference, or the ratio, of the two
//! in the same round.
//!
//! The real claude runs the turns; the scripted one runs shell tasks, of which one more costs
//! nothing else.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Instant;

use anyhow::Context as _;
use hive_proto::v1::{EventKind, HarnessState};
use hive_tests::claude;
use hive_tests::rig::{Client, Rig};
use hive_tests::scripted::script::{self, Rule, Step};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::report::Report;
use crate::sample::Sample;
use crate::{ROUNDS, servers};

/// Agents that are created in one round, at each level.
const STARTS: usize = 4;
/// Turns with the real claude in one round, at each level.
const TURNS: u32 = 10;
/// Shell tasks in one turn.
const TASKS: usize = 20;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let api = servers::model();
    let mut hives =
        [Hive::start("none", &api.url()).await?, Hive::start("sandbox", &api.url()).await?];
    let mut start = [Sample::default(), Sample::default()];
    let (mut task, mut cpu) = (start.clone(), start.clone());
    for round in 0..=ROUNDS {
        let mut used = [0.0; 2];
        for (place, hive) in hives.iter_mut().enumerate() {
            let (started, tasked) = (hive.starts(round).await, hive.tasks().await);
            // The first round fills caches.
            if round > 0 {
                start[place].push(started);
                task[place].push(tasked);
            }
            used[place] -= hive.cpu_millis();
        }
        // In turn, so that what drifts drifts for both.
        for _ in 0..TURNS {
            for hive in &hives {
                hive.turn().await;
            }
        }
        for (place, hive) in hives.iter().enumerate() {
            if round > 0 {
                cpu[place].push((used[place] + hive.cpu_millis()) / f64::from(TURNS));
            }
        }
    }
    let idle = hives.each_ref().map(Hive::idle_mib);
    for (what, unit, [none, sandbox], bound) in
        [("start of a harness", "ms", start, "40"), ("a shell task", "ms", task, "15")]
    {
        let more = sandbox.minus(&none);
        report.add("iso", &format!("{what}, none"), unit, none, None);
        report.add("iso", &format!("{what}, in a sandbox"), unit, sandbox, None);
        report.add("iso", &format!("{what}, in a sandbox over none"), unit, more, Some(bound));
    }
    let [none, sandbox] = cpu;
    let more = sandbox.over(&none);
    report.add("iso", "CPU of a turn, none", "ms", none, None);
    report.add("iso", "CPU of a turn, in a sandbox", "ms", sandbox, None);
    report.add("iso", "CPU of a turn, in a sandbox over none", "%", more, Some("3"));
    report.add(
        "iso",
        "memory of an idle agent, in a sandbox over none",
        "MiB",
        [idle[1] - idle[0]].into_iter().collect(),
        Some("1.5"),
    );
    for hive in hives {
        hive.end().await?;
    }
    Ok(())
}

/// A hive of `ada` with the real claude and `bob` with the scripted one.
struct Hive {
    rig: Rig,
    up: Child,
    operator: Client,
}

impl Hive {
    async fn start(level: &str, api: &str) -> anyhow::Result<Self> {
        let rig = Rig::unprivileged("");
        let real = rig.user_program(&claude::find()?, "bin/claude");
        let scripted = rig.path("bin/scripted-claude");
        let tasks = rig.path("grant/bob.json");
        rig.user_dir("grant");
        let run = |_| Step::Tool {
            tool: "run".to_owned(),
            input: json!({ "cmd": "true", "wait_seconds": 30 }),
        };
        script::write(
            &tasks,
            &[Rule { when: String::new(), steps: (0..TASKS).map(run).collect() }],
        )?;
        rig.give_away(&tasks);
        let env: BTreeMap<String, String> = claude::environment(&rig.path("unused"), api)
            .into_iter()
            .map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
            })
            .filter(|(name, _)| !["HOME", "PATH", "CLAUDE_CODE_TMPDIR"].contains(&name.as_str()))
            .collect();
        let env: Vec<String> =
            env.into_iter().map(|(name, value)| format!("{name} = \"{value}\"")).collect();
        // The hive has one claude program, so that program chooses by the agent.
        let choose = format!(
            "#!/bin/sh\nif [ -n \"$SCRIPTED_CLAUDE_FILE\" ]; then exec {} \"$@\"; fi\nexec {} \"$@\"\n",
            scripted.display(),
            real.display()
        );
        let choose = rig.user_file("bin/choose", &choose, 0o755);
        // Agents without grants then also see the whole directory.
        rig.user_file("bin/package.json", "{}", 0o644);
        let shown = "readable = [\"grant\", \"bin\"]\n";
        rig.configure(&format!(
            "[hive]\nisolation = \"{level}\"\n[broker]\nstate_dir = \"state\"\nruntime_dir = \"run\"\n[claude]\ncommand = \"{}\"\nenv = {{ {} }}\n\
             [agents.ada]\n{shown}[agents.bob]\n{shown}env = {{ SCRIPTED_CLAUDE_FILE = \"{}\" }}\n",
            choose.display(),
            env.join(", "),
            tasks.display()
        ));
        let mut command = rig.user_command(&rig.path("bin/hivectl"));
        command
            .args(["up", "--config", "hive.toml", "--state", "."])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut up = command.spawn()?;
        let mut lines = BufReader::new(up.stderr.take().context("a pipe")?).lines();
        let mut said = String::new();
        loop {
            let line = lines
                .next_line()
                .await?
                .with_context(|| format!("the hive does not come up:\n{said}"))?;
            said.push_str(&line);
            said.push('\n');
            if line.contains("Ctrl-C ends it.") {
                break;
            }
        }
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let operator = rig.operator().await;
        for agent in ["ada", "bob"] {
            operator.does(agent, HarnessState::Idle).await;
        }
        Ok(Self { rig, up, operator })
    }

    /// Milliseconds from the creation of an agent until its harness is there; the median.
    async fn starts(&self, round: usize) -> f64 {
        let mut sample = Sample::default();
        for number in 0..STARTS {
            let name = format!("eve-{round}-{number}");
            let mut watch = self.rig.watch_from_now().await;
            let start = Instant::now();
            let created = self.rig.hivectl(&["agent", "create", &name]).await;
            assert_eq!(created.code, 0, "{created:?}");
            watch.kind(&name, EventKind::HarnessAttached).await;
            sample.push(start.elapsed().as_secs_f64() * 1e3);
            let removed = self.rig.hivectl(&["agent", "retire", &name, "--purge", "--yes"]).await;
            assert_eq!(removed.code, 0, "{removed:?}");
        }
        sample.median()
    }

    /// Milliseconds of one shell task.
    async fn tasks(&self) -> f64 {
        let mut watch = self.rig.watch_from_now().await;
        self.operator.send("bob", "go").await;
        watch.kind("bob", EventKind::TurnBegun).await;
        let start = Instant::now();
        watch.kind("bob", EventKind::TurnEnded).await;
        #[expect(clippy::cast_precision_loss, reason = "a handful of tasks")]
        let each = start.elapsed().as_secs_f64() * 1e3 / TASKS as f64;
        each
    }

    /// A turn of the real claude.
    async fn turn(&self) {
        let mut watch = self.rig.watch_from_now().await;
        self.operator.send("ada", "Say that you are done.").await;
        watch.kind("ada", EventKind::TurnEnded).await;
    }

    /// Milliseconds of CPU that ada's harness and all that it has started used until now.
    fn cpu_millis(&self) -> f64 {
        let harness = self.rig.the_one("ada", "hive");
        (servers::cpu_micros(harness) + servers::children_cpu_micros(harness)) / 1e3
    }

    /// Memory of everything that runs for an idle agent, in MiB.
    fn idle_mib(&self) -> f64 {
        let of_agent = |pid: &Pid| {
            let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
                .unwrap_or_default();
            let name = std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()))
                .unwrap_or_default();
            matches!(name.trim(), "hive" | "bwrap") && !line.is_empty() && is_of(*pid, "ada")
        };
        hive_tests::rig::strays(self.rig.dir())
            .into_iter()
            .filter(of_agent)
            .map(servers::pss_mib)
            .sum()
    }

    async fn end(mut self) -> anyhow::Result<()> {
        let up =
            self.up.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).context("it runs")?;
        kill_process(up, Signal::INT)?;
        self.up.wait().await?;
        self.rig.end().await;
        Ok(())
    }
}

/// Whether a process belongs to an agent: bubblewrap names the agent's directories on its command
/// line, the harness has them in its environment.
fn is_of(pid: Pid, agent: &str) -> bool {
    let of = |file: &str| {
        std::fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default()
    };
    let text = String::from_utf8_lossy(&[of("cmdline"), of("environ")].concat()).into_owned();
    text.contains(&format!("agents/{agent}/home"))
}
