//! Agents and settings that come, change and go while a hive runs.

use std::path::Path;

use hive_proto::v1::{DeliveryState, EventKind, HarnessState, RedeliveryCause, TurnOutcome};
use hive_tests::rig::{Rig, Said, Watch};
use hive_tests::scripted::script;
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::steps::{acked, answer, ended, handled, lives, rule, standing, text, tool, unread};
use crate::up::{Up, ada_stops, hive};

const PATH: &str = "/usr/bin:/bin";

async fn up(rig: &Rig) -> Up {
    Up::start(rig, Path::new(PATH)).await
}

/// Runs `hivectl` and insists that it ends well.
async fn well(rig: &Rig, args: &[&str]) -> Said {
    let said = rig.hivectl(args).await;
    assert_eq!(said.code, 0, "{args:?}: {said:?}");
    said
}

async fn attached(watch: &mut Watch, agent: &str) {
    watch.kind(agent, EventKind::HarnessAttached).await;
}

#[tokio::test]
async fn an_agent_that_is_created_at_run_time_lives_through_kills_of_harness_and_hive() {
    let rig = hive();
    let mut hive = up(&rig).await;
    let mut watch = rig.watch_from_now().await;
    well(&rig, &["agent", "create", "eve", "--parent", "ada"]).await;
    attached(&mut watch, "eve").await;
    let operator = rig.operator().await;
    handled(&rig, &operator, "eve", "Hello eve.").await;

    kill_process(rig.the_one("eve", "hive"), Signal::KILL).expect("eve's harness runs");
    hive.says("eve ended (exit status: 137); again in").await;
    attached(&mut watch, "eve").await;
    handled(&rig, &operator, "eve", "Hello again.").await;

    hive.killed(&rig).await;
    let hive = up(&rig).await;
    let operator = rig.operator().await;
    handled(&rig, &operator, "eve", "Still there?").await;
    let outcomes: Vec<TurnOutcome> =
        operator.turns("eve").await.iter().map(hive_proto::v1::Turn::outcome).collect();
    assert_eq!(outcomes, [TurnOutcome::Ok; 3]);
    hive.interrupted(rig).await;
}

#[tokio::test]
async fn a_long_reminder_of_an_agent_that_was_created_at_run_time_becomes_a_file() {
    let rig = hive();
    let body = "long ".repeat(1000);
    let remind = tool("remind", json!({"message": body, "delay_seconds": 1}));
    let rules = [rule("Set it.", vec![remind, text("Done.")]), rule("", vec![text("Done.")])];
    crate::up::script(&rig, &rules);
    let hive = up(&rig).await;
    let mut watch = rig.watch_from_now().await;
    well(&rig, &["agent", "create", "eve"]).await;
    attached(&mut watch, "eve").await;
    rig.operator().await.send("eve", "Set it.").await;
    let fired = watch.kind("eve", EventKind::ReminderFired).await;
    let file = rig.path(format!("agents/eve/state/reminders/{}.md", fired.reminder_id));
    assert_eq!(std::fs::read_to_string(file).expect("the file is there"), body);
    hive.interrupted(rig).await;
}

#[tokio::test]
async fn a_stopped_agent_stays_stopped_through_kills_and_its_mail_waits() {
    let rig = hive();
    let mut hive = up(&rig).await;
    let mut watch = rig.watch_from_now().await;
    well(&rig, &["agent", "create", "eve"]).await;
    attached(&mut watch, "eve").await;
    well(&rig, &["agent", "stop", "eve", "--wait"]).await;
    hive.says("eve is stopped, and its harness has ended").await;
    let operator = rig.operator().await;
    operator.does("eve", HarnessState::Stopped).await;
    let waiting = operator.send("eve", "Hello eve.").await;

    hive.killed(&rig).await;
    let hive = up(&rig).await;
    // Harnesses are started in the order of their names.
    let mut watch = rig.watch_from_now().await;
    well(&rig, &["agent", "create", "fay"]).await;
    attached(&mut watch, "fay").await;
    let operator = rig.operator().await;
    assert!(!operator.get_agent("eve").await.running, "a stopped agent has no harness");
    assert_eq!(operator.delivery("eve", waiting).await.state(), DeliveryState::Ready);
    assert_eq!(operator.turns("eve").await, []);
    let refused = rig.hivectl(&["agent", "restart", "eve"]).await;
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("hivectl agent start"), "{refused:?}");

    well(&rig, &["agent", "start", "eve"]).await;
    acked(&rig, "eve", waiting).await;
    hive.interrupted(rig).await;
}

