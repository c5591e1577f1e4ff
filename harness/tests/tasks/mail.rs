//! Mail to the agent about tasks: each fact that it does not know, once.

use hive_proto::harness_v1::TaskState;
use tonic::Status;

use crate::stage::{LONG, Stage, request, wait_until};

/// Runs one task in the background to its end, without a call that waits for it.
async fn ended(stage: &mut Stage, command: &str) -> u64 {
    // The task waits for the file `go`: if it ended at once, the answer to its own call would
    // report it. An earlier task may have left the file.
    let _ = std::fs::remove_file(stage.path("go"));
    let task = stage
        .run(&format!("until [ -e go ]; do sleep 0.01; done; {command}"), 0)
        .await
        .expect("taken");
    assert_eq!(task.state(), TaskState::Running);
    std::fs::write(stage.path("go"), "").expect("written");
    task.id
}

#[tokio::test]
async fn tasks_that_end_together_are_reported_in_one_message() {
    let mut stage = Stage::new().await;
    for command in ["echo first; exit 1", "echo second"] {
        stage
            .run(&format!("until [ -e go ]; do sleep 0.01; done; {command}"), 0)
            .await
            .expect("taken");
    }
    let inline = stage.done("echo third").await;
    assert_eq!(inline.state(), TaskState::Exited);
    std::fs::write(stage.path("go"), "").expect("written");
    let body = stage.mail.body(1).await;
    assert!(body.starts_with("2 shell tasks have ended.\n\nTask 1: until "), "{body}");
    assert!(
        body.contains("exit code 1 after ")
            && body.contains("    | first\n")
            && body.contains("    | second\n"),
        "{body}"
    );
    assert!(!body.contains("third"), "{body}");
    assert!(
        body.ends_with(&format!("{}/ID.out.", stage.dir.path().join("run/tasks").display())),
        "{body}"
    );
}

#[tokio::test]
async fn an_end_is_repeated_until_the_agent_has_received_its_message() {
    let mut stage = Stage::new().await;
    ended(&mut stage, "echo one").await;
    assert!(stage.mail.body(1).await.contains("| one"));
    // The agent has not read it yet: the next message takes its place and says both.
    stage.mail.supersede(101);
    ended(&mut stage, "echo two").await;
    let body = stage.mail.body(2).await;
    assert!(body.contains("| one") && body.contains("| two"), "{body}");
    wait_until("the supervisor has the broker's answer to message 2", || {
        stage.supervisor.mark_announced_reported();
        std::fs::read_to_string(stage.dir.path().join("run/tasks/2.json"))
            .is_ok_and(|text| text.contains("\"told\": true"))
    })
    .await;
    ended(&mut stage, "echo three").await;
    let body = stage.mail.body(3).await;
    assert!(body.starts_with("A shell task has ended.") && body.contains("| three"), "{body}");
    assert_eq!(stage.mail.attempts().len(), 3);
}

#[tokio::test]
async fn a_caller_that_waited_for_the_end_gets_no_mail() {
    let mut stage = Stage::new().await;
    // The broker is away, so that the mail cannot be faster.
    stage.mail.refuse(Some(Status::unavailable("away")));
    let id = ended(&mut stage, "echo asked for").await;
    assert_eq!(stage.get(id, 180).await.expect("found").state(), TaskState::Exited);
    ended(&mut stage, "echo not asked for").await;
    let attempts = stage.mail.attempts().len();
    stage.mail.refuse(None);
    let body = stage.mail.body(attempts + 1).await;
    assert!(body.contains("| not asked for") && !body.contains("| asked for"), "{body}");
}

#[tokio::test]
async fn a_broker_that_is_away_is_asked_again_with_the_same_message() {
    let mut stage = Stage::new().await;
    stage.mail.refuse(Some(Status::unavailable("away")));
    ended(&mut stage, "echo x").await;
    stage.mail.body(2).await;
    stage.mail.refuse(None);
    let attempts = stage.mail.attempts();
    assert!(attempts.iter().all(|attempt| *attempt == attempts[0]), "{attempts:?}");
}

#[tokio::test]
async fn a_caller_that_does_not_await_the_answer_gets_mail() {
    let mut stage = Stage::new().await;
    let ask = request("echo $$ > pid; until [ -e go ]; do sleep 0.01; done; echo unheard", LONG);
    let mut client = stage.client.clone();
    let call = tokio::spawn(async move { client.run_task(ask).await });
    stage.pid("pid").await;
    call.abort();
    assert!(call.await.expect_err("cancelled").is_cancelled());
    std::fs::write(stage.path("go"), "").expect("written");
    assert!(stage.mail.body(1).await.contains("| unheard"));
    assert_eq!(stage.get(1, 0).await.expect("it ran on").exit_code, 0);
}

#[tokio::test]
async fn the_next_supervisor_reports_tasks_that_ended_with_the_last() {
    let mut stage = Stage::new().await;
    stage.run("echo half done; echo $$ > pid; sleep 1000", 0).await.expect("taken");
    stage.pid("pid").await;
    let stage = stage.restarted().await;
    let body = stage.mail.body(1).await;
    assert!(body.contains("because the harness stopped") && body.contains("| half done"), "{body}");
}
