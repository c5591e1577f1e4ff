//! Signals to the scripted claude, with the measured behaviour of the real one.

use std::path::Path;

use hive_tests::scripted::script::{self, Rule, Step};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use crate::rig::{Rig, finish, start};

/// A claude that has done `steps` and hangs, and its rig.
async fn hanging(mut steps: Vec<Step>) -> (Rig, Child) {
    let rig = Rig::new().await;
    // The marker is a call, so that the broker reports when it is there.
    steps.push(Step::Tool { tool: "get_agent_meta".to_owned(), input: serde_json::json!({}) });
    steps.push(Step::Hang { hang: true });
    let path = rig.path("script.json");
    script::write(&path, &[Rule { when: String::new(), steps }]).expect("it is written");
    let child = start(&mut rig.scripted(Some(&path)), "Message 17 from agent bob:\n| x\n").await;
    rig.broker.wait_for_calls(1).await;
    (rig, child)
}

fn send(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("it runs");
    kill_process(pid, signal).expect("it takes signals");
}

#[tokio::test]
async fn sigterm_ends_it_without_a_result() {
    let (_rig, child) = hanging(Vec::new()).await;
    send(&child, Signal::TERM);
    let finished = finish(child).await;
    assert_eq!((finished.code, finished.result().is_null()), (Some(143), true));
}

#[tokio::test]
async fn sigint_ends_it_with_an_error_and_exit_0() {
    let (_rig, child) = hanging(Vec::new()).await;
    send(&child, Signal::INT);
    let finished = finish(child).await;
    assert_eq!(
        (finished.code, &finished.result()["subtype"]),
        (Some(0), &"error_during_execution".into())
    );
}

#[tokio::test]
async fn it_can_be_deaf_to_sigterm() {
    let (_rig, child) = hanging(vec![Step::IgnoreSigterm { ignore_sigterm: true }]).await;
    send(&child, Signal::TERM);
    send(&child, Signal::INT);
    let finished = finish(child).await;
    assert_eq!(finished.code, Some(0), "it was SIGINT that ended it");
}

fn fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).expect("a fifo");
}

#[tokio::test]
async fn its_children_outlive_it() {
    let rig = Rig::new().await;
    let (gate, done) = (rig.path("gate"), rig.path("done"));
    let program = format!(
        "echo $$ > {0}.tmp && mv {0}.tmp {0}; read line < {1}",
        done.display(),
        gate.display()
    );
    fifo(&gate);
    let spawn = vec!["sh".to_owned(), "-c".to_owned(), program];
    let steps =
        vec![Step::Spawn { spawn, setsid: true }, Step::WaitFile { wait_file: done.clone() }];
    let path = rig.path("script.json");
    script::write(&path, &[Rule { when: String::new(), steps }]).expect("it is written");
    let finished =
        finish(start(&mut rig.scripted(Some(&path)), "Message 17 from agent bob:\n| x\n").await)
            .await;
    assert_eq!(finished.code, Some(0));
    // The gate opens for writing only while the grandchild reads; the written text ends the
    // grandchild.
    std::fs::write(&gate, "go\n").expect("the grandchild reads");
}

#[tokio::test]
async fn it_can_end_by_a_signal() {
    let rig = Rig::new().await;
    let path =
        rig.script([("", vec![Step::Text { text: "not yet".to_owned() }, Step::Die { die: 9 }])]);
    let finished =
        finish(start(&mut rig.scripted(Some(&path)), "Message 17 from agent bob:\n| x\n").await)
            .await;
    assert_eq!((finished.code, finished.result().is_null()), (None, true), "{finished:?}");
}

#[tokio::test]
async fn a_detached_child_has_another_parent() {
    let rig = Rig::new().await;
    let (gate, done) = (rig.path("gate"), rig.path("done"));
    fifo(&gate);
    let program = format!(
        "echo $$ $PPID > {0}.tmp && mv {0}.tmp {0}; read line < {1}",
        done.display(),
        gate.display()
    );
    let daemon = vec!["sh".to_owned(), "-c".to_owned(), program];
    let meta = Step::Tool { tool: "get_agent_meta".to_owned(), input: serde_json::json!({}) };
    let steps = vec![
        Step::Daemon { daemon },
        Step::WaitFile { wait_file: done.clone() },
        meta,
        Step::Hang { hang: true },
    ];
    let path = rig.script([("", steps)]);
    let child = start(&mut rig.scripted(Some(&path)), "Message 17 from agent bob:\n| x\n").await;
    rig.broker.wait_for_calls(1).await;
    let told = std::fs::read_to_string(&done).expect("it has written it");
    let [own, _] = told.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{told}") };
    let stat = std::fs::read_to_string(format!("/proc/{own}/stat")).expect("it lives");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let claude = child.id().expect("it runs").to_string();
    assert_ne!(fields[1], claude, "its parent is another");
    assert_ne!(fields[3], claude, "its session is another");
    send(&child, Signal::KILL);
    finish(child).await;
    std::fs::write(&gate, "go\n").expect("it has outlived claude");
}
