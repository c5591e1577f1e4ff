//! W6, resident: the same turn in a claude that stays, next to that same claude without Hive around
//! it; and what staying costs in memory.

use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use anyhow::Context as _;
use hive_proto::v1::EventKind;
use hive_tests::claude;
use hive_tests::rig::{HarnessOptions, Rig};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::report::{Bounds, Report};
use crate::sample::Sample;
use crate::{ROUNDS, servers};

/// Turns of one round, of each.
const TURNS: usize = 10;
const PROMPT: &str = "Say that you are done.";

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let cli = claude::find()?;
    let api = servers::model();
    let mut rig = servers::broker(2).await?;
    let home = rig.path("agents/a0/home");
    std::fs::create_dir_all(home.join("tmp"))?;
    let claude_env = claude::further_environment(&home, &api.url());
    let env = [("HIVE_PROCESS".to_owned(), "resident".to_owned())].into_iter().collect();
    let options =
        HarnessOptions { claude: cli.clone(), claude_env, env, ..HarnessOptions::default() };
    let key = rig.start_harness_with("a0", &options);
    turn(&mut rig).await;
    let mut bare = Bare::start(&rig, &cli, &home, &api.url()).await?;
    bare.turn().await?;

    let (mut ours, mut alone, mut ratio, mut ours_cpu) =
        <(Sample, Sample, Sample, Sample)>::default();
    for _ in 0..ROUNDS {
        let (harness, broker) = (rig.harness(&key).pid(), rig.broker().pid());
        let before = servers::cpu_micros(harness) + servers::cpu_micros(broker);
        let (mut hive_round, mut bare_round) = <(Sample, Sample)>::default();
        for _ in 0..TURNS {
            hive_round.push(turn(&mut rig).await);
            bare_round.push(bare.turn().await?);
        }
        #[expect(clippy::cast_precision_loss, reason = "a handful of turns")]
        ours_cpu.push(
            (servers::cpu_micros(harness) + servers::cpu_micros(broker) - before)
                / TURNS as f64
                / 1000.0,
        );
        ratio.push(hive_round.median() / bare_round.median());
        ours.push(hive_round.median());
        alone.push(bare_round.median());
    }
    let harness = rig.harness(&key).pid();
    report.add("W6", "resident: wake to settled", "ms", ours, None);
    report.add("W6", "resident: the same claude without Hive, line to result", "ms", alone, None);
    let bounds = Bounds::most(1.15, 1.1, 1.05);
    report.figure("W6", "resident: ratio of the two", "x", ratio, Some(bounds));
    report.add("W6", "resident: CPU of harness and broker per turn", "ms", ours_cpu, None);
    report.add(
        "W6",
        "resident: memory of an idle claude with its MCP servers",
        "MiB",
        servers::family_pss_mib(harness),
        None,
    );
    report.add(
        "W6",
        "memory of an idle hive serve",
        "MiB",
        [servers::pss_mib(harness)].into_iter().collect(),
        Some("12"),
    );
    bare.end().await?;
    rig.stop_harness(&key).await;
    rig.stop_broker().await;
    Ok(())
}

/// Runs a turn; returns its duration in milliseconds.
async fn turn(rig: &mut Rig) -> f64 {
    let mut watch = rig.watch_from_now().await;
    let operator = rig.operator().await;
    let start = Instant::now();
    operator.send("a0", PROMPT).await;
    watch.kind("a0", EventKind::TurnEnded).await;
    start.elapsed().as_secs_f64() * 1e3
}

/// A resident claude without a harness or turns, but with the same files and servers. Its tools act
/// for an agent without a harness.
struct Bare {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Bare {
    async fn start(rig: &Rig, cli: &Path, home_of_hive: &Path, api: &str) -> anyhow::Result<Self> {
        let home = rig.path("bare");
        let state = home.join("state");
        std::fs::create_dir_all(&state)?;
        std::fs::create_dir_all(home.join("tmp"))?;
        let files = home_of_hive.join(".hive");
        let mut mcp: Value =
            serde_json::from_str(&std::fs::read_to_string(files.join("claude-mcp-config.json"))?)?;
        let environment = mcp["mcpServers"]["hive"]["env"]
            .as_object_mut()
            .context("the bridge has an environment")?;
        environment.insert("HIVE_SOCKET".into(), json!(rig.agent_socket("a1")));
        environment.remove("HIVE_PROCESS_TOKEN");
        let mcp_config = home.join("mcp.json");
        std::fs::write(&mcp_config, mcp.to_string())?;
        let servers = [
            "mcp__hive__*".to_owned(),
            "mcp__bash__run".to_owned(),
            "mcp__bash__status".to_owned(),
        ];
        let arguments = hive_harness::claude::command_line::arguments(
            &hive_harness::claude::command_line::Invocation {
                model: "haiku",
                continues: true,
                resident: true,
                settings: &files.join("claude-settings.json"),
                system_prompt: &files.join("claude-system-prompt.md"),
                mcp_config: &mcp_config,
                mcp_tools: &servers,
                further_dirs: &[],
                tool_groups: &[],
            },
        );
        let mut child = Command::new(cli)
            .args(arguments)
            .env_clear()
            .envs(claude::environment(&home, api))
            .env("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1")
            .current_dir(state)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().context("a pipe")?;
        let lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
        Ok(Self { child, stdin, lines })
    }

    /// Runs a turn; returns its duration in milliseconds.
    async fn turn(&mut self) -> anyhow::Result<f64> {
        let line = json!({"type": "user", "message": {"role": "user", "content": PROMPT}});
        let start = Instant::now();
        self.stdin.write_all(format!("{line}\n").as_bytes()).await?;
        loop {
            let line = self.lines.next_line().await?.context("claude ended")?;
            let event: Value = serde_json::from_str(&line)?;
            if event["type"] == "result" {
                anyhow::ensure!(event["is_error"] == false, "{line}");
                return Ok(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }

    async fn end(self) -> anyhow::Result<()> {
        let Self { mut child, stdin, .. } = self;
        drop(stdin);
        child.wait().await?;
        Ok(())
    }
}
