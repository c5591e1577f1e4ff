//! Commands: the requests to the harness, and the text for the model.

use hive_core::reason::Reason;
use hive_proto::harness_v1::{GetTaskRequest, RunTaskRequest, TaskState};
use hive_proto::status::refusal;
use hive_tests::mcp::Client;
use prost_types::Duration;
use serde_json::{Value, json};
use tonic::Status;

use crate::harness::{Asked, Harness, Reaction, command, connected, task};

async fn call(client: &mut Client, tool: &str, input: Value, tool_use_id: &str) -> (String, bool) {
    let pending = client.start_tool(tool, input, tool_use_id).await.expect("the server reads");
    pending.tool_result().await.expect("the server answers")
}

fn seconds(seconds: i64) -> Option<Duration> {
    Some(Duration { seconds, nanos: 0 })
}

fn request_id(asked: &Asked) -> &str {
    match asked {
        Asked::Run(RunTaskRequest { request_id, .. }) => request_id,
        Asked::Get(_) => panic!("a look has no request id"),
    }
}

#[tokio::test]
async fn a_command_is_run_once_per_tool_use_and_its_end_is_reported() {
    let harness = Harness::start();
    let mut client = connected(&harness).await;
    assert_eq!(
        call(&mut client, "run", json!({"cmd": "echo hi"}), "toolu_1").await,
        ("Task 1: exit code 0:\nhi".into(), false)
    );
    call(
        &mut client,
        "run",
        json!({"cmd": "x", "timeout_secs": "90", "wait_seconds": 0}),
        "toolu_2",
    )
    .await;
    let mut again = connected(&harness).await;
    call(&mut again, "run", json!({"cmd": "echo hi"}), "toolu_1").await;
    let mut other =
        Client::spawn(command(&harness).env("HIVE_PROCESS_TOKEN", "process-token-of-turn-2"))
            .expect("hive-mcp starts");
    other.handshake().await.expect("the handshake works");
    call(&mut other, "run", json!({"cmd": "echo hi"}), "toolu_1").await;
    let asked = harness.asked();
    let request_id: Vec<&str> = asked.iter().map(request_id).collect();
    assert!(
        request_id[0] != request_id[1]
            && request_id[0] == request_id[2]
            && request_id[0] != request_id[3],
        "{request_id:?}"
    );
    let run = |command: &str, timeout, wait| {
        Asked::Run(RunTaskRequest {
            request_id: String::new(),
            command: command.into(),
            timeout,
            wait,
        })
    };
    let without_id = |asked: &Asked| match asked.clone() {
        Asked::Run(request) => Asked::Run(RunTaskRequest { request_id: String::new(), ..request }),
        get @ Asked::Get(_) => get,
    };
    assert_eq!(without_id(&asked[0]), run("echo hi", None, seconds(10)));
    assert_eq!(without_id(&asked[1]), run("x", seconds(90), seconds(0)));
}

#[tokio::test]
async fn a_background_task_can_be_read() {
    let harness = Harness::start();
    let mut client = connected(&harness).await;
    let mut running = task(5, "so far\n");
    running.set_state(TaskState::Running);
    harness.react(Reaction::Task(Box::new(running)));
    let (text, is_error) = call(&mut client, "run", json!({"cmd": "make"}), "toolu_1").await;
    assert_eq!(
        (text.as_str(), is_error),
        ("Task 5 runs; you get mail when it ends:\nso far", false)
    );
    harness.react(Reaction::Task(Box::new(task(5, ""))));
    let (text, _) =
        call(&mut client, "status", json!({"id": "#5", "wait_seconds": 180}), "toolu_2").await;
    assert_eq!(text, "Task 5: exit code 0; no output");
    assert_eq!(harness.asked()[1], Asked::Get(GetTaskRequest { id: 5, wait: seconds(180) }));
}

