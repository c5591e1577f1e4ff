//! `hivectl up`: a whole hive by one command, confined where the host can do it, loudly unconfined
//! where not, and gone without a trace.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use hive_proto::v1::{EventKind, TurnOutcome};
pub(crate) use hive_tests::rig::Up;
use hive_tests::rig::{QUICK_LIMITS, Rig, run, soon, strays};
use hive_tests::scripted::script::{self, Rule};
use rustix::process::{Pid, Signal, kill_process};

use crate::steps::{acked, answer, handled, lives, rule, text, touch, unread, wait_for};

/// A hive's directory, with everything where the rig expects it. Its agents share files, because
/// scripts report their progress by files of the rig.
pub(crate) fn hive() -> Rig {
    at("shared_files")
}

/// Makes a hive with agents at this level of isolation.
fn at(level: &str) -> Rig {
    let agents = "[agents.ada]\n[agents.bob]\nparent = \"ada\"\n";
    let broker = "[broker]\nstate_dir = \"state\"\nruntime_dir = \"run\"\n";
    Rig::unprivileged(&format!(
        "[hive]\nname = \"test\"\nisolation = \"{level}\"\n{broker}{QUICK_LIMITS}{agents}"
    ))
}

/// Makes ada stop during her answer.
pub(crate) fn ada_stops(rig: &Rig) {
    let steps = vec![
        touch(rig, "reached"),
        wait_for(rig, "go"),
        answer("operator", "still here"),
        text("Done."),
    ];
    let again = vec![answer("operator", "still here"), text("Done.")];
    script(rig, &[rule("This is attempt", again), rule("", steps)]);
}

/// Has every claude of the hive follow these rules.
pub(crate) fn script(rig: &Rig, rules: &[Rule]) {
    let script = rig.path("script.json");
    script::write(&script, rules).expect("the script is written");
    let config = rig.read("hive.toml");
    rig.configure(&format!(
        "{config}[claude]\nenv = {{ SCRIPTED_CLAUDE_FILE = \"{}\" }}\n",
        script.display()
    ));
}

#[tokio::test]
async fn it_runs_a_hive_restarts_dead_processes_and_leaves_nothing() {
    let rig = hive();
    let no_programs = rig.path("no-programs");
    std::fs::create_dir(&no_programs).expect("a directory");
    let mut up = Up::start_with(&rig, &no_programs, &["--no-isolation"]).await;
    assert!(up.said.contains("NOT ISOLATED: --no-isolation was given"), "{}", up.said);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    watch.kinds(EventKind::HarnessAttached, 2).await;
    let status = rig.hivectl(&["status"]).await;
    assert_eq!(status.code, 8, "{status:?}");
    assert_eq!(status.stdout.matches("ISOLATED").count(), 1, "{status:?}");
    assert!(status.stdout.contains("ada, bob are NOT ISOLATED"), "{status:?}");

    // A question that needs both agents.
    let said = rig.hivectl(&["--json", "send", "ada", "ask bob: how are you?"]).await;
    let receipt: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    let asked = receipt["message_id"].as_u64().expect("the message's id");
    watch.kind("operator", EventKind::MessageAccepted).await;
    let inbox = rig.hivectl(&["inbox"]).await;
    assert!(inbox.stdout.contains("bob answers: I have read \"how are you?\"."), "{inbox:?}");
    assert_eq!(
        unread(&operator, "operator").await.last().map(|(_, answers)| *answers),
        Some(asked)
    );

    // His answer has arrived, but his turn may still be ending; he is killed between turns.
    let answered = operator.turns("bob").await.last().expect("bob's turn").message_id;
    acked(&rig, "bob", answered).await;
    let bob = rig.the_one("bob", "hive");
    kill_process(bob, Signal::KILL).expect("bob's harness runs");
    up.says("bob ended (signal: 9 (SIGKILL)); again in").await;
    watch.kind("bob", EventKind::HarnessAttached).await;
    assert_ne!(rig.the_one("bob", "hive"), bob);
    handled(&rig, &operator, "bob", "Hello bob.").await;
    assert!(lives(&operator.turns("bob").await).iter().all(|life| *life == (TurnOutcome::Ok, 1)));
    up.interrupted(rig).await;
}

/// An accepted level is no finding.
#[tokio::test]
async fn a_broker_that_takes_connections_and_then_does_not_start_is_reported() {
    let rig = hive();
    let no_programs = rig.path("no-programs");
    let up = Up::start(&rig, &no_programs).await;
    up.signal(Signal::INT);
    up.ends(&rig).await;
    // The header of the file is whole, so the broker opens its sockets before it reads the rest.
    let database = File::options().write(true).open(rig.path("state/hive.db")).expect("opened");
    database.write_all_at(&[0xff; 2000], 100).expect("damaged");
    let said = run(Up::command(&rig, &no_programs)).await;
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("the broker ended at once"), "{said:?}");
    assert!(said.stderr.contains("the file is damaged"), "{said:?}");
    assert!(!rig.operator_socket().exists(), "{said:?}");
    assert_eq!(strays(rig.dir()), [], "{said:?}");
    rig.end().await;
}

