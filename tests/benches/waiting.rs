//! What waits: schedules that are due tomorrow, and agents that run on demand.
//!
//! An idle hive with many of both is measured beside one that has the same agents and nothing that
//! waits; each round has fresh brokers that were started again after the schedules were made. Then
//! the time from mail for an agent on demand until its harness is attached is compared with that of
//! a start by the operator, in a hive of `hivectl up`.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::event::Facts;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::{
    AskQuestionRequest, CreateScheduleEffect, Effect, EventKind, HarnessLoss, HarnessState,
    StartAgentRequest, effect,
};
use hive_tests::rig::{Client, Rig, Watch, fresh_id, to};
use hive_tests::scripted::script::{self, Rule, Step};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;

use crate::report::{Bounds, Report};
use crate::rounds::{number, rounds};
use crate::sample::Sample;
use crate::servers;

/// Schedules, and agents on demand.
const WAITING: usize = 10_000;
/// Agents that have a socket each under the usual hard limit of open files, 20,000.
const AGENTS_MAX: usize = 9_500;
/// Time over which the CPU of an idle broker is measured.
const IDLE: Duration = Duration::from_secs(10);
/// CPU of a broker that has ended what its start began, in such a time.
const REST_MICROS: f64 = 100_000.0;
/// Starts of a harness, of each kind.
const STARTS: usize = 20;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let waiting = number("HIVE_BENCH_WAITING").unwrap_or(WAITING);
    let (mut more, mut cpu, mut plain) = <(Sample, Sample, Sample)>::default();
    for round in 0..rounds() {
        crate::progress(&format!("waiting: round {}, {waiting} schedules and agents", round + 1));
        let (without, cpu_without) = idle(waiting, false).await?;
        let (with, cpu_with) = idle(waiting, true).await?;
        more.push(with - without);
        cpu.push(cpu_with);
        plain.push(cpu_without);
    }
    let what = format!("{waiting} schedules and agents on demand");
    report.add("waiting", &format!("idle CPU per second, {waiting} agents"), "ms", plain, None);
    let bounds = Some(Bounds::most_with_target(1.0, 0.0));
    report.figure("waiting", &format!("idle CPU per second, {what}"), "ms", cpu, bounds);
    let bounds = Some(Bounds::most_with_target(4.0, 2.0));
    report.figure("waiting", &format!("more PSS, {what}"), "MiB", more, bounds);
    starts(report).await
}

/// Returns the memory of an idle broker in MiB, and its CPU in milliseconds per second.
async fn idle(waiting: usize, with_waiting: bool) -> anyhow::Result<(f64, f64)> {
    let agents = waiting.min(AGENTS_MAX);
    let on_demand = if with_waiting { "on_demand = true\n" } else { "" };
    let mut config = concat!(
        "[hive]\nname = \"bench\"\n[broker.limits]\nschedules_max = 100000\nsends_per_minute_max = 1000000\n",
        "[agents.owner]\ntool_groups = [\"messaging\", \"inbox\", \"scheduling\"]\ngrants = [\"own_schedules\"]\n"
    )
    .to_owned();
    for agent in 0..agents {
        write!(config, "[agents.a{agent}]\n{on_demand}")?;
    }
    let mut rig = Rig::new_in(&config, &hive_tests::binary::workspace().join("target"));
    rig.start_broker().await;
    if with_waiting {
        schedules(&rig.agent("owner").await, waiting, agents).await?;
    }
    rig.stop_broker().await;
    rig.start_broker().await;
    let pid = rig.broker().pid();
    // What a start does is not what an idle broker does, and the time of a thread that ends is no
    // longer counted.
    let mut used = f64::NAN;
    let cpu = loop {
        tokio::time::sleep(IDLE).await;
        let (before, now) = (used, servers::cpu_micros(pid));
        used = now;
        if now >= before && now - before < REST_MICROS {
            break (now - before) / 1e3 / IDLE.as_secs_f64();
        }
    };
    let pss = servers::pss_mib(pid);
    rig.end().await;
    Ok((pss, cpu))
}

/// Has schedules created that are due tomorrow, for these agents in turn.
async fn schedules(owner: &Client, count: usize, agents: usize) -> anyhow::Result<()> {
    let day = 24 * 3600;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs();
    let first = i64::try_from(now)? + day;
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..count {
        let create = CreateScheduleEffect {
            body: "Look whether anything is to be done, and report it.".to_owned(),
            targets: vec![format!("a{}", number % agents)],
            first_time: Some(prost_types::Timestamp { seconds: first, nanos: 0 }),
            interval: Some(prost_types::Duration { seconds: day, nanos: 0 }),
            zone: "Europe/Berlin".to_owned(),
            ..CreateScheduleEffect::default()
        };
        let request = AskQuestionRequest {
            request_id: fresh_id(),
            to: to("operator"),
            text: "it is measured".to_owned(),
            effect: Some(Effect { effect: Some(effect::Effect::CreateSchedule(create)) }),
            ..AskQuestionRequest::default()
        };
        let mut questions = QuestionServiceClient::new(owner.channel());
        asked.spawn(async move { questions.ask_question(request).await });
        if asked.len() == 16 || number + 1 == count {
            while let Some(answer) = asked.join_next().await {
                answer??;
            }
        }
    }
    Ok(())
}