#[tokio::test]
async fn stopping_an_agent_requeues_its_running_turn() {
    let rig = hive();
    ada_stops(&rig);
    let hive = up(&rig).await;
    let operator = rig.operator().await;
    let asked = operator.send("ada", "Hello ada.").await;
    rig.appeared("reached").await;
    let said = well(&rig, &["agent", "stop", "ada", "--wait"]).await;
    assert!(said.stdout.contains("has ended"), "{said:?}");
    let (state, _, cause) = standing(&operator, "ada", asked).await;
    assert_eq!((state, cause), (DeliveryState::Ready, RedeliveryCause::Drained));
    rig.touch("go");
    well(&rig, &["agent", "start", "ada"]).await;
    acked(&rig, "ada", asked).await;
    let outcomes: Vec<TurnOutcome> =
        operator.turns("ada").await.iter().map(hive_proto::v1::Turn::outcome).collect();
    assert_eq!(outcomes, [TurnOutcome::Drained, TurnOutcome::Ok]);
    assert_eq!(unread(&operator, "operator").await, [("still here".to_owned(), asked)]);
    hive.interrupted(rig).await;
}

#[tokio::test]
async fn a_purged_agent_leaves_nothing_to_the_next_one_of_its_name() {
    let rig = hive();
    ada_stops(&rig);
    let mut hive = up(&rig).await;
    let mut watch = rig.watch_from_now().await;
    well(&rig, &["agent", "create", "eve"]).await;
    attached(&mut watch, "eve").await;
    let operator = rig.operator().await;
    operator.send("eve", "one").await;
    rig.appeared("reached").await;
    operator.send("eve", "two").await;
    std::fs::write(rig.path("agents/eve/state/notes.md"), "of the first eve").expect("a file");
    std::os::unix::fs::symlink(rig.path("hive.toml"), rig.path("agents/eve/state/link"))
        .expect("a link");

    // During her turn, and only with a confirmation.
    let asked = rig.hivectl(&["agent", "retire", "eve", "--purge"]).await;
    assert_eq!(asked.code, 2, "{asked:?}");
    let said = well(&rig, &["agent", "retire", "eve", "--purge", "--yes"]).await;
    assert!(
        said.stdout.contains("2 deliveries were dropped; its directories are deleted"),
        "{said:?}"
    );
    hive.says("eve is purged, and its directories are deleted").await;
    assert!(!rig.path("agents/eve").exists() && !rig.path("log/eve.log").exists());
    assert!(rig.path("hive.toml").exists(), "no link is followed");
    assert_eq!(rig.running("eve", "hive"), []);

    rig.touch("go");
    well(&rig, &["agent", "create", "eve"]).await;
    attached(&mut watch, "eve").await;
    assert!(operator.deliveries("eve", &[]).await.is_empty());
    assert_eq!(operator.turns("eve").await, []);
    assert!(!rig.path("agents/eve/state/notes.md").exists());
    handled(&rig, &operator, "eve", "Hello, second eve.").await;
    assert_eq!(lives(&operator.turns("eve").await), [(TurnOutcome::Ok, 1)]);
    hive.interrupted(rig).await;
}

