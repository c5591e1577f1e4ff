//! `hive confine` and the harness's side of it: a program in a sandbox that is, to the process that
//! asked for it, its own child.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use hive_harness::confine;
use hive_harness::confine::service::Host;
use hive_harness::process::family::servers::Servers;
use hive_harness::process::family::{self, Process};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::stage::{lives, pid, sandbox, wait_until};

/// A directory of an agent with the service.
struct Stage {
    dir: TempDir,
    servers: Servers,
    service: JoinHandle<()>,
}

impl Stage {
    /// `None` where the host allows no sandboxes and tests may be skipped.
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let (run, state) = (dir.path().join("run"), dir.path().join("state"));
        for created in [&run, &state] {
            std::fs::create_dir(created).expect("created");
        }
        let confinement = sandbox(dir.path(), &run, &state);
        if !confinement.is_sandbox() {
            return None;
        }
        let listener = UnixListener::bind(run.join(confine::SOCKET)).expect("bound");
        let servers = Servers::default();
        let service = tokio::spawn(Host::new(confinement, state, servers.clone()).serve(listener));
        Some(Self { dir, servers, service })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Has the service run a program; the client is in another directory.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hive"));
        let socket = format!("--socket={}", self.path("run").join(confine::SOCKET).display());
        command
            .args(["confine", &socket, "--"])
            .args(words)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a shell script; returns its output and exit status.
    async fn shell(&self, script: &str) -> Output {
        self.command(&["sh", "-c", script]).output().await.expect("it runs")
    }

    /// Starts a shell that writes its number into `state/pid`, and another one that has left it
    /// into `state/stray`.
    async fn start(&self, script: &str) -> (Child, [i32; 2]) {
        for name in ["pid", "stray"] {
            drop(std::fs::remove_file(self.path("state").join(name)));
        }
        let script = format!("setsid sleep 1000 & echo $! > stray; echo $$ > pid; {script}");
        let child = self.command(&["sh", "-c", &script]).spawn().expect("it starts");
        let pids = [pid(&self.path("state/pid")).await, pid(&self.path("state/stray")).await];
        assert!(pids.iter().all(|pid| lives(*pid)), "{pids:?}");
        (child, pids)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn process(child: &Child) -> Pid {
    child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).expect("it runs")
}

async fn gone(pids: [i32; 2]) {
    wait_until("all of it is gone", || !pids.iter().any(|pid| lives(*pid))).await;
}

#[tokio::test]
async fn streams_arguments_environment_and_exit_code_are_those_of_a_child() {
    let Some(stage) = Stage::new() else { return };
    let script = "read -r line; echo \"$line $1,$2\"; env | sort; pwd; ls -l /proc/self/fd | grep -c socket; echo complaint >&2; exit 41";
    let mut command = stage.command(&["sh", "-c", script, "sh", "--socket=x", ""]);
    let mut child = command.env("NOTES_KEY", "a\nb=c").spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"hello\n").await.expect("written");
    let output = child.wait_with_output().await.expect("it ends");
    let state = stage.path("state").canonicalize().expect("there");
    let wanted = [
        "hello --socket=x,",
        "NOTES_KEY=a",
        "PATH=/usr/bin:/bin",
        &format!("PWD={}", state.display()),
        "b=c",
    ];
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..5], wanted);
    // No socket of the service is among its descriptors.
    assert_eq!(lines[5..], [&state.display().to_string(), "0"]);
    assert_eq!((text(&output.stderr), output.status.code()), ("complaint\n".to_owned(), Some(41)));
    assert_eq!(stage.shell("kill -9 $$").await.status.code(), Some(137));
    let missing = stage.command(&["/no/such/server"]).output().await.expect("it runs");
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stderr).contains("cannot run `/no/such/server`"), "{missing:?}");
}

