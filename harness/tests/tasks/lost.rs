//! A harness that dies without a word: the next one ends what is left, and says so.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use hive_harness::driver::link::Link;
use hive_harness::task::BrokerWaker;
use hive_proto::harness_v1::TaskState;

use crate::stage::{self, Stage, client, lives, pid, request, wait_until};

/// Names the directory for the host of a supervisor that is to be killed.
const HOST_DIR_ENV: &str = "TASK_HOST_DIR";

/// No test: what the test below starts as a process of its own.
#[tokio::test]
#[ignore = "started by another test"]
async fn host() {
    let Some(dir) = std::env::var_os(HOST_DIR_ENV).map(PathBuf::from) else { return };
    let channel = hive_proto::connect::connect_lazy(&dir.join("no.sock")).expect("a short path");
    let (_attached, session) = tokio::sync::watch::channel(Some("session".to_owned()));
    let _supervisor = stage::supervisor(
        &dir,
        &[],
        Arc::new(BrokerWaker { link: Link::new(channel.into(), session) }),
    )
    .await;
    std::fs::write(dir.join("ready"), "").expect("written");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_tasks_of_a_killed_harness_are_ended_and_reported() {
    let dir = Arc::new(tempfile::tempdir().expect("a directory"));
    let mut host = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "lost::host", "--ignored"])
        .env(HOST_DIR_ENV, dir.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("the host starts");
    wait_until("the host is ready", || dir.path().join("ready").exists()).await;
    let mut client = client(dir.path());
    let command = "sleep 1000 & echo $! > child; (setsid sh -c 'echo $$ > stray; exec sleep 1000' &); echo $$ > root; echo begun; wait";
    let task = client
        .run_task(request(command, 0))
        .await
        .expect("taken")
        .into_inner()
        .task
        .expect("a task");
    let ended = client
        .run_task(request("echo before", 30))
        .await
        .expect("taken")
        .into_inner()
        .task
        .expect("a task");
    let mut pids = Vec::new();
    for name in ["root", "child", "stray"] {
        pids.push(pid(&dir.path().join("state").join(name)).await);
    }
    wait_until("the output is kept", || {
        std::fs::read_to_string(&task.output_path).is_ok_and(|text| text == "begun\n")
    })
    .await;
    host.kill().expect("it lives");
    host.wait().expect("it ends");
    assert!(pids.iter().all(|pid| lives(*pid)), "a killed harness leaves them behind");

    let mut stage = Stage::again(dir, &[]).await;
    assert!(!pids.iter().any(|pid| lives(*pid)));
    let lost = stage.get(task.id, 0).await.expect("on record");
    assert_eq!((lost.state(), lost.tail.as_str()), (TaskState::Lost, "begun\n"));
    assert_eq!(stage.get(ended.id, 0).await.expect("on record"), ended);
    assert_eq!(stage.done("true").await.id, 3, "no id is given twice");
}

#[tokio::test]
async fn a_number_that_belongs_to_another_process_by_now_is_left_alone() {
    let mut stage = Stage::new().await;
    stage.done("true").await;
    let mut other = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
    let process = hive_harness::process::family::find(i32::try_from(other.id()).expect("a number"))
        .expect("it lives");
    let dir = Arc::clone(&stage.dir);
    stage.supervisor.shutdown().await;
    // A record of a task that ran under the same number, earlier.
    let path = dir.path().join("run/tasks/1.json");
    let mut record =
        hive_harness::task::record::Record::parse(&std::fs::read_to_string(&path).expect("there"))
            .expect("a record");
    (record.end, record.is_reported) = (None, false);
    record.root =
        Some(hive_harness::process::family::Process { start: process.start - 1, ..process });
    std::fs::write(&path, record.text()).expect("written");
    let mut stage = Stage::again(dir, &[]).await;
    assert_eq!(stage.get(1, 0).await.expect("on record").state(), TaskState::Lost);
    assert!(other.try_wait().expect("it can be waited for").is_none());
    other.kill().expect("it lives");
    other.wait().expect("it ends");
}
