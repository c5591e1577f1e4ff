//! An isolated agent's own MCP servers: what they are to claude, and that their code gets at
//! neither its key nor its token.
//!
//! A shell task can write what a server loads from the agent's home, so a server is trusted no more
//! than a task.

use hive_proto::v1::{EventKind, Isolation, TurnOutcome};
use hive_tests::rig::{gone, host};
use hive_tests::sandbox_probe::Targets;
use hive_tests::scripted::script::{self, Rule, Step};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::degraded;
use crate::stage::{self, KEY, Stage};

/// Ada, whose claude does this at each prompt that has `when` in it.
fn ada(more: &str, rules: impl FnOnce(&Stage) -> Vec<Rule>) -> Stage {
    let agent = "[agents.ada]\nreadable = [\"grant\", \"bin\"]\nenv = { SCRIPTED_CLAUDE_FILE = \"R/grant/ada.json\", CLOUD_KEY = { file = \"R/keys/cloud\" } }\n";
    let stage = Stage::set("", &format!("{agent}{more}"));
    stage.rig.user_dir("grant");
    stage.rig.user_dir("keys");
    stage.rig.user_file("keys/cloud", "of-the-agent\n", 0o600);
    stage.rig.user_file("keys/notes", "of-the-notes\n", 0o600);
    let file = stage.rig.path("grant/ada.json");
    script::write(&file, &rules(&stage)).expect("the script is written");
    stage.rig.give_away(&file);
    stage
}

fn tool(name: &str, input: serde_json::Value) -> Step {
    Step::Tool { tool: name.to_owned(), input }
}

/// Sends ada a message, and waits for a successful turn.
async fn turn(stage: &Stage, body: &str) {
    let (operator, mut watch) = (stage.rig.operator().await, stage.rig.watch_from_now().await);
    operator.send("ada", body).await;
    let ended = watch.kind("ada", EventKind::TurnEnded).await;
    let turn = operator.turn(ended.turn_id).await;
    assert_eq!(turn.outcome(), TurnOutcome::Ok, "{turn:?}\n{}", stage.said);
}

/// The processes that have the pipes of a server of ada's: its sandbox, and what claude has started
/// for it.
fn around(stage: &Stage, server: Pid) -> Vec<Pid> {
    let file = |pid: Pid, name: &str| {
        std::fs::read_to_string(format!("/proc/{}/{name}", pid.as_raw_nonzero()))
            .unwrap_or_default()
    };
    let parent = |pid: Pid| {
        let status = file(pid, "status");
        let number =
            status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        Pid::from_raw(number).filter(|parent| file(*parent, "comm").trim() == "bwrap")
    };
    let sandbox = std::iter::successors(parent(server), |pid| parent(*pid));
    let clients = stage
        .rig
        .running("ada", "hive")
        .into_iter()
        .filter(|pid| file(*pid, "cmdline").contains("\0confine\0"));
    let around: Vec<Pid> = sandbox.chain(clients).collect();
    assert_eq!(around.len(), 3, "one process outside of the sandbox, one inside, and the client");
    around
}

