//! `hivectl up` with programs that only say what happens to them: it starts, restarts, drains and
//! leaves nothing behind.
//!
//! The programs are shell scripts that write to one pipe, on which the tests wait. After the start
//! of the broker's script, the test itself answers on the broker's socket.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use hive_in_process::{Broker, Recorded};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, Command};

use super::run::{assert_contains, signal};

/// Reports that it runs, ends cleanly when asked to, and has a child.
const OBEDIENT: &str = r#"trap 'echo "$NAME ends" > "$PIPE"; exit 0' TERM; echo "$NAME $$" > "$PIPE"; sleep 1000 & wait"#;
const DEAF: &str = r#"trap '' TERM; echo "$NAME $$" > "$PIPE"; sleep 1000 & wait; wait"#;

/// A directory with a build of the programs, and a hive of one agent.
struct Stage {
    dir: tempfile::TempDir,
    reports: Lines<BufReader<pipe::Receiver>>,
}

impl Stage {
    fn set(hived: &str, hive: &str) -> Self {
        Self::with("[agents.ada]", hived, hive)
    }

    fn with(agents: &str, hived: &str, hive: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let dir_path = dir.path().canonicalize().expect("a path");
        let pipe = dir_path.join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let stage = Self {
            reports: BufReader::new(
                pipe::OpenOptions::new().read_write(true).open_receiver(&pipe).expect("it opens"),
            )
            .lines(),
            dir,
        };
        stage.install(env!("CARGO_BIN_EXE_hivectl").as_ref(), "hivectl");
        for (name, body) in [("hived", hived), ("hive", hive), ("hive-mcp", ""), ("claude", "")] {
            let script = format!(
                "#!/bin/sh\nNAME={name}\nDIR={}\nPIPE=$DIR/pipe\n{body}\n",
                dir_path.display()
            );
            std::fs::write(stage.path("script"), script).expect("a file");
            stage.install(&stage.path("script"), name);
        }
        std::fs::write(
            stage.path("hive.toml"),
            format!("[claude]\ncommand = \"./claude\"\n{agents}\n"),
        )
        .expect("a file");
        stage
    }

    fn broker(&self) -> Broker {
        let config = std::fs::read_to_string(self.path("hive.toml")).expect("a file");
        Broker::stopped(&config, "operator").at(self.path(".hive/run/hived.sock"))
    }

    /// By another process: a program that this one has written cannot be run while a fork of
    /// another test still has it open for writing.
    fn install(&self, from: &Path, name: &str) {
        let mut install = std::process::Command::new("install");
        let status = install
            .args(["-m", "755"])
            .arg(from)
            .arg(self.path(name))
            .status()
            .expect("install runs");
        assert!(status.success());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Without isolation: the programs are scripts that report nothing. `tests/tests/sandbox` has
    /// the real ones.
    fn up(&self) -> Up {
        let mut command = Command::new(self.path("hivectl"));
        command
            .arg("up")
            .arg("--no-isolation")
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TZ", "UTC");
        command
            .env("SECRET", "of the operator")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the binary runs");
        let lines = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
        Up { child, lines }
    }

    /// Returns the next report of a program.
    async fn report(&mut self) -> String {
        self.reports.next_line().await.expect("text").expect("the pipe stays open")
    }

    /// Waits until this program has started, and answers with its process id.
    async fn started(&mut self, name: &str) -> Pid {
        let reports = self.report().await;
        let pid = reports.strip_prefix(name).unwrap_or_else(|| panic!("{reports}")).trim();
        Pid::from_raw(pid.parse().expect("a number")).expect("not 0")
    }

    /// Starts a whole hive; the programs in it are `hived` and `hive`.
    async fn hive(&mut self) -> (Up, Broker, Pid, Pid) {
        let mut up = self.up();
        let hived = self.started("hived").await;
        let broker = self.broker();
        let hive = self.started("hive").await;
        up.says("Ctrl-C ends it").await;
        (up, broker, hived, hive)
    }
}

struct Up {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Up {
    fn interrupt(&self) {
        signal(&self.child, Signal::INT);
    }

    /// Reads on to the line that begins so; answers with all lines up to it.
    async fn says(&mut self, beginning: &str) -> String {
        let mut all = String::new();
        while let Some(line) = self.lines.next_line().await.expect("text") {
            all.push_str(&line);
            all.push('\n');
            if line.starts_with(beginning) {
                return all;
            }
        }
        panic!("it ended without saying `{beginning}`:\n{all}");
    }

