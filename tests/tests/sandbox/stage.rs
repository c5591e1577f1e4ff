//! A hive under `hivectl up`, run by a user without rights, with the probe beside claude.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use hive_proto::v1::HarnessState;
use hive_tests::rig::{QUICK_LIMITS, Rig, host, soon, strays};
use hive_tests::sandbox_probe::Targets;
use hive_tests::scripted::script::{self, Rule, Step};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// A value in claude's environment in the place of its key.
pub(crate) const KEY: &str = "key-of-claude-2f9c";

/// A hive that `hivectl up` may have been started for.
pub(crate) struct Stage {
    pub(crate) rig: Rig,
    up: Option<(Child, Lines<BufReader<ChildStderr>>)>,
    pub(crate) said: String,
}

/// Whether sandboxes can be made here by a user without rights.
pub(crate) async fn is_possible() -> bool {
    let rig = Rig::new("");
    let mut trial = rig.user_command("bwrap".as_ref());
    trial.current_dir("/").args([
        "--unshare-user",
        "--unshare-pid",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "true",
    ]);
    let possible = trial.status().await.is_ok_and(|status| status.success());
    host::allows("bubblewrap", possible)
}

impl Stage {
    /// A hive with these agents; `agents` are tables of hive.toml in which `R` is the hive's
    /// directory.
    pub(crate) fn set(hive: &str, agents: &str) -> Self {
        Self::set_with("command = \"R/bin/scripted-claude\"", hive, agents)
    }

    /// Makes a stage with these lines of `[claude]`.
    pub(crate) fn set_with(claude: &str, hive: &str, agents: &str) -> Self {
        let rig = Rig::unprivileged("");
        let root = rig.dir().display().to_string();
        let claude = format!("[claude]\n{claude}\n").replace("R/", &format!("{root}/"));
        let broker = "[broker]\nstate_dir = \"state\"\nruntime_dir = \"run\"\n";
        let agents = agents.replace("R/", &format!("{root}/"));
        rig.configure(&format!("[hive]\n{hive}\n{broker}{QUICK_LIMITS}{claude}{agents}"));
        Self { rig, up: None, said: String::new() }
    }

    /// The command of `hivectl up`.
    pub(crate) fn command(&self) -> Command {
        let mut up = self.rig.user_command(&self.rig.path("bin/hivectl"));
        up.args(["up", "--config", "hive.toml", "--state", "."])
            .env("ANTHROPIC_API_KEY", KEY)
            .env("HIVE_DRAIN_GRACE_SECS", "1");
        up.env("TZ", "UTC");
        up
    }

    /// Starts it and waits until it has started everything.
    pub(crate) async fn start(&mut self, command: Command) {
        self.spawn(command);
        self.says("Ctrl-C ends it.").await;
    }

    /// Starts it; how it ends is waited for by [`Self::ends`].
    pub(crate) fn spawn(&mut self, mut command: Command) {
        command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("hivectl starts");
        let lines = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
        self.up = Some((child, lines));
    }

    /// Reads on to the line with this text.
    pub(crate) async fn says(&mut self, text: &str) -> String {
        loop {
            let line = self.next_line().await.unwrap_or_else(|| {
                panic!("it ended without saying {text:?}:\n{}{}", self.said, self.logs())
            });
            if line.contains(text) {
                return line;
            }
        }
    }

