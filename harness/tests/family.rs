//! Which processes the end of a turn ends. One test, because it ends everything below its own
//! process.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use hive_harness::process::family::tasks::MARK_ENV;
use hive_harness::process::family::{Family, find, is_alive};
use rustix::process::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Prints a child, and a process that has left the tree; then waits.
const SCRIPT: &str = "sleep 1000 & echo $!; (setsid bash -c 'echo $$; exec sleep 1000' &); wait";

fn start(script: &str, mark: Option<&str>) -> Child {
    let mut command = Command::new("bash");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    if let Some(mark) = mark {
        command.env(MARK_ENV, mark);
    }
    command.spawn().expect("bash starts")
}

fn pid(child: &Child) -> i32 {
    i32::try_from(child.id().expect("it runs")).expect("a number")
}

/// Reads the two processes that the script prints.
async fn printed(child: &mut Child) -> (i32, i32) {
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next =
        async || lines.next_line().await.expect("text").expect("a line").parse().expect("a number");
    (next().await, next().await)
}

fn lives(pid: i32) -> bool {
    find(pid).is_some_and(is_alive)
}

#[tokio::test]
async fn leftovers_of_a_turn_end_and_tasks_and_kept_processes_go_on() {
    let mut before = start("sleep 1000", None);
    let family = Family::found().expect("the subreaper");
    let (task, mut task_child) = family
        .tasks()
        .enter("n:1", || {
            let child = start(SCRIPT, Some("n:1"));
            let root = find(pid(&child));
            Ok::<_, ()>((child, root))
        })
        .expect("started");
    let mut kept = start(SCRIPT, None);
    let (task_below, task_stray) = printed(&mut task_child).await;
    let (kept_below, kept_stray) = printed(&mut kept).await;
    let kept_pid = Pid::from_raw(pid(&kept)).expect("a number");

    assert_eq!(family.end_strays(&[kept_pid]).await, 0);
    assert!(
        lives(task_below) && lives(task_stray),
        "a running task is left alone, and what carries its mark"
    );
    assert!(lives(kept_below) && kept.try_wait().expect("it can be waited for").is_none());
    assert!(!lives(kept_stray), "what has left a kept process is ended");

    assert_eq!(family.end_all().await, 0);
    assert!(
        lives(task_below)
            && lives(task_stray)
            && before.try_wait().expect("it can be waited for").is_none()
    );
    assert!(!lives(kept_below) && !lives(kept_pid.as_raw_pid()));

    // The exit status of an ended process stays available to the code that started it.
    let ended = Pid::from_raw(pid(&task_child)).expect("a number");
    rustix::process::kill_process(ended, rustix::process::Signal::KILL).expect("it lives");
    assert_eq!(family.end_all().await, 0);
    assert_eq!(task_child.wait().await.expect("it was not reaped by another").signal(), Some(9));
    drop(task);
    assert_eq!(family.end_all().await, 0);
    assert!(
        !lives(task_below) && !lives(task_stray),
        "what the task left behind is a leftover now"
    );
    assert!(before.try_wait().expect("it can be waited for").is_none());
    before.kill().await.expect("it lives");
}