#[tokio::test]
async fn isolation_that_is_not_wanted_is_no_finding() {
    let rig = at("none");
    let no_programs = rig.path("no-programs");
    std::fs::create_dir(&no_programs).expect("a directory");
    let up = Up::start(&rig, &no_programs).await;
    assert!(up.said.contains("isolation: none, as hive.toml states"), "{}", up.said);
    assert!(!up.said.contains("NOT ISOLATED"), "{}", up.said);
    let mut watch = rig.watch().await;
    watch.kinds(EventKind::HarnessAttached, 2).await;
    let status = rig.hivectl(&["status"]).await;
    assert_eq!(status.code, 0, "{status:?}");
    assert!(
        status.stdout.contains("isolation   none for 2 agents, as the configuration accepts"),
        "{status:?}"
    );
    let doctor = rig.hivectl(&["--json", "doctor"]).await;
    let checks: serde_json::Value = serde_json::from_str(&doctor.stdout).expect("JSON");
    let state = |name: &str| {
        checks
            .as_array()
            .and_then(|all| all.iter().find(|check| check["name"] == name))
            .map(|check| check["state"].clone())
    };
    for name in ["isolation", "bubblewrap", "files", "sockets", "unfinished"] {
        assert_eq!(state(name), Some("ok".into()), "{name}: {doctor:?}");
    }
    up.interrupted(rig).await;
}

/// The broker dies in mid-turn, and is restarted under the harnesses.
#[tokio::test]
async fn a_broker_that_dies_is_started_again_under_its_harnesses() {
    let rig = hive();
    ada_stops(&rig);
    let mut up = Up::start(&rig, Path::new("/usr/bin:/bin")).await;
    let mut watch = rig.watch().await;
    let asked = rig.operator().await.send("ada", "Hello ada.").await;
    rig.appeared("reached").await;
    let status = rig.hivectl(&["--json", "status"]).await;
    let status: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
    let broker = status["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    kill_process(broker.expect("the broker's pid"), Signal::KILL).expect("the broker runs");
    up.says("hived ended (signal: 9 (SIGKILL)); again in").await;
    rig.touch("go");
    // The end of the turn is the first event of the next broker.
    watch.kind("ada", EventKind::TurnEnded).await;
    let operator = rig.operator().await;
    assert_eq!(lives(&operator.turns("ada").await), [(TurnOutcome::Ok, 1)]);
    assert_eq!(unread(&operator, "operator").await, [("still here".to_owned(), asked)]);
    up.interrupted(rig).await;
}

/// In a sandbox agents ask and answer as anywhere.
#[tokio::test]
async fn in_sandboxes_agents_write_to_each_other() {
    let rig = at("sandbox");
    let up = Up::start(&rig, Path::new("/usr/bin:/bin")).await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    watch.kinds(EventKind::HarnessAttached, 2).await;
    let asked = operator.send("ada", "ask bob: how are you?").await;
    watch.kind("operator", EventKind::MessageAccepted).await;
    assert_eq!(
        unread(&operator, "operator").await,
        [("bob answers: I have read \"how are you?\".".to_owned(), asked)]
    );
    assert!(up.said.contains("isolation: sandbox, by /"), "{}", up.said);
    // A task is known from its first run, and some begin a moment after the broker.
    let all_have_run = async {
        loop {
            let status = rig.hivectl(&["--json", "status"]).await;
            let findings: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
            if findings["background_tasks"].as_array().is_some_and(|tasks| tasks.len() >= 6) {
                return (status, findings);
            }
        }
    };
    let (status, findings) = soon("each background task has run", all_have_run).await;
    for finding in ["not_isolated_agents", "partly_isolated_agents"] {
        assert_eq!(findings[finding], serde_json::json!([]), "{status:?}");
    }
    let tasks = findings["background_tasks"].as_array().expect("a list");
    let named: Vec<_> = tasks.iter().map(|task| task["name"].as_str().expect("text")).collect();
    assert_eq!(named, ["actions", "deadlines", "health", "leases", "retention", "search-index"]);
    assert!(tasks.iter().all(|task| task["failure_count"] == 0), "{tasks:?}");
    up.interrupted(rig).await;
}

/// `up` is killed during its work, with all its processes: no process stays behind, and the next
/// `up` takes the work up again.
async fn killed_and_started_again(path: &Path, rig: Rig) {
    ada_stops(&rig);
    let up = Up::start(&rig, path).await;
    let asked = rig.operator().await.send("ada", "Hello ada.").await;
    rig.appeared("reached").await;
    up.killed(&rig).await;
    let up = Up::start(&rig, path).await;
    acked(&rig, "ada", asked).await;
    let operator = rig.operator().await;
    assert_eq!(unread(&operator, "operator").await, [("still here".to_owned(), asked)]);
    let turns = operator.turns("ada").await;
    // Whether the harness still got through with its word depends on who ended first.
    assert!(
        matches!(turns[0].outcome(), TurnOutcome::Vanished | TurnOutcome::Drained),
        "{turns:?}"
    );
    assert_eq!((turns.len(), turns[1].outcome()), (2, TurnOutcome::Ok));
    up.interrupted(rig).await;
}

#[tokio::test]
async fn killed_with_bubblewrap() {
    killed_and_started_again(Path::new("/usr/bin:/bin"), hive()).await;
}

#[tokio::test]
async fn killed_without_bubblewrap() {
    let rig = at("none");
    let no_programs = rig.path("no-programs");
    std::fs::create_dir(&no_programs).expect("a directory");
    killed_and_started_again(&no_programs, rig).await;
}

/// The kernel reports no death from before it was asked, so a child looks for its parent then.
#[tokio::test]
async fn killed_between_the_fork_of_a_child_and_its_program() {
    let rig = hive();
    let child_of = |parent: Pid, name: &str| {
        let mut command = rig.user_command(&rig.path("bin/hivectl"));
        command.arg("tied-to").arg(parent.as_raw_nonzero().to_string());
        command.arg("/usr/bin/touch").arg(rig.path(name));
        run(command)
    };
    let own = rustix::process::getpid();
    let said = child_of(own, "begun").await;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(rig.path("begun").exists());
    let said = child_of(Pid::INIT, "orphan").await;
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("`hivectl up` has ended"), "{said:?}");
    assert!(!rig.path("orphan").exists());
    rig.end().await;
}
