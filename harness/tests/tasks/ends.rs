//! The ways in which tasks end, and that all processes of a task end with it.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use hive_proto::harness_v1::{RunTaskRequest, TaskState};

use crate::stage::{LONG, Stage, lives, request, seconds, wait_until};

#[tokio::test]
async fn exit_codes_signals_and_output_are_reported() {
    let mut stage = Stage::new().await;
    let task = stage.done("pwd; echo one; echo two >&2; echo three; exit 3").await;
    let state_dir = stage.dir.path().join("state").canonicalize().expect("there");
    assert_eq!((task.id, task.state(), task.exit_code, task.signal), (1, TaskState::Exited, 3, 0));
    assert_eq!(task.tail, format!("{}\none\ntwo\nthree\n", state_dir.display()));
    assert_eq!(
        (task.output_bytes, task.kept_bytes),
        (task.tail.len() as u64, task.tail.len() as u64)
    );
    assert_eq!(std::fs::read_to_string(&task.output_path).expect("there"), task.tail);
    assert!(task.end_time.is_some() && task.process_group == 0 && task.leftover_count == 0);
    let task = stage.done("kill -SEGV $$").await;
    assert_eq!(
        (task.id, task.state(), task.exit_code, task.signal),
        (2, TaskState::Signaled, 0, 11)
    );
    let task = stage.done("cat; read -r line || echo nothing to read").await;
    assert_eq!((task.exit_code, task.tail.as_str()), (0, "nothing to read\n"));
    for path in ["run/tasks", "run/tasks.sock", "run/tasks/1.out", "run/tasks/1.json"] {
        let mode =
            std::fs::metadata(stage.dir.path().join(path)).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}");
    }
}

#[tokio::test]
async fn keys_do_not_reach_a_task_and_the_way_to_the_agents_socket_does() {
    let mut stage = Stage::new().await;
    let task =
        stage.done("env -0 | tr '\\n\\0' ' \\n' | cut -d= -f1 | sort | tr '\\n' ' '; echo $HIVE_SOCKET; type -t cargo").await;
    assert_eq!(
        task.tail,
        "BASH_ENV HIVE_SOCKET HIVE_TASK HOME PATH PWD SHLVL _ /run/agent.sock\nfunction\n"
    );
}

#[tokio::test]
async fn a_task_that_ignores_its_end_is_killed_when_its_time_is_over() {
    let mut stage = Stage::new().await;
    let ask = |command: &str| RunTaskRequest { timeout: seconds(1), ..request(command, LONG) };
    let task = stage
        .ask(ask("trap 'echo asked' TERM; echo $$ > pid; while :; do sleep 1000 & wait $!; done"))
        .await
        .expect("taken");
    assert_eq!((task.state(), task.tail.as_str()), (TaskState::TimedOut, "asked\n"));
    assert!(!lives(stage.pid("pid").await));
    // The grace period ends as soon as a process obeys.
    let since = Instant::now();
    let task = stage.ask(ask("sleep 1000")).await.expect("taken");
    assert_eq!(task.state(), TaskState::TimedOut);
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    assert_eq!(task.timeout, seconds(1));
}

#[tokio::test]
async fn processes_that_a_command_leaves_end_with_it_wherever_they_fled() {
    let mut stage = Stage::new().await;
    let task = stage
        .done(
            "sleep 1000 & echo $! > background
             setsid sh -c 'echo $$ > session; trap \"\" TERM; sleep 1000; :' &
             (setsid sh -c 'echo $$ > daemon; exec sleep 1000' &)
             env -i /bin/sleep 1000 & echo $! > bare
             until [ -s session ] && [ -s daemon ]; do sleep 0.01; done
             echo started",
        )
        .await;
    assert_eq!(
        (task.state(), task.exit_code, task.tail.as_str()),
        (TaskState::Exited, 0, "started\n")
    );
    for name in ["background", "session", "daemon", "bare"] {
        let pid = stage.pid(name).await;
        assert!(!lives(pid), "{name}");
    }
    // The four, and the sleep of the one that did not listen.
    assert_eq!(task.leftover_count, 5);
}

#[tokio::test]
async fn other_processes_are_left_alone() {
    let mut stage = Stage::new().await;
    let mut other = std::process::Command::new("sleep")
        .arg("1000")
        .env("HIVE_TASK", "another:1")
        .spawn()
        .expect("sleep starts");
    stage.done("sleep 1000 &").await;
    assert!(other.try_wait().expect("it can be waited for").is_none());
    other.kill().expect("it lives");
    other.wait().expect("it ends");
}

#[tokio::test]
async fn a_running_task_can_be_shown_and_awaited() {
    let mut stage = Stage::new().await;
    let task = stage
        .run("echo begun; until [ -e go ]; do sleep 0.01; done; echo done", 0)
        .await
        .expect("taken");
    assert_eq!(task.state(), TaskState::Running);
    assert!(task.end_time.is_none() && (task.process_group > 0) != crate::SANDBOXED);
    let mut client = stage.client.clone();
    let mut tail = String::new();
    while tail.is_empty() {
        let request = hive_proto::harness_v1::GetTaskRequest { id: task.id, wait: None };
        tail =
            client.get_task(request).await.expect("found").into_inner().task.expect("a task").tail;
    }
    assert_eq!(tail, "begun\n");
    std::fs::write(stage.path("go"), "").expect("written");
    let task = stage.get(task.id, 180).await.expect("found");
    assert_eq!((task.state(), task.tail.as_str()), (TaskState::Exited, "begun\ndone\n"));
}

#[tokio::test]
async fn the_end_of_the_supervisor_is_the_end_of_its_tasks() {
    let mut stage = Stage::new().await;
    let task = stage
        .run("setsid sleep 1000 & echo $! > stray; echo $$ > pid; sleep 1000", 0)
        .await
        .expect("taken");
    let pids = [stage.pid("pid").await, stage.pid("stray").await];
    let mut stage = stage.restarted().await;
    wait_until("all are gone", || !pids.iter().any(|pid| lives(*pid))).await;
    let task = stage.get(task.id, 0).await.expect("still on record");
    assert_eq!(task.state(), TaskState::Lost);
    assert!(task.end_time.is_some());
}
