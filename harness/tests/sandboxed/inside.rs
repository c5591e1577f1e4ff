//! The view of a task in a sandbox, and the processes that end with the task.

use std::os::unix::fs::symlink;
use std::path::Path;

use hive_harness::process::family;
use hive_proto::harness_v1::TaskState;
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{Stage, lives, wait_until};

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("created");
    std::fs::write(path, text).expect("written");
}

#[tokio::test]
async fn the_directories_of_claude_and_of_the_harness_are_empty_but_for_programs_and_output() {
    let mut stage = Stage::new().await;
    let home = stage.dir.path().to_path_buf();
    for name in [
        ".claude/.credentials.json",
        ".claude/.claude.json",
        ".claude/projects/x/y.jsonl",
        ".hive/tmp/x",
        "run/claude-mcp-config.json",
    ] {
        put(&home.join(name), "secret");
    }
    put(&home.join(".claude/skills/deploy/run.sh"), "echo skill");
    // A link could lead to what is hidden.
    symlink(home.join(".claude"), home.join(".claude/plugins")).expect("linked");
    let task = stage.done("echo output").await;
    let script = "cd ~; find .claude .hive run -type f | sort; cat .claude/plugins/.credentials.json 2>/dev/null; sh .claude/skills/deploy/run.sh; \
                  cat run/tasks/1.out; touch .claude/x .hive/x run/x .claude/skills/deploy/run.sh run/tasks/1.out 2>/dev/null && echo written; \
                  touch written-at-home; mkdir -p d/e && mv written-at-home d/e/ && ln d/e/written-at-home . && echo moved";
    let wanted = [
        ".claude/skills/deploy/run.sh",
        "run/bash-env.sh",
        "run/tasks/1.json",
        "run/tasks/1.out",
        "run/tasks/2.json",
        "run/tasks/2.out",
        "skill",
        "output",
        "moved",
    ];
    assert_eq!(stage.done(script).await.tail.lines().collect::<Vec<_>>(), wanted);
    assert_eq!(task.tail, "output\n");
    assert!(home.join("written-at-home").exists());
}

#[tokio::test]
async fn a_task_sees_its_own_processes_only_and_is_fenced() {
    let mut stage = Stage::new().await;
    let script = format!(
        "ls /proc | grep -c '^[0-9]' ; cat /proc/{}/environ 2>/dev/null | wc -c; cat /proc/1/environ 2>/dev/null | wc -c; kill -9 1 2>/dev/null || echo kept; \
         unshare -U true 2>/dev/null || echo no namespaces; grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'",
        std::process::id()
    );
    let tail = stage.done(&script).await.tail;
    let lines: Vec<&str> = tail.lines().collect();
    assert!(lines[0].parse::<u32>().is_ok_and(|count| count <= 5), "{tail}");
    assert_eq!(lines[1..], ["0", "0", "kept", "no namespaces", "NoNewPrivs:1Seccomp:2"]);
}

#[tokio::test]
async fn all_of_a_task_ends_with_its_sandbox() {
    let mut stage = Stage::new().await;
    let task = stage
        .run("(setsid sleep 1000 & echo $! > stray); echo $$ > pid; sleep 1000", 0)
        .await
        .expect("taken");
    let pids = [stage.pid("pid").await, stage.pid("stray").await];
    assert!(pids.iter().all(|pid| lives(*pid)));
    // The first process of the sandbox is this program's child.
    let own = i32::try_from(std::process::id()).expect("a number");
    let entries = family::table::snapshot();
    let mut sandbox = entries.iter().find(|entry| entry.process.pid == pids[0]).expect("it lives");
    while sandbox.parent != own {
        sandbox = entries
            .iter()
            .find(|entry| entry.process.pid == sandbox.parent)
            .expect("it is below us");
    }
    kill_process(Pid::from_raw(sandbox.process.pid).expect("a number"), Signal::KILL)
        .expect("it lives");
    wait_until("all are gone", || !pids.iter().any(|pid| lives(*pid))).await;
    let task = stage.get(task.id, 30).await.expect("found");
    assert_eq!((task.state(), task.signal), (TaskState::Signaled, 9));
}
