//! A login dialogue that is broken off: by its operator, by the end of the harness, by the end of
//! the broker. Nothing of it is left, every waiter is notified, and the next dialogue is a new one.

use hive_proto::v1::{EventKind, HarnessState};
use hive_tests::rig::{Client, Mode, Rig, gone};
use rustix::process::{Pid, Signal};

use super::{CODE, answers, dialogue, without_login};
use crate::steps::acked;
use crate::terminal::Terminal;

both!(
    the_operator_hangs_up,
    the_operator_leaves,
    hivectl_is_killed,
    the_harness_is_killed,
    the_harness_is_stopped,
    the_broker_is_restarted,
    the_broker_is_killed,
    a_second_one_is_refused
);

/// A hive in which bob's login dialogue is open.
struct Scene {
    rig: Rig,
    operator: Client,
    terminal: Terminal,
    claude: Pid,
    waiting: u64,
}

impl Scene {
    async fn open(mode: Mode) -> Self {
        let (rig, operator) = without_login(mode, &answers()).await;
        let waiting = operator.send("bob", "Are you there?").await;
        let mut terminal = dialogue(&rig);
        terminal.shows(&["Paste code here"], &[]).await;
        let claude = rig.the_one("bob", "scripted-claude");
        Self { rig, operator, terminal, claude, waiting }
    }
}

/// The next dialogue is a whole one, and the message that waited is handled.
async fn again(rig: Rig, waiting: u64) {
    let operator = rig.operator().await;
    operator.does("bob", HarnessState::NeedsLogin).await;
    assert_eq!(rig.turn_starts("bob"), [""; 0]);
    let mut terminal = free(&rig).await;
    terminal.types(&format!("{CODE}\r")).await;
    terminal.shows(&["claude is logged in for bob"], &[]).await;
    assert_eq!(terminal.ends().await.code(), Some(0));
    acked(&rig, "bob", waiting).await;
    rig.end().await;
}

/// A dialogue, as soon as the broker and the harness have done with the one before.
async fn free(rig: &Rig) -> Terminal {
    loop {
        let mut terminal = dialogue(rig);
        let shown = terminal
            .shows_any(&[
                "Paste code here",
                "another login dialogue is open",
                "LOGIN_OPEN",
                "HARNESS_OFFLINE",
            ])
            .await;
        if shown == 0 {
            return terminal;
        }
        terminal.ends().await;
    }
}

async fn start_again(mode: Mode, rig: &mut Rig) {
    let mut watch = rig.watch_from_now().await;
    mode.start(rig, &answers());
    watch.kind("bob", EventKind::HarnessAttached).await;
}

async fn the_operator_hangs_up(mode: Mode) {
    let Scene { rig, terminal, claude, waiting, .. } = Scene::open(mode).await;
    terminal.hangs_up().await;
    gone(claude).await;
    again(rig, waiting).await;
}

async fn the_operator_leaves(mode: Mode) {
    let Scene { rig, mut terminal, claude, waiting, .. } = Scene::open(mode).await;
    terminal.types("\x1d").await;
    terminal.shows(&["you left the dialogue"], &[]).await;
    assert_eq!(terminal.ends().await.code(), Some(1));
    gone(claude).await;
    again(rig, waiting).await;
}

async fn hivectl_is_killed(mode: Mode) {
    let Scene { rig, terminal, claude, waiting, .. } = Scene::open(mode).await;
    terminal.signal(Signal::KILL);
    gone(claude).await;
    again(rig, waiting).await;
}

async fn the_harness_is_killed(mode: Mode) {
    let Scene { mut rig, mut terminal, claude, waiting, .. } = Scene::open(mode).await;
    rig.kill_harness("bob").await;
    terminal.shows(&["the harness went away"], &[]).await;
    assert_eq!(terminal.ends().await.code(), Some(1));
    // With its terminal, claude's dialogue is gone too.
    gone(claude).await;
    start_again(mode, &mut rig).await;
    again(rig, waiting).await;
}

async fn the_harness_is_stopped(mode: Mode) {
    let Scene { mut rig, mut terminal, claude, waiting, .. } = Scene::open(mode).await;
    rig.stop_harness("bob").await;
    gone(claude).await;
    terminal.shows(&["bob"], &[]).await;
    assert_eq!(terminal.ends().await.code(), Some(1));
    start_again(mode, &mut rig).await;
    again(rig, waiting).await;
}

async fn the_broker_goes(mode: Mode, killed: bool) {
    let Scene { mut rig, mut terminal, claude, waiting, .. } = Scene::open(mode).await;
    if killed {
        rig.kill_broker().await;
    } else {
        rig.stop_broker().await;
    }
    terminal.shows(&["broker"], &[]).await;
    let code = terminal.ends().await.code();
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    gone(claude).await;
    rig.start_broker().await;
    again(rig, waiting).await;
}

async fn the_broker_is_restarted(mode: Mode) {
    the_broker_goes(mode, false).await;
}

async fn the_broker_is_killed(mode: Mode) {
    the_broker_goes(mode, true).await;
}

async fn a_second_one_is_refused(mode: Mode) {
    let Scene { rig, operator, mut terminal, claude, waiting } = Scene::open(mode).await;
    let mut second = dialogue(&rig);
    second.shows(&["LOGIN_OPEN"], &[]).await;
    assert!(second.ends().await.code().is_some_and(|code| code != 0));
    // The first one does not notice.
    terminal.types(&format!("{CODE}\r")).await;
    terminal.shows(&["claude is logged in for bob"], &[]).await;
    assert_eq!(terminal.ends().await.code(), Some(0));
    gone(claude).await;
    acked(&rig, "bob", waiting).await;
    assert_eq!(operator.turns("bob").await.len(), 1);
    rig.end().await;
}
