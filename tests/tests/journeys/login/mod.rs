//! An agent without a login, and `hivectl login`: nothing runs and nothing is paid for before the
//! operator has logged claude in. A dialogue that breaks off leaves everything as it was.

mod broken;

use std::time::Duration;

use hive_proto::v1::{
    DeliveryState, EventKind, HarnessState, RedeliveryCause, SystemKind, TurnOutcome,
};
use hive_tests::rig::{Client, Mode, Rig};
use hive_tests::scripted::auth;
use hive_tests::scripted::script::{Rule, Step};

use crate::steps::{DONE, acked, answer, lives, rule, standing, text, touch, unread};
use crate::terminal::Terminal;

const CODE: &str = "right#code";

both!(
    nothing_runs_without_a_login,
    a_login_lets_the_waiting_message_run,
    a_wrong_code_is_no_login,
    while_a_turn_runs
);

/// Says that bob's claude needs a login, and which code brings it.
fn needs_login(rig: &Rig) {
    let file = rig.path("agents/bob/home").join(auth::CODE_FILE);
    std::fs::create_dir_all(file.parent().expect("it lies in a directory")).expect("a directory");
    std::fs::write(file, CODE).expect("a file");
}

fn answers() -> Vec<Rule> {
    vec![rule("", vec![answer("operator", "Here."), text("Done.")])]
}

/// Opens the dialogue in a terminal of its own.
fn dialogue(rig: &Rig) -> Terminal {
    Terminal::open(rig, (120, 24), &[], &["login", "bob"])
}

/// Bob's harness runs and has found no login.
async fn without_login(mode: Mode, rules: &[Rule]) -> (Rig, Client) {
    let mut rig = Rig::duo().await;
    needs_login(&rig);
    mode.start(&mut rig, rules);
    let operator = rig.operator().await;
    operator.does("bob", HarnessState::NeedsLogin).await;
    (rig, operator)
}

/// Returns the notices to the operator about agents that do not run.
async fn notices(operator: &Client) -> Vec<String> {
    let notices = operator.notices("operator", SystemKind::Unavailable).await;
    notices.into_iter().map(|message| message.body).collect()
}

async fn nothing_runs_without_a_login(mode: Mode) {
    let (mut rig, operator) = without_login(mode, &answers()).await;
    let park = operator.get_agent("bob").await.park.expect("it is parked");
    assert_eq!((park.cause(), park.until_time), (TurnOutcome::AuthFailed, None));
    let waiting = operator.send("bob", "Are you there?").await;
    let sent = notices(&operator).await;
    assert!(matches!(&sent[..], [one] if one.contains("bob") && one.contains("login")), "{sent:?}");
    let status = rig.hivectl(&["status"]).await;
    assert!(status.code == 8 && status.stdout.contains("hivectl login bob"), "{status:?}");

    // Neither another broker nor another harness finds more, or notifies again.
    rig.crash_broker().await;
    let operator = rig.operator().await;
    operator.does("bob", HarnessState::NeedsLogin).await;
    rig.stop_harness("bob").await;
    let mut watch = rig.watch_from_now().await;
    mode.start(&mut rig, &answers());
    watch.kind("bob", EventKind::HarnessAttached).await;
    operator.does("bob", HarnessState::NeedsLogin).await;
    assert_eq!(notices(&operator).await.len(), 1);
    assert_eq!(
        standing(&operator, "bob", waiting).await,
        (DeliveryState::Ready, 0, RedeliveryCause::Unspecified)
    );
    assert_eq!(rig.turn_starts("bob"), [""; 0], "no turn was tried");
    assert_eq!(operator.turns("bob").await, []);
    rig.end().await;
}