#[tokio::test]
async fn a_server_finds_neither_processes_nor_login_nor_configuration() {
    let Some(stage) = Stage::new() else { return };
    let mut claude = Command::new("sleep")
        .arg("1000")
        .env("ANTHROPIC_API_KEY", "secret")
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    for name in [
        ".claude/.credentials.json",
        ".claude/.claude.json",
        ".hive/x",
        "run/claude-mcp-config.json",
    ] {
        let path = stage.path(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
        std::fs::write(path, "secret").expect("written");
    }
    std::fs::create_dir_all(stage.path(".claude/skills")).expect("created");
    let home = stage.dir.path().display();
    let script = format!(
        "cd {home}; cat /proc/[0-9]*/environ 2>/dev/null | grep -ac secret; cat /proc/{}/environ; grep -rc secret .claude .hive run; \
         ls run; touch .claude/x run/x; touch written && unshare -U true || grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'",
        process(&claude).as_raw_nonzero()
    );
    let output = stage.shell(&script).await;
    assert_eq!(text(&output.stdout), "0\nNoNewPrivs:1Seccomp:2", "{output:?}");
    assert!(stage.path("written").exists());
    claude.kill().await.expect("it runs");
}

#[tokio::test]
async fn signals_reach_the_program_and_not_the_sandbox() {
    let Some(stage) = Stage::new() else { return };
    let script = "trap 'echo interrupted' INT; trap 'echo ended; exit 7' TERM; echo ready; while :; do sleep 1000 & wait $!; done";
    // A shell cannot trap what was ignored when it started, as it is below `nohup` and in the
    // background.
    let shell = ["env", "--default-signal=INT,TERM", "sh", "-c", script];
    let mut child = stage.command(&shell).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut line = async || lines.next_line().await.expect("text").unwrap_or_default();
    assert_eq!(line().await, "ready");
    kill_process(process(&child), Signal::INT).expect("it runs");
    assert_eq!(line().await, "interrupted");
    kill_process(process(&child), Signal::TERM).expect("it runs");
    assert_eq!(line().await, "ended");
    assert_eq!(child.wait().await.expect("it ends").code(), Some(7));
}

#[tokio::test]
async fn all_of_a_server_ends_with_its_client_with_itself_and_with_the_service() {
    let Some(stage) = Stage::new() else { return };
    let (mut child, pids) = stage.start("sleep 1000").await;
    child.kill().await.expect("it runs");
    gone(pids).await;
    let (mut child, pids) = stage.start("read -r line; exit 3").await;
    drop(child.stdin.take());
    assert_eq!(child.wait().await.expect("it ends").code(), Some(3));
    gone(pids).await;
    let (mut child, pids) = stage.start("sleep 1000").await;
    stage.service.abort();
    gone(pids).await;
    assert_eq!(child.wait().await.expect("it ends").code(), Some(i32::from(confine::NOT_STARTED)));
}

#[tokio::test]
async fn a_server_is_on_the_list_until_it_has_ended() {
    let Some(stage) = Stage::new() else { return };
    let (mut child, [shell, _]) = stage.start("sleep 1000").await;
    let client = family::find(process(&child).as_raw_nonzero().get()).expect("it runs");
    let entries = family::table::snapshot();
    let entry = |pid: i32| entries.iter().find(|entry| entry.process.pid == pid).expect("it runs");
    let own = i32::try_from(std::process::id()).expect("a number");
    let mut root = entry(shell);
    while root.parent != own {
        root = entry(root.parent);
    }
    let is_spared = |lives: fn(Process, Process) -> bool| {
        stage.servers.inspect(|serving| serving.spares(root, |asked| lives(asked, client)))
    };
    assert!(
        is_spared(|asked, client| asked == client) && !is_spared(|asked, client| asked != client)
    );
    child.kill().await.expect("it runs");
    wait_until("it is off the list", || {
        !stage.servers.inspect(|serving| serving.has(root.process))
    })
    .await;
    assert!(!lives(root.process.pid));
}

#[tokio::test]
async fn a_requested_environment_is_obeyed_by_the_program_alone() {
    let Some(stage) = Stage::new() else { return };
    let mut command = stage.command(&["sh", "-c", "echo $LD_DEBUG"]);
    // The loader of each program that obeys this says so.
    let output = command.env("LD_DEBUG", "statistics").output().await.expect("it runs");
    assert_eq!(text(&output.stdout), "statistics\n");
    // `hive confine`, which is the client, and the shell; neither bubblewrap nor the program that
    // makes the fence.
    let loaders = text(&output.stderr).matches("total startup time in dynamic loader").count();
    assert_eq!(loaders, 2, "{}", text(&output.stderr));
    stage.service.abort();
}