    async fn ends(mut self) -> (i32, String) {
        let mut all = String::new();
        while let Some(line) = self.lines.next_line().await.expect("text") {
            all.push_str(&line);
            all.push('\n');
        }
        (self.child.wait().await.expect("it ends").code().expect("by itself"), all)
    }
}

fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid) == Err(Errno::SRCH)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hive_comes_up_and_is_drained_harness_first() {
    let mut stage = Stage::set(OBEDIENT, OBEDIENT);
    let mut up = stage.up();
    let hived = stage.started("hived").await;
    let broker = stage.broker();
    let hive = stage.started("hive").await;
    let said = up.says("Ctrl-C ends it").await;
    for line in [
        "in a second terminal, in this directory:",
        "    ./hivectl send ada \"hello\"",
        "    ./hivectl inbox --follow",
    ] {
        assert!(said.lines().any(|said| said == line), "{line}\n{said}");
    }
    let isolation: Vec<&str> = said.lines().filter(|line| line.contains("ISOLATED")).collect();
    assert!(
        matches!(isolation[..], [line] if line.starts_with("NOT ISOLATED: --no-isolation was given. ")),
        "{said}"
    );
    let env = std::fs::read_to_string(format!("/proc/{}/environ", hive.as_raw_nonzero()))
        .expect("it runs");
    assert!(env.contains("HIVE_LABEL=ada\0") && !env.contains("SECRET"), "{env}");
    let watches = |call: &Recorded| (call.method == "WatchEvents").then_some(());
    broker.next("the events are watched", watches).await;
    up.interrupt();
    assert_eq!(stage.report().await, "hive ends");
    assert_eq!(stage.report().await, "hived ends");
    let (code, said) = up.ends().await;
    assert_eq!(code, 0, "{said}");
    assert!(is_gone(hived) && is_gone(hive));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_is_started_again() {
    let mut stage = Stage::set(OBEDIENT, OBEDIENT);
    let (mut up, _broker, hived, hive) = stage.hive().await;
    kill_process(hive, Signal::KILL).expect("it runs");
    assert!(up.says("ada ended").await.contains("ada ended (signal: 9 (SIGKILL)); again in 0.5 s"));
    let again = stage.started("hive").await;
    assert_ne!(again, hive);
    kill_process(hived, Signal::KILL).expect("it runs");
    let hived = stage.started("hived").await;
    up.interrupt();
    assert_eq!(stage.report().await, "hive ends");
    assert_eq!(stage.report().await, "hived ends");
    assert_eq!(up.ends().await.0, 0);
    assert!([hived, hive, again].into_iter().all(is_gone));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_interrupt_ends_everything_at_once() {
    let mut stage = Stage::set(DEAF, DEAF);
    let (mut up, _broker, hived, hive) = stage.hive().await;
    up.interrupt();
    up.says("draining").await;
    up.interrupt();
    assert_eq!(up.ends().await.0, 0);
    assert!(is_gone(hived) && is_gone(hive));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_exits_at_once_is_reported_with_its_last_output() {
    let stage = Stage::set("echo 'the database is from the future' >&2; exit 3", OBEDIENT);
    let (code, said) = stage.up().ends().await;
    assert_eq!(code, 1, "{said}");
    assert_contains(
        &said,
        "error: the broker ended at once: exit status: 3\n    the database is from the future",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_hive_in_the_same_place_is_refused() {
    let stage = Stage::set(OBEDIENT, OBEDIENT);
    std::fs::create_dir_all(stage.path(".hive/run")).expect("a directory");
    let _broker = stage.broker();
    let (code, said) = stage.up().ends().await;
    assert_eq!(code, 5, "{said}");
    assert_contains(&said, "error: a hive runs here already");
}

/// Reports the files of servers that it sees, and whether its own names a command.
const EQUIPPED: &str = r#"
trap 'echo "$NAME ends" > "$PIPE"; exit 0' TERM
cd "$DIR/.hive"
file=$(sed -n 's/.*"HIVE_EXTRA_MCP": "\(.*\)".*/\1/p' "$HIVE_SETTINGS")
own=$(grep -c '"command": "clock"' "${file:-/dev/null}")
echo "$HIVE_LABEL $own, sees" run/agents/*/settings/extra* > "$PIPE"
sleep 1000 & wait"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_own_servers_are_passed_to_its_harness_only() {
    let agents = "[agents.ada]\nextra_mcp_servers.clock = { command = \"clock\", env = { KEY = \"k\" } }\n[agents.bob]";
    let mut stage = Stage::with(agents, OBEDIENT, EQUIPPED);
    let mut up = stage.up();
    stage.started("hived").await;
    let _broker = stage.broker();
    let mut sees = [stage.report().await, stage.report().await];
    sees.sort();
    up.says("Ctrl-C ends it").await;
    assert_eq!(
        sees,
        [
            "ada 1, sees run/agents/ada/settings/extra-mcp.json",
            "bob 0, sees run/agents/ada/settings/extra-mcp.json"
        ]
    );
    up.interrupt();
    assert_eq!([stage.report().await, stage.report().await], ["hive ends", "hive ends"]);
    assert_eq!(stage.report().await, "hived ends");
    assert_eq!(up.ends().await.0, 0);
}
