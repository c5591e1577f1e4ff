//! MCP servers: one that dies, one that never starts, one of the agent's own; and what they see of
//! the environment, which is no key.

use hive_proto::v1::SystemKind;
use hive_tests::api::{Gate, Reply, Script};
use hive_tests::binary;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::stage::Stage;
use hive_tests::rig::Mode;

both!(
    a_bridge_that_dies_costs_its_call_and_nothing_else,
    own_servers_work_or_are_missed_and_no_key_reaches_any,
    a_tool_that_never_answers_is_an_error_and_the_turn_goes_on
);

/// Reads a file of a process, with blanks for its zeroes.
fn proc(pid: Pid, file: &str) -> String {
    let text = std::fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
    String::from_utf8_lossy(&text).replace('\0', " ")
}

/// Ada's bridge, beside the server of her shell.
fn bridge(stage: &Stage) -> Pid {
    let is_bridge = |pid: &Pid| !proc(*pid, "cmdline").trim_end().ends_with(" bash");
    match stage.rig.running("ada", "hive-mcp").into_iter().filter(is_bridge).collect::<Vec<_>>()[..]
    {
        [pid] => pid,
        ref pids => panic!("{} bridges", pids.len()),
    }
}

/// No key, no token of claude's own, and nothing that is not on a list.
fn holds_no_key(environment: &str) {
    for name in ["ANTHROPIC_", "dummy-key", "CLAUDE_CODE", "HIVE_CLAUDE", "HIVE_TEST"] {
        assert!(!environment.contains(name), "{name} in {environment}");
    }
    assert!(environment.contains("PATH="), "{environment}");
}

async fn a_bridge_that_dies_costs_its_call_and_nothing_else(mode: Mode) {
    let gate = Gate::new();
    let send = |body: &str| Reply::tool("mcp__hive__send", json!({"to": "operator", "body": body}));
    let script = Script::new().when(
        "report twice",
        [send("one"), send("two").held(&gate), send("three"), Reply::text("Done.")],
    );
    let mut stage = Stage::in_mode(mode, script).await;
    let message = stage.send("report twice").await;
    stage.start();
    stage.api.wait_for_requests(2).await;
    let bridge = bridge(&stage);
    kill_process(bridge, Signal::KILL).expect("it runs");
    hive_tests::rig::gone(bridge).await;
    gate.open();
    let turn = stage.ok().await;
    assert_eq!((turn.message_id, turn.attempt), (message, 1), "{turn:?}");
    let results = stage.last_request_of(message).tool_results();
    let failed = results.iter().filter(|(_, _, is_error)| *is_error).count();
    assert!(failed <= 1 && !results[0].2 && !results[2].2, "{results:?}");
    let bodies: Vec<String> =
        stage.operator.messages().await.into_iter().map(|message| message.body).collect();
    for body in ["one", "two", "three"] {
        let times = bodies.iter().filter(|sent| *sent == body).count();
        assert!(
            times == 1 || (body == "two" && failed == 1 && times == 0),
            "{body}: {bodies:?}, {results:?}"
        );
    }
    stage.end().await;
}

async fn own_servers_work_or_are_missed_and_no_key_reaches_any(mode: Mode) {
    let gate = Gate::new();
    let script = Script::new().when(
        "look around",
        [
            Reply::tools([
                ("mcp__mine__environment", json!({})),
                ("mcp__bash__run", json!({"cmd": "env"})),
            ]),
            Reply::text("Done.").held(&gate),
        ],
    );
    let mut stage = Stage::in_mode(mode, script).await;
    let file = stage.rig.path("extra.json");
    let servers = json!({
        "mine": {"command": binary::find("hive-tests", "env-mcp"), "env": {"NOTES_KEY": "of-the-notes"}},
        "broken": {"command": "/no/such/server"},
    });
    std::fs::write(&file, servers.to_string()).expect("a file");
    stage.set_env("HIVE_EXTRA_MCP", &file.display().to_string());
    // The operator's shell may also contain these variables.
    stage.set_env("ANTHROPIC_AUTH_TOKEN", "dummy-key-of-the-harness");
    let message = stage.send("look around").await;
    stage.start();
    stage.api.wait_for_requests(2).await;
    holds_no_key(&proc(bridge(&stage), "environ"));
    gate.open();
    stage.ok().await;
    let results = stage.last_request_of(message).tool_results();
    let [(_, mine, mine_failed), (_, bash, bash_failed)] = &results[..] else {
        panic!("{results:?}")
    };
    assert!(!mine_failed && !bash_failed, "{results:?}");
    for told in [mine, bash] {
        holds_no_key(told);
        assert!(!told.contains("HIVE_PROCESS_TOKEN"), "{told}");
    }
    assert!(mine.contains("NOTES_KEY=of-the-notes") && !bash.contains("NOTES_KEY"), "{results:?}");

    // A server that does not start is reported once.
    stage.send("and again").await;
    stage.ok().await;
    let problems = stage.operator.notices("operator", SystemKind::Problem).await;
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert!(
        problem.body.contains("`broken`") && problem.body.contains("mcp:broken"),
        "{problem:?}"
    );
    stage.end().await;
}

async fn a_tool_that_never_answers_is_an_error_and_the_turn_goes_on(mode: Mode) {
    let script = Script::new().when(
        "try it",
        [Reply::tool("mcp__mine__hang", json!({})), Reply::text("It does not work.")],
    );
    let mut stage = Stage::in_mode(mode, script).await;
    let file = stage.rig.path("extra.json");
    let servers =
        json!({"mine": {"command": binary::find("hive-tests", "env-mcp"), "timeoutSeconds": 1}});
    std::fs::write(&file, servers.to_string()).expect("a file");
    stage.set_env("HIVE_EXTRA_MCP", &file.display().to_string());
    let message = stage.send("try it").await;
    stage.start();
    let turn = stage.ok().await;
    assert_eq!((turn.message_id, turn.attempt), (message, 1), "{turn:?}");
    let results = stage.last_request_of(message).tool_results();
    let [(_, words, true)] = &results[..] else { panic!("{results:?}") };
    assert!(words.contains("timed out after 1s"), "{words}");
    stage.end().await;
}
