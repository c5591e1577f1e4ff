//! Shell tasks under the real CLI: their output is returned inline; a longer task continues without
//! the turn and wakes the agent.

use hive_proto::v1::{OriginKind, TurnOutcome};
use hive_tests::api::{Recorded, Reply, Script};
use hive_tests::rig::{Mode, gone};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::stage::Stage;

both!(
    a_task_outlives_its_turn_and_wakes_the_agent_once,
    a_task_outlives_the_claude_that_started_it
);

/// A task that ends when the file `go` is there, and is not waited for.
fn long_task() -> Reply {
    Reply::tool(
        "mcp__bash__run",
        json!({"cmd": "until [ -e go ]; do sleep 0.1; done; echo it is ready", "wait_seconds": 0}),
    )
}

/// Checks that the task runs until it is ended, and that one message reports its end.
async fn ends_and_wakes(stage: &mut Stage) -> Recorded {
    assert_eq!(stage.rig.running("ada", "bash").len(), 1, "the task runs");
    std::fs::write(stage.state().join("go"), "").expect("a file");
    let turn = stage.ok().await;
    let told = stage.last_request_of(turn.message_id);
    assert!(
        told.prompt.contains(" from the program bash beside you:\n| A shell task has ended."),
        "{}",
        told.prompt
    );
    assert!(
        told.prompt.contains("exit code 0") && told.prompt.contains("it is ready"),
        "{}",
        told.prompt
    );
    assert_eq!(stage.rig.running("ada", "bash"), []);
    let inbox = stage
        .operator
        .all_deliveries("ada")
        .await
        .into_iter()
        .filter_map(|delivery| delivery.message?.origin);
    assert_eq!(
        inbox.filter(|origin| origin.kind() == OriginKind::External).count(),
        1,
        "one message"
    );
    told
}

async fn a_task_outlives_its_turn_and_wakes_the_agent_once(mode: Mode) {
    let inline = Reply::tool("mcp__bash__run", json!({"cmd": "echo $((6 * 7)); pwd; exit 3"}));
    let script =
        Script::new().when("do it", [inline, long_task(), Reply::text("It is under way.")]);
    let mut stage = Stage::in_mode(mode, script).await;
    let message = stage.send("do it").await;
    stage.start();
    stage.ok().await;
    let results = stage.last_request_of(message).tool_results();
    let [(_, inline, _), (_, long, long_failed)] = &results[..] else { panic!("{results:?}") };
    let dir = stage.state().canonicalize().expect("a directory").display().to_string();
    assert!(
        inline.contains("Task 1: exit code 3") && inline.contains(&format!("42\n{dir}")),
        "{inline}"
    );
    assert!(
        !long_failed && long.contains("Task 2 runs") && long.contains("you get mail when it ends"),
        "{long}"
    );
    let told = ends_and_wakes(&mut stage).await;
    assert!(told.mentions("| do it\n") && !told.prompt.contains("Task 1"), "{}", told.prompt);
    stage.end().await;
}

async fn a_task_outlives_the_claude_that_started_it(mode: Mode) {
    let script = Script::new()
        .when("attempt 2", [Reply::text("Done.")])
        .when("do it", [long_task(), Reply::hang()]);
    let mut stage = Stage::in_mode(mode, script).await;
    let message = stage.send("do it").await;
    stage.start();
    stage.api.wait_for_requests(2).await;
    let claude = stage.rig.the_one("ada", "claude");
    kill_process(claude, Signal::KILL).expect("it runs");
    gone(claude).await;
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Failed);
    let turn = stage.ok().await;
    assert_eq!((turn.message_id, turn.attempt), (message, 2), "{turn:?}");
    ends_and_wakes(&mut stage).await;
    stage.end().await;
}
