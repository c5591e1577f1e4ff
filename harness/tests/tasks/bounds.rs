//! Refused requests, and limits of tasks.

use std::fs::File;
use std::io::Read as _;

use hive_core::reason::Reason;
use hive_proto::harness_v1::{RunTaskRequest, TaskState};
use hive_proto::status::reason;
use tonic::Code;

use crate::stage::{LONG, Stage, request, seconds};

#[tokio::test]
async fn more_output_than_is_kept_blocks_nothing_and_its_end_is_reported() {
    let mut stage = Stage::with(&["--bash-output-max-mib", "1"]).await;
    let task = stage.done("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo the end").await;
    assert_eq!((task.state(), task.exit_code), (TaskState::Exited, 0));
    assert_eq!((task.output_bytes, task.kept_bytes), (5_000_009, 1024 * 1024));
    assert_eq!(std::fs::metadata(&task.output_path).expect("there").len(), 1024 * 1024);
    assert!(task.tail.ends_with("x\nthe end\n") && task.tail.len() == 16 * 1024);
    let mut first = [0; 3];
    File::open(&task.output_path).expect("there").read_exact(&mut first).expect("long enough");
    assert_eq!(&first, b"xxx");
}

#[tokio::test]
async fn as_many_as_may_run_together_and_no_more() {
    let mut stage = Stage::new().await;
    for _ in 0..16 {
        stage.run("until [ -e go ]; do sleep 0.05; done; exit 4", 0).await.expect("taken");
    }
    let refused = stage.run("true", 0).await.expect_err("one too many");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(
        refused.message().contains("16 shell tasks run already")
            && refused.message().contains("16]"),
        "{refused}"
    );
    std::fs::write(stage.path("go"), "").expect("written");
    for id in 1..=16 {
        assert_eq!(stage.get(id, 180).await.expect("found").exit_code, 4);
    }
    assert_eq!(stage.done("true").await.id, 17);
}

#[tokio::test]
async fn without_the_group_no_task_starts_or_is_shown_and_running_ones_go_on() {
    let mut stage = Stage::new().await;
    let task = stage.run("until [ -e go ]; do sleep 0.01; done", 0).await.expect("taken");
    stage.supervisor.set_allowed(false);
    for refused in [stage.run("touch never", LONG).await, stage.get(task.id, 0).await] {
        let refused = refused.expect_err("not allowed");
        assert_eq!(
            (refused.code(), reason(&refused)),
            (Code::PermissionDenied, Some(Reason::CapabilityMissing))
        );
    }
    stage.supervisor.set_allowed(true);
    assert_eq!(stage.get(task.id, 0).await.expect("found").state(), TaskState::Running);
    std::fs::write(stage.path("go"), "").expect("written");
    assert_eq!(stage.get(task.id, 180).await.expect("found").state(), TaskState::Exited);
    assert!(!stage.path("never").exists());
}

#[tokio::test]
async fn the_same_request_is_run_once_and_another_under_its_id_not_at_all() {
    let mut stage = Stage::new().await;
    let ask = request("echo x >> count; cat count", LONG);
    let first = stage.ask(ask.clone()).await.expect("taken");
    assert_eq!(stage.ask(ask.clone()).await.expect("answered"), first);
    let mut stage = stage.restarted().await;
    assert_eq!(stage.ask(ask.clone()).await.expect("answered"), first);
    let refused =
        stage.ask(RunTaskRequest { command: "echo y".into(), ..ask }).await.expect_err("refused");
    assert_eq!(reason(&refused), Some(Reason::RequestIdReused));
    assert_eq!(stage.done("cat count").await.tail, "x\n");
}

#[tokio::test]
async fn wrong_fields_are_named() {
    let mut stage = Stage::new().await;
    let good = request("true", 0);
    let wrong = [
        ("request_id", RunTaskRequest { request_id: String::new(), ..good.clone() }),
        ("command", RunTaskRequest { command: " \n".into(), ..good.clone() }),
        ("command", RunTaskRequest { command: "a\0b".into(), ..good.clone() }),
        ("command", RunTaskRequest { command: "x".repeat(128 * 1024), ..good.clone() }),
        ("timeout", RunTaskRequest { timeout: seconds(0), ..good.clone() }),
        ("timeout", RunTaskRequest { timeout: seconds(86_401), ..good.clone() }),
        ("wait", RunTaskRequest { wait: seconds(31), ..good.clone() }),
    ];
    for (field, request) in wrong {
        let refused = stage.ask(request).await.expect_err(field);
        assert_eq!(
            (refused.code(), reason(&refused)),
            (Code::InvalidArgument, Some(Reason::FieldInvalid))
        );
        assert!(refused.message().starts_with(&format!("{field}: ")), "{refused}");
    }
    assert_eq!(stage.get(1, 0).await.expect_err("none was started").code(), Code::NotFound);
    assert_eq!(stage.get(1, 181).await.expect_err("too long").code(), Code::InvalidArgument);
    let longest = format!("exit 0 #{}", "x".repeat(128 * 1024 - 9));
    assert_eq!(stage.done(&longest).await.exit_code, 0);
}

#[tokio::test]
async fn the_kernel_holds_tasks_to_their_limits() {
    let limits =
        ["--bash-memory-max-mib", "256", "--bash-cpu-secs-max", "77", "--bash-file-max-mib", "1"];
    let mut stage = Stage::with(&limits).await;
    let task = stage
        .done("ulimit -d; ulimit -t; ulimit -f; echo \"$0\" $#; head -c 2000000 /dev/zero > large")
        .await;
    assert!(task.tail.starts_with("262144\n77\n1024\nbash 0\n"), "{}", task.tail);
    assert_ne!(task.exit_code, 0);
    assert_eq!(std::fs::metadata(stage.path("large")).expect("there").len(), 1024 * 1024);
}