#[tokio::test]
async fn code_that_a_task_leaves_to_a_server_gets_neither_key_nor_token_nor_login() {
    let python = host::allows("python3", std::path::Path::new("/usr/bin/python3").exists());
    if !python || !stage::is_possible().await {
        return;
    }
    // Python loads this module at its start, from the home that tasks and servers share.
    let left = "import glob, os\n\
        def read(path):\n    \
            try: return open(path, 'rb').read()\n    \
            except OSError: return b''\n\
        home = os.environ['HOME']\n\
        if 'NOTES_KEY' in os.environ:\n    \
            names = glob.glob('/proc/[0-9]*/environ') + glob.glob(home + '/.hive/*') + glob.glob(home + '/.claude/*') + glob.glob(home + '/.claude/.*')\n    \
            names += glob.glob('R/run/agents/ada/**', recursive=True)\n    \
            open('stolen.part', 'wb').write(b'\\n'.join(read(name) for name in names))\n    \
            os.rename('stolen.part', 'stolen')\n";
    let place = "$(python3 -c 'import site; print(site.getusersitepackages())')";
    // claude obeys this file of its working directory, and what it starts has its key.
    let obeyed = "mv .claude other; mkdir -p .claude; echo '{}' >.claude/settings.json";
    let command = format!(
        "mkdir -p \"{place}\" && cat >\"{place}/usercustomize.py\" <<'END'\n{left}END\n{obeyed}\nls -A .claude >looked\n"
    );
    let server = "[agents.ada.extra_mcp_servers.notes]\ncommand = \"python3\"\nargs = [\"-c\", \"import os; os.execv('R/bin/env-mcp', ['env-mcp'])\"]\n\
        env = { NOTES_KEY = { file = \"R/keys/notes\" } }\n";
    let mut stage = ada(server, |stage| {
        let command = command.replace("R/run", &stage.rig.path("run").display().to_string());
        let plant = tool("run", json!({ "cmd": command, "wait_seconds": 30 }));
        let rule = |when: &str, steps| Rule { when: when.to_owned(), steps };
        vec![rule("plant", vec![plant]), rule("", vec![tool("environment", json!({}))])]
    });
    stage.rig.user_file("agents/ada/home/.claude/.credentials.json", "login-of-ada", 0o600);
    let command = stage.command();
    stage.start(command).await;
    turn(&stage, "plant it").await;
    for file in ["settings.json", "extra-mcp.json"] {
        let settings = stage.rig.read(&format!("run/agents/ada/settings/{file}"));
        assert!(settings.contains("/settings/secret-"), "{settings}");
        assert!(!settings.contains("of-the-"), "{settings}");
    }
    let stolen = stage.rig.path("agents/ada/state/stolen");
    assert!(!stolen.exists(), "nothing is left to the first server");
    let looked = std::fs::read_to_string(stage.rig.path("agents/ada/state/looked"))
        .expect("the task ran to its end");
    assert_eq!(looked, "", "the task cannot write claude's settings");
    turn(&stage, "and now").await;
    let stolen = std::fs::read(&stolen).expect("the code of the task ran in the server");
    let stolen = String::from_utf8_lossy(&stolen);
    for secret in [KEY, "ANTHROPIC_API_KEY", "HIVE_PROCESS_TOKEN", "login-of-ada", "of-the-agent"] {
        assert!(!stolen.contains(secret), "{secret} in {stolen}");
    }
    assert!(stolen.contains("NOTES_KEY=of-the-notes"), "it has read what is its own: {stolen}");
    assert!(
        stage.rig.tool_results("ada").concat().contains("NOTES_KEY=of-the-notes"),
        "the server works"
    );
    stage.end().await;
}

#[tokio::test]
async fn a_server_stays_with_a_resident_claude_is_started_again_and_leaves_nothing() {
    if !stage::is_possible().await {
        return;
    }
    let more = format!("process = \"resident\"\n{}", Stage::own_server("ada"));
    let mut stage = ada(&more, |_| {
        let steps = vec![tool("environment", json!({}))];
        vec![Rule { when: String::new(), steps }]
    });
    stage.script_server("ada", &Targets::default());
    let command = stage.command();
    stage.start(command).await;
    turn(&stage, "one").await;
    let first = stage.rig.the_one("ada", "env-mcp");
    let claude = stage.rig.the_one("ada", "scripted-claude").as_raw_nonzero();
    let environment = std::fs::read(format!("/proc/{claude}/environ")).expect("it runs");
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.split('\0').any(|pair| pair == "CLOUD_KEY=of-the-agent"));
    turn(&stage, "two").await;
    assert_eq!(stage.rig.the_one("ada", "env-mcp"), first);
    let around = around(&stage, first);
    kill_process(first, Signal::KILL).expect("it runs");
    // A call that arrives before the last process has closed the pipes would fail, as with any
    // server that dies in a call.
    for pid in around {
        gone(pid).await;
    }
    turn(&stage, "three").await;
    let results = stage.rig.tool_results("ada");
    assert_eq!(results.len(), 3, "{results:?}");
    for result in &results {
        assert!(
            result.contains("NOTES_KEY=of-the-notes") && !result.contains("ANTHROPIC"),
            "{result}"
        );
    }
    stage.end().await;
}

#[tokio::test]
async fn without_a_sandbox_of_its_own_a_server_has_the_fence() {
    if !stage::is_possible().await
        || !host::allows("a program of another user (tests do not run as root)", host::is_root())
    {
        return;
    }
    let mut stage = ada(&Stage::own_server("ada"), |_| {
        vec![Rule { when: String::new(), steps: vec![tool("environment", json!({}))] }]
    });
    let environment = [("key-of-claude", KEY), ("token-of-bridge", "HIVE_PROCESS_TOKEN=")];
    let environment = environment.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    stage.script_server("ada", &Targets { environment, ..Targets::default() });
    let (_bwrap, command) = degraded::with_old_bubblewrap(&stage);
    stage.start(command).await;
    turn(&stage, "look").await;
    let shown = stage.rig.operator().await.get_agent("ada").await;
    let has_note = shown.isolation_notes.iter().any(|note| note.contains("MCP servers share"));
    assert!(shown.isolation() == Isolation::Partly && has_note, "{shown:?}");
    let tried = stage.tried("ada", "server");
    assert!(tried["key-of-claude"].is_some() && tried["token-of-bridge"].is_some(), "{tried:?}");
    assert!(stage.rig.tool_results("ada").concat().contains("NOTES_KEY"));
    stage.end().await;
}