#[tokio::test]
async fn wrong_arguments_reach_no_harness_and_refusals_say_what_to_do() {
    let harness = Harness::start();
    let mut client = connected(&harness).await;
    let wrong = [
        ("run", json!({}), "FIELD_INVALID: missing field `cmd`"),
        (
            "run",
            json!({"cmd": "x", "wait_seconds": 31}),
            "FIELD_INVALID: wait_seconds is at most 30",
        ),
        ("run", json!({"cmd": "x", "command": "x"}), "FIELD_INVALID: unknown field"),
        ("status", json!({"id": 0}), "FIELD_INVALID: `id`: an id is"),
        (
            "status",
            json!({"id": 1, "wait_seconds": 181}),
            "FIELD_INVALID: wait_seconds is at most 180",
        ),
    ];
    for (tool, input, expected) in wrong {
        let (text, is_error) = call(&mut client, tool, input, "toolu_1").await;
        assert!(is_error && text.starts_with(expected), "{text}");
    }
    assert!(harness.asked().is_empty());
    let refusals = [
        (
            refusal(Reason::CapabilityMissing, "no group execution", None),
            "CAPABILITY_MISSING: no group execution; ",
        ),
        (Status::resource_exhausted("16 run"), "TOO_MANY_TASKS: 16 run; wait for one"),
        (Status::not_found("there is no task 9"), "TASK_NOT_FOUND: there is no task 9; "),
        (
            Status::failed_precondition("bash cannot be started"),
            "TASK_NOT_STARTED: bash cannot be started; ",
        ),
    ];
    for (status, expected) in refusals {
        harness.react(Reaction::Refuse(status));
        let (text, is_error) = call(&mut client, "run", json!({"cmd": "x"}), "toolu_1").await;
        assert!(is_error && text.starts_with(expected), "{text}");
    }
}

#[tokio::test]
async fn a_cancelled_call_stops_at_once_and_the_server_goes_on() {
    let harness = Harness::start();
    let mut client = connected(&harness).await;
    for (count, tool, input) in [
        (1, "run", json!({"cmd": "x", "wait_seconds": 30})),
        (2, "status", json!({"id": 1, "wait_seconds": 180})),
    ] {
        harness.react(Reaction::Hang);
        let pending = client.start_tool(tool, input, "toolu_1").await.expect("the server reads");
        harness.wait_for_calls(count).await;
        let cancel = json!({"requestId": pending.id(), "reason": "the user interrupted"});
        client.notify("notifications/cancelled", cancel).await.expect("the server reads");
        harness.wait_for_dropped(count).await;
    }
    assert_eq!(
        call(&mut client, "status", json!({"id": 1}), "toolu_2").await.0,
        "Task 1: exit code 0:\nhi"
    );
}

#[tokio::test]
async fn the_end_of_stdin_ends_a_waiting_server() {
    let harness = Harness::start();
    let mut client = connected(&harness).await;
    harness.react(Reaction::Hang);
    client
        .start_tool("status", json!({"id": 1, "wait_seconds": 180}), "toolu_1")
        .await
        .expect("the server reads");
    harness.wait_for_calls(1).await;
    let (status, log) = client.close().await.expect("it ends");
    assert!(status.success(), "{log}");
    harness.wait_for_dropped(1).await;
}

#[tokio::test]
async fn a_harness_that_restarts_is_waited_for_and_asked_the_same() {
    let mut harness = Harness::start();
    let mut client = connected(&harness).await;
    harness.react(Reaction::Hang);
    let pending =
        client.start_tool("run", json!({"cmd": "x"}), "toolu_1").await.expect("the server reads");
    harness.wait_for_calls(1).await;
    harness.kill();
    let mut lost = task(4, "half");
    lost.set_state(TaskState::Lost);
    harness.react(Reaction::Task(Box::new(lost)));
    harness.run();
    let (text, is_error) = pending.tool_result().await.expect("an answer");
    assert!(
        !is_error && text.starts_with("Task 4: ended, because the harness stopped; run it again"),
        "{text}"
    );
    let asked = harness.asked();
    assert!(asked.len() == 2 && asked[0] == asked[1], "{asked:?}");
}

#[tokio::test]
async fn a_harness_that_stays_away_is_reported() {
    let harness = Harness::stopped();
    let mut client = connected(&harness).await;
    let (text, is_error) = call(&mut client, "run", json!({"cmd": "x"}), "toolu_1").await;
    assert!(
        is_error && text.starts_with("HARNESS_AWAY: the harness did not answer for 10 s"),
        "{text}"
    );
}