    async fn next_line(&mut self) -> Option<String> {
        let said = format!("`hivectl up` goes on after:\n{}{}", self.said, self.logs());
        let (_, lines) = self.up.as_mut().expect("it runs");
        let line = soon(&said, lines.next_line()).await.expect("text")?;
        self.said.push_str(&line);
        self.said.push('\n');
        Some(line)
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ends(&mut self) -> ExitStatus {
        while self.next_line().await.is_some() {}
        let (mut child, _) = self.up.take().expect("it runs");
        child.wait().await.expect("it can be waited for")
    }

    fn logs(&self) -> String {
        let entries = std::fs::read_dir(self.rig.path("log")).into_iter().flatten().flatten();
        let text = |path: PathBuf| {
            format!(
                "\n--- {}\n{}",
                path.display(),
                std::fs::read_to_string(&path).unwrap_or_default()
            )
        };
        entries.map(|entry| text(entry.path())).collect()
    }

    /// The process of `hivectl up`, which may be below the one that was started.
    pub(crate) fn pid(&self) -> Pid {
        let (child, _) = self.up.as_ref().expect("it runs");
        let mut here = child.id().expect("it runs");
        let is_up = |pid: u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "hivectl")
        };
        while !is_up(here) {
            let below = std::fs::read_to_string(format!("/proc/{here}/task/{here}/children"))
                .unwrap_or_default();
            here = below
                .split_whitespace()
                .next()
                .and_then(|pid| pid.parse().ok())
                .expect("hivectl is below it");
        }
        Pid::from_raw(here.cast_signed()).expect("not 0")
    }

    /// Waits until an agent's harness waits for mail.
    pub(crate) async fn attached(&self, agent: &str) {
        self.rig.operator().await.does(agent, HarnessState::Idle).await;
    }

    /// The process of the broker that it has started.
    pub(crate) fn broker(&self) -> Pid {
        let up = self.pid().as_raw_nonzero();
        let below =
            std::fs::read_to_string(format!("/proc/{up}/task/{up}/children")).unwrap_or_default();
        let is_broker = |pid: &&str| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "hived")
        };
        let pid = below.split_whitespace().find(is_broker).and_then(|pid| pid.parse().ok());
        pid.and_then(Pid::from_raw).expect("hived runs below it")
    }

    /// Ctrl-C: everything is drained, nothing is left.
    pub(crate) async fn end(mut self) {
        kill_process(self.pid(), Signal::INT).expect("it runs");
        let status = self.ends().await;
        assert!(status.success(), "{status}:\n{}", self.said);
        assert_eq!(strays(self.rig.dir()), [], "{}", self.said);
        self.rig.end().await;
    }

    /// The table of hive.toml by which an agent has an MCP server of its own that tries things
    /// before it serves, as [`Self::script_server`] says.
    pub(crate) fn own_server(agent: &str) -> String {
        let tries = format!(
            "R/bin/sandbox-probe R/grant/{agent}.server R/agents/{agent}/state/by-server; exec R/bin/env-mcp"
        );
        format!(
            "[agents.{agent}.extra_mcp_servers.probe]\ncommand = \"sh\"\nargs = [\"-c\", \"{tries}\"]\nenv = {{ NOTES_KEY = \"of-the-notes\" }}\n"
        )
    }

    /// Has an agent's own MCP server try these at its next start.
    pub(crate) fn script_server(&self, agent: &str, targets: &Targets) {
        let text = serde_json::to_string(targets).expect("paths of a test are text");
        self.rig.user_file(&format!("grant/{agent}.server"), &text, 0o644);
    }

    /// Has an agent's claude try these from its own place and from a shell task. Both write into
    /// its state directory.
    pub(crate) fn script(&self, agent: &str, by_claude: &Targets, by_task: &Targets) {
        let state = self.rig.path(format!("agents/{agent}/state"));
        let place = |name: &str| self.rig.path(format!("grant/{agent}.{name}"));
        let probe = self.rig.path("bin/sandbox-probe").display().to_string();
        let mut spawn = vec![probe.clone()];
        for (targets, name) in [(by_claude, "claude"), (by_task, "task")] {
            let text = serde_json::to_string(targets).expect("paths of a test are text");
            self.rig.user_file(&format!("grant/{agent}.{name}"), &text, 0o644);
        }
        spawn.extend(
            [place("claude"), state.join("by-claude")].map(|path| path.display().to_string()),
        );
        let command =
            format!("{probe} {} {}", place("task").display(), state.join("by-task").display());
        let run = Step::Tool {
            tool: "run".to_owned(),
            input: json!({ "cmd": command, "wait_seconds": 30 }),
        };
        let steps = vec![
            Step::Spawn { spawn, setsid: false },
            Step::WaitFile { wait_file: state.join("by-claude") },
            run,
        ];
        let rules = [Rule { when: String::new(), steps }];
        script::write(&place("json"), &rules).expect("the script is written");
        self.rig.give_away(&place("json"));
    }

    /// Returns the results of an agent's attempts from one place: `None` is a success.
    pub(crate) fn tried(&self, agent: &str, by: &str) -> BTreeMap<String, Option<String>> {
        let path = self.rig.path(format!("agents/{agent}/state/by-{by}"));
        let text = std::fs::read(&path).unwrap_or_else(|error| {
            panic!(
                "{}: {error}: {:?}\n{}{}",
                path.display(),
                self.rig.tool_results(agent),
                self.said,
                self.logs()
            )
        });
        serde_json::from_slice(&text).expect("JSON")
    }
}