async fn a_login_lets_the_waiting_message_run(mode: Mode) {
    let (rig, operator) = without_login(mode, &answers()).await;
    let waiting = operator.send("bob", "Are you there?").await;
    let mut terminal = dialogue(&rig);
    terminal.shows(&[auth::URL, "Paste code here"], &[]).await;
    // claude gets the typed text unchanged, including mistakes.
    terminal.types("no code\r").await;
    terminal.shows(&["doesn't look like the full code"], &[]).await;
    terminal.types(&format!("{CODE}\r")).await;
    terminal.shows(&["Login successful.", "claude is logged in for bob"], &[]).await;
    assert_eq!(terminal.ends().await.code(), Some(0));
    acked(&rig, "bob", waiting).await;
    assert_eq!(standing(&operator, "bob", waiting).await, DONE);
    assert_eq!(unread(&operator, "operator").await.last(), Some(&("Here.".to_owned(), waiting)));
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1)]);
    let agent = operator.does("bob", HarnessState::Idle).await;
    assert!(agent.park.is_none(), "{agent:?}");
    assert_eq!(rig.turn_starts("bob").len(), 1);
    let status = rig.hivectl(&["status"]).await;
    assert!(!status.stdout.contains("hivectl login"), "{status:?}");
    rig.end().await;
}

/// Files that the dialogue writes below HOME are not taken for a login, neither at once nor later.
async fn a_wrong_code_is_no_login(mode: Mode) {
    let mut rig = Rig::duo().await;
    needs_login(&rig);
    let leaves = vec![Step::Touch { touch: rig.path("agents/bob/home/.claude/dialogue") }];
    let rules = [vec![rule("$ auth login", leaves)], answers()].concat();
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    operator.does("bob", HarnessState::NeedsLogin).await;
    let waiting = operator.send("bob", "Are you there?").await;
    let mut terminal = dialogue(&rig);
    terminal.shows(&["Paste code here"], &[]).await;
    terminal.types("wrong#code\r").await;
    terminal
        .shows(&["Couldn't log in: Invalid code.", "its dialogue ended with code 1"], &[])
        .await;
    assert_eq!(terminal.ends().await.code(), Some(1));
    assert!(rig.path("agents/bob/home/.claude/dialogue").exists());
    // After the dialogue the CLI is looked at once; and once more for each change after that, as
    // for one that is made here.
    let mut changes = 0;
    while tokio::time::timeout(Duration::from_millis(200), rig.started("bob", "auth status", 4))
        .await
        .is_err()
    {
        changes += 1;
        rig.touch(&format!("agents/bob/home/.claude/change {changes}"));
    }
    let agent = operator.does("bob", HarnessState::NeedsLogin).await;
    assert_eq!(agent.park.map(|park| park.cause()), Some(TurnOutcome::AuthFailed));
    assert_eq!(operator.delivery("bob", waiting).await.state(), DeliveryState::Ready);
    assert_eq!(operator.turns("bob").await, []);
    assert_eq!(rig.turn_starts("bob"), [""; 0]);
    assert_eq!(notices(&operator).await.len(), 1, "notified once");

    // A login without a dialogue, as by hand in a shell, is also noticed.
    std::fs::write(
        auth::credentials(&rig.path("agents/bob/home")),
        r#"{"claudeAiOauth":{"accessToken":"t"}}"#,
    )
    .expect("a login");
    acked(&rig, "bob", waiting).await;
    rig.end().await;
}

async fn while_a_turn_runs(mode: Mode) {
    let mut rig = Rig::duo().await;
    let stops = vec![touch(&rig, "reached"), crate::steps::wait_for(&rig, "go"), text("Done.")];
    mode.start(&mut rig, &[rule("", stops)]);
    let operator = rig.operator().await;
    let asked = operator.send("bob", "Take your time.").await;
    rig.appeared("reached").await;
    let mut terminal = dialogue(&rig);
    terminal.shows(&["a turn runs now", "hivectl turn cancel"], &[auth::URL]).await;
    assert_eq!(terminal.ends().await.code(), Some(1));
    rig.touch("go");
    acked(&rig, "bob", asked).await;
    operator.does("bob", HarnessState::Idle).await;
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1)]);
    // Between turns it can be had, also by one who has a login.
    let mut terminal = dialogue(&rig);
    terminal.shows(&[auth::URL], &[]).await;
    terminal.types("\x1d").await;
    assert_eq!(terminal.ends().await.code(), Some(1));
    rig.end().await;
}