#[tokio::test]
async fn a_purge_of_a_killed_hive_is_completed_by_the_next() {
    let mut rig = hive();
    let mut broker = rig.broker_command();
    broker.arg("--agents-dir").arg(rig.path("agents"));
    rig.for_user(&mut broker);
    rig.start_broker_by(broker).await;
    well(&rig, &["agent", "create", "eve"]).await;
    rig.user_dir("agents/eve/state");
    let purged =
        rig.hivectl(&["--timeout", "1", "agent", "retire", "eve", "--purge", "--yes"]).await;
    assert!(purged.stdout.contains("its directories are not deleted yet"), "{purged:?}");
    well(&rig, &["agent", "create", "eve"]).await;
    rig.kill_broker().await;

    let mut hive = up(&rig).await;
    hive.says("eve is purged, and its directories are deleted").await;
    let operator = rig.operator().await;
    handled(&rig, &operator, "eve", "Hello, second eve.").await;
    hive.interrupted(rig).await;
}

/// Writes a script that answers with these words; its path.
fn script_that_answers(rig: &Rig, words: &str) -> String {
    let file = rig.path(format!("{words}.json"));
    script::write(&file, &[rule("", vec![answer("operator", words), text("Done.")])])
        .expect("the script is written");
    file.display().to_string()
}

#[tokio::test]
async fn a_changed_configuration_holds_without_a_restart_and_an_invalid_one_changes_nothing() {
    let rig = hive();
    let before = rig.read("hive.toml");
    let with = |words: &str, more: &str| {
        let file = script_that_answers(&rig, words);
        rig.configure(&format!(
            "{before}{more}[claude]\nenv = {{ SCRIPTED_CLAUDE_FILE = \"{file}\" }}\n"
        ));
    };
    with("first", "");
    let mut hive = up(&rig).await;
    let mut watch = rig.watch_from_now().await;
    let operator = rig.operator().await;
    let one = handled(&rig, &operator, "bob", "one").await;
    let (ada, bob) = (rig.the_one("ada", "hive"), rig.the_one("bob", "hive"));

    with("second", "turn_max_secs = 600\n[agents.dan]\n");
    hive.signal(Signal::HUP);
    hive.says("    from their next turns on, settings of ada, bob have changed").await;
    attached(&mut watch, "dan").await;
    let two = handled(&rig, &operator, "bob", "two").await;

    rig.configure("[agents.ada]\nno_such_key = 1\n");
    hive.signal(Signal::HUP);
    hive.says("the configuration is not taken over, and nothing changed").await;
    let three = handled(&rig, &operator, "dan", "three").await;
    // No harness was started again for any of this.
    assert_eq!((rig.the_one("ada", "hive"), rig.the_one("bob", "hive")), (ada, bob));

    let wanted = [("first", one), ("second", two), ("second", three)]
        .map(|(words, id)| (words.to_owned(), id));
    assert_eq!(unread(&operator, "operator").await, wanted);

    // An agent that the file names no more is retired, and its harness ends; keys that need a
    // restart are named.
    let without_bob = before.replace("[agents.bob]\nparent = \"ada\"\n", "[agents.dan]\n");
    rig.configure(&without_bob.replace("name = \"test\"", "name = \"other\""));
    hive.signal(Signal::HUP);
    hive.says("    changed, and in force only when `hivectl up` is started again: [hive]").await;
    hive.says("bob is removed, and its harness has ended").await;
    hive.interrupted(rig).await;
}

#[tokio::test]
async fn a_drain_requeues_turns_and_ends_the_hive() {
    let rig = hive();
    ada_stops(&rig);
    let hive = up(&rig).await;
    let asked = rig.operator().await.send("ada", "Hello ada.").await;
    rig.appeared("reached").await;
    well(&rig, &["drain"]).await;
    hive.ends(&rig).await;
    rig.touch("go");
    let hive = up(&rig).await;
    let mut watch = rig.watch().await;
    ended(&rig, &mut watch, "ada", TurnOutcome::Drained).await;
    acked(&rig, "ada", asked).await;
    hive.interrupted(rig).await;
}