/// Compares starts of a harness: by mail, and by the operator.
async fn starts(report: &mut Report) -> anyhow::Result<()> {
    let hive = Hive::start().await?;
    let (mut by_mail, mut by_hand) = (Sample::default(), Sample::default());
    for number in 0..=STARTS {
        crate::progress(&format!("waiting: start {number} of {STARTS}"));
        let (mail, hand) = (hive.by_mail().await, hive.by_hand().await);
        // The first start fills caches.
        if number > 0 {
            by_mail.push(mail);
            by_hand.push(hand);
        }
    }
    hive.end().await?;
    let ratio = by_mail.per(&by_hand);
    report.add("waiting", "start of a harness by hand", "ms", by_hand, None);
    report.add("waiting", "mail until the harness on demand is attached", "ms", by_mail, None);
    let bounds = Some(Bounds::most_with_target(1.3, 1.1));
    report.figure("waiting", "harness on demand / by hand", "", ratio, bounds);
    Ok(())
}

/// A hive of `hivectl up` with `ada` on demand and `bob` as always, on the scripted claude.
struct Hive {
    rig: Rig,
    up: Child,
    operator: Client,
}

impl Hive {
    async fn start() -> anyhow::Result<Self> {
        let rig = Rig::unprivileged("");
        let rules = rig.path("rules.json");
        let done = Step::Text { text: "Done.".to_owned() };
        script::write(&rules, &[Rule { when: String::new(), steps: vec![done] }])?;
        rig.give_away(&rules);
        let env = format!("env = {{ SCRIPTED_CLAUDE_FILE = \"{}\" }}\n", rules.display());
        rig.configure(&format!(
            "[hive]\nisolation = \"none\"\n[broker]\nstate_dir = \"state\"\nruntime_dir = \"run\"\n[broker.limits]\non_demand_idle_ms = 100\n\
             [claude]\ncommand = \"{}\"\n[agents.ada]\non_demand = true\n{env}[agents.bob]\n{env}",
            rig.path("bin/scripted-claude").display()
        ));
        let mut command = rig.user_command(&rig.path("bin/hivectl"));
        command
            .args(["up", "--config", "hive.toml", "--state", "."])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut up = command.spawn()?;
        let mut lines = BufReader::new(up.stderr.take().context("a pipe")?).lines();
        loop {
            let line = lines.next_line().await?.context("the hive does not come up")?;
            if line.contains("Ctrl-C ends it.") {
                break;
            }
        }
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let operator = rig.operator().await;
        operator.does("bob", HarnessState::Idle).await;
        Ok(Self { rig, up, operator })
    }

    /// Milliseconds from mail for ada until its harness is attached; then it leaves.
    async fn by_mail(&self) -> f64 {
        let mut watch = self.rig.watch_from_now().await;
        let start = Instant::now();
        self.operator.send("ada", "go").await;
        watch.kind("ada", EventKind::HarnessAttached).await;
        let took = start.elapsed().as_secs_f64() * 1e3;
        left(&mut watch, "ada").await;
        self.operator.does("ada", HarnessState::Offline).await;
        took
    }

    /// Milliseconds from the operator's start of bob until its harness is attached.
    async fn by_hand(&self) -> f64 {
        self.done(&["agent", "stop", "bob"]).await;
        self.operator.does("bob", HarnessState::Stopped).await;
        let mut watch = self.rig.watch_from_now().await;
        let start = Instant::now();
        let start_bob = StartAgentRequest {
            request_id: fresh_id(),
            name: "bob".to_owned(),
            ..StartAgentRequest::default()
        };
        let started = AdminServiceClient::new(self.operator.channel()).start_agent(start_bob).await;
        started.expect("bob is started");
        watch.kind("bob", EventKind::HarnessAttached).await;
        start.elapsed().as_secs_f64() * 1e3
    }

    async fn done(&self, args: &[&str]) {
        let said = self.rig.hivectl(args).await;
        assert_eq!(said.code, 0, "{args:?}: {said:?}");
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

/// Waits until the harness of an agent on demand has left.
async fn left(watch: &mut Watch, agent: &str) {
    watch
        .until("the harness leaves", |event| {
            let Some(Facts::HarnessLost(lost)) = &event.facts else { return false };
            event.agent == agent && lost.loss() == HarnessLoss::Left
        })
        .await;
}
