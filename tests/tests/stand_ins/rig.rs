//! One claude process, real or scripted, as the harness starts it, with the real bridge and broker
//! behind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use hive_in_process::Broker;
use hive_tests::rig::soon;
use hive_tests::scripted::script::{self, Rule, Step};
use hive_tests::{binary, claude};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub(crate) const TOKEN: &str = "process-token-of-turn-1";

/// The message that the turn is for, as the prompts of the tests name it.
const MESSAGE: u64 = 17;

/// An agent's directories and the broker it talks to.
pub(crate) struct Rig {
    pub(crate) broker: Broker,
    dir: TempDir,
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) events: Vec<Value>,
    pub(crate) stderr: String,
}

impl Finished {
    /// The last `result` event.
    pub(crate) fn result(&self) -> &Value {
        self.events.iter().rfind(|event| event["type"] == "result").unwrap_or(&Value::Null)
    }

    /// The `init` event.
    pub(crate) fn init(&self) -> &Value {
        self.events.iter().find(|event| event["subtype"] == "init").unwrap_or(&Value::Null)
    }
}

impl Rig {
    /// A rig in which alice has a turn for message [`MESSAGE`] of bob.
    pub(crate) async fn new() -> Self {
        let broker = Broker::start("[agents.alice]\n[agents.bob]\n[agents.carol]\n", "alice");
        while broker.operator().await.send("carol", "not this one").await + 1 < MESSAGE {}
        assert_eq!(broker.mail("bob", "work").await, MESSAGE);
        let harness = broker.harness("alice").await;
        harness.begin_as(TOKEN).await;
        let rig = Self {
            broker: broker.keep(harness),
            dir: tempfile::tempdir().expect("a temporary directory"),
        };
        for name in ["home", "home/tmp", "state"] {
            std::fs::create_dir(rig.path(name)).expect("a directory");
        }
        std::fs::write(rig.path("system.md"), "You are a test agent.").expect("a file");
        let settings = json!({"permissions": {"deny": ["Bash"]}, "autoCompactEnabled": false});
        std::fs::write(rig.path("settings.json"), settings.to_string()).expect("a file");
        let bridge = json!({
            "command": binary::find("hive-mcp-bridge", "hive-mcp"), "args": [], "alwaysLoad": true, "timeout": 300_000,
            "env": {"HIVE_SOCKET": rig.broker.socket(), "HIVE_PROCESS_TOKEN": TOKEN, "HIVE_LABEL": "alice"},
        });
        std::fs::write(rig.path("mcp.json"), json!({"mcpServers": {"hive": bridge}}).to_string())
            .expect("a file");
        rig
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a script: for each text in a prompt its steps.
    pub(crate) fn script<const RULES: usize>(&self, rules: [(&str, Vec<Step>); RULES]) -> PathBuf {
        let path = self.path("script.json");
        let rules = rules.map(|(when, steps)| Rule { when: when.to_owned(), steps });
        script::write(&path, &rules).expect("it is written");
        path
    }

    /// The files of all sessions.
    pub(crate) fn sessions(&self) -> Vec<PathBuf> {
        let folders =
            std::fs::read_dir(self.path("home/.claude/projects")).expect("sessions").flatten();
        let files = folders
            .flat_map(|folder| std::fs::read_dir(folder.path()).expect("a folder").flatten());
        files
            .map(|file| file.path())
            .filter(|file| file.extension().is_some_and(|extension| extension == "jsonl"))
            .collect()
    }

    /// The lines of the only session there is.
    pub(crate) fn session(&self) -> Vec<Value> {
        let [file] = &self.sessions()[..] else { panic!("{:?}", self.sessions()) };
        let text = std::fs::read_to_string(file).expect("it is text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The scripted claude, not started; with a script if there is one.
    pub(crate) fn scripted(&self, script: Option<&Path>) -> Command {
        let mut environment: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("HOME".into(), self.path("home").into()),
        ];
        environment.extend(script.map(|script| ("SCRIPTED_CLAUDE_FILE".into(), script.into())));
        self.command(&binary::find("hive-scripted", "scripted-claude"), environment)
    }

    /// The real claude, not started.
    pub(crate) fn real(&self, api_url: &str) -> Command {
        let program = claude::find().unwrap_or_else(|error| panic!("{error}"));
        self.command(&program, claude::environment(&self.path("home"), api_url))
    }

    fn command(&self, program: &Path, environment: Vec<(OsString, OsString)>) -> Command {
        let mut command = Command::new(program);
        command.args([
            "--print",
            "--verbose",
            "--output-format",
            "stream-json",
            "--model",
            "claude-haiku-4-5",
            "--continue",
        ]);
        command.arg("--settings").arg(self.path("settings.json"));
        command.arg("--system-prompt-file").arg(self.path("system.md"));
        command.arg("--mcp-config").arg(self.path("mcp.json"));
        command.args([
            "--strict-mcp-config",
            "--system-prompt-snapshot",
            "off",
            "--tools",
            "Edit,Read",
            "--allowedTools",
            "Edit,Read,mcp__hive__*",
        ]);
        command.env_clear().envs(environment).current_dir(self.path("state"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// Starts a claude and gives it its prompt.
pub(crate) async fn start(command: &mut Command, prompt: &str) -> Child {
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A claude that rejects its arguments may have ended already.
    let _ = stdin.write_all(prompt.as_bytes()).await;
    child
}

pub(crate) async fn finish(mut child: Child) -> Finished {
    let (mut stdout, mut stderr) =
        (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    let (mut out, mut err) = (String::new(), String::new());
    let (out_read, err_read) =
        tokio::join!(stdout.read_to_string(&mut out), stderr.read_to_string(&mut err));
    out_read.and(err_read).expect("its output is text");
    let status = child.wait().await.expect("it ends");
    let events = out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Finished { code: status.code(), events, stderr: err }
}

pub(crate) async fn run(command: &mut Command, prompt: &str) -> Finished {
    finish(start(command, prompt).await).await
}

/// A claude that stays for one turn after another.
pub(crate) struct Resident {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Resident {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.args(["--input-format", "stream-json"]).spawn().expect("it starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("piped"));
        Self { child, stdin, lines: BufReader::new(stdout).lines() }
    }

    /// Writes a line to its stdin.
    pub(crate) async fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is open");
        stdin.write_all(format!("{line}\n").as_bytes()).await.expect("it listens");
    }

    pub(crate) async fn prompt(&mut self, content: Value) {
        self.write(
            &json!({"type": "user", "message": {"role": "user", "content": content}}).to_string(),
        )
        .await;
    }

    /// Asks the process for something, and gives its answer.
    pub(crate) async fn control(&mut self, id: &str, request: Value) {
        self.write(
            &json!({"type": "control_request", "request_id": id, "request": request}).to_string(),
        )
        .await;
    }

    /// Returns the printed events, up to the first that satisfies `done`.
    pub(crate) async fn until(&mut self, done: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        let read = async {
            while let Some(line) = self.lines.next_line().await.expect("text") {
                events.push(serde_json::from_str(&line).expect("JSON"));
                if done(&events[events.len() - 1]) {
                    return;
                }
            }
        };
        soon("it says what is waited for", read).await;
        events
    }

    /// Runs one turn.
    pub(crate) async fn turn(&mut self, prompt: &str) -> Vec<Value> {
        self.prompt(json!(prompt)).await;
        self.until(|event| event["type"] == "result").await
    }

    /// Closes its stdin.
    pub(crate) fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Waits for its end.
    pub(crate) async fn end(mut self) -> Finished {
        let events = self.until(|_| false).await;
        let mut stderr = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut stderr).await.expect("text");
        let status = soon("it ends", self.child.wait()).await.expect("it ends");
        Finished { code: status.code(), events, stderr }
    }
}
