//! Processes that claude leaves running, and claudes that do not end: no process of a turn outlives
//! it, however it fled and whatever it ignores.

use hive_proto::v1::{DeliveryState, TurnOutcome};
use hive_tests::rig::{Mode, Rig, gone, soon};
use hive_tests::scripted::script::Step;
use rustix::process::Pid;

use crate::steps::{
    acked, answer, ended, handled, hang, lives, rule, standing, text, touch, unread, wait_for,
};

both!(
    grandchildren_end_with_their_turn,
    grandchildren_of_a_killed_harness_end_before_the_next_claude,
    a_claude_that_ignores_signals_does_not_hold_up_a_drain,
    a_second_harness_waits_for_the_first_claude
);

/// Started in every way in which a tool can start something: as a child, in a session of its own,
/// and with neither parent nor session. Each makes a file when it is what it wants to be.
fn flees(rig: &Rig) -> Vec<Step> {
    let rests = |name: &str| {
        let script = format!("touch '{}'; exec sleep 1000", rig.path(name).display());
        ["sh", "-c", &script].map(str::to_owned).to_vec()
    };
    vec![
        Step::Spawn { spawn: rests("child"), setsid: false },
        Step::Spawn { spawn: rests("leader"), setsid: true },
        Step::Daemon { daemon: rests("orphan") },
    ]
}

/// Waits until all have fled; they, and among them the one that has no parent.
async fn fled(rig: &Rig) -> (Vec<Pid>, Pid) {
    for name in ["child", "leader", "orphan"] {
        rig.appeared(name).await;
    }
    // Each has one step more to go then.
    let asleep = async {
        loop {
            let pids = sleepers(rig);
            if pids.len() == 3 {
                return pids;
            }
            tokio::task::yield_now().await;
        }
    };
    let pids = soon("all three sleep", asleep).await;
    let claude = rig.the_one("bob", "scripted-claude");
    let orphans: Vec<Pid> =
        pids.iter().copied().filter(|pid| parent(*pid) != Some(claude)).collect();
    assert_eq!(orphans.len(), 1, "{pids:?}");
    (pids, orphans[0])
}

/// Returns the parent of a process.
fn parent(pid: Pid) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))
        .and_then(|pid| Pid::from_raw(pid.trim().parse().ok()?))
}

fn sleepers(rig: &Rig) -> Vec<Pid> {
    rig.running("bob", "sleep")
}

async fn grandchildren_end_with_their_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let steps =
        [flees(&rig), vec![touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")]].concat();
    mode.start(&mut rig, &[rule("Flee", steps), rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    let asked = operator.send("bob", "Flee.").await;
    rig.appeared("reached").await;
    let (all, orphan) = fled(&rig).await;
    rig.touch("go");
    // A process that is still below a resident claude is taken for claude's own, like its MCP
    // servers, and ends with it.
    let ending = if mode == Mode::Resident { vec![orphan] } else { all.clone() };
    for pid in ending {
        gone(pid).await;
    }
    acked(&rig, "bob", asked).await;
    handled(&rig, &operator, "bob", "And now?").await;
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1); 2]);
    let expected = if mode == Mode::Resident { 1 } else { 2 };
    assert_eq!(rig.turn_starts("bob").len(), expected, "claude itself is not taken for a leftover");
    rig.stop_harness("bob").await;
    for pid in all {
        gone(pid).await;
    }
    rig.end().await;
}

async fn grandchildren_of_a_killed_harness_end_before_the_next_claude(mode: Mode) {
    let mut rig = Rig::duo().await;
    let first = [flees(&rig), vec![touch(&rig, "reached"), hang()]].concat();
    let rules =
        [rule("This is attempt", vec![touch(&rig, "again"), text("Done.")]), rule("", first)];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    let asked = operator.send("bob", "Flee.").await;
    rig.appeared("reached").await;
    let left = [fled(&rig).await.0, vec![rig.the_one("bob", "scripted-claude")]].concat();
    rig.kill_harness("bob").await;
    mode.start(&mut rig, &rules);
    rig.appeared("again").await;
    for pid in &left {
        let line = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
            .unwrap_or_default();
        assert!(
            line.is_empty() || line.contains(") Z "),
            "it lives beside the next claude: {line}"
        );
    }
    acked(&rig, "bob", asked).await;
    assert_eq!(
        lives(&operator.turns("bob").await),
        [(TurnOutcome::Vanished, 1), (TurnOutcome::Ok, 2)]
    );
    rig.end().await;
}

async fn a_claude_that_ignores_signals_does_not_hold_up_a_drain(mode: Mode) {
    let mut rig = Rig::duo().await;
    let deaf =
        [Step::IgnoreSigterm { ignore_sigterm: true }, Step::IgnoreSigint { ignore_sigint: true }];
    let steps = [flees(&rig), deaf.to_vec(), vec![touch(&rig, "reached"), hang()]].concat();
    let graces = [("HIVE_KILL_GRACE_MS", "100"), ("HIVE_DRAIN_GRACE_SECS", "0")];
    mode.start_with(&mut rig, &[rule("", steps)], &graces);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Hang.").await;
    rig.appeared("reached").await;
    let left = [fled(&rig).await.0, vec![rig.the_one("bob", "scripted-claude")]].concat();
    rig.stop_harness("bob").await;
    for pid in left {
        gone(pid).await;
    }
    ended(&rig, &mut watch, "bob", TurnOutcome::Drained).await;
    let (state, attempt, _) = standing(&operator, "bob", asked).await;
    assert_eq!((state, attempt), (DeliveryState::Ready, 1), "no attempt is used");
    rig.end().await;
}

/// A harness is killed and the next one starts at once, while the first claude ignores every signal
/// that it can: the journey fails if the notes show two claudes at the same time.
async fn a_second_harness_waits_for_the_first_claude(mode: Mode) {
    let mut rig = Rig::duo().await;
    let deaf =
        [Step::IgnoreSigterm { ignore_sigterm: true }, Step::IgnoreSigint { ignore_sigint: true }];
    let parts = [answer("operator", "part one"), answer("operator", "part two"), text("Done.")];
    let first = [&deaf[..], &parts[..1], &[touch(&rig, "reached"), hang()]].concat();
    let rules = [rule("This is attempt", parts.to_vec()), rule("", first)];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    let claude = rig.the_one("bob", "scripted-claude");
    rig.kill_harness("bob").await;
    mode.start(&mut rig, &rules);
    gone(claude).await;
    acked(&rig, "bob", asked).await;
    assert_eq!(
        lives(&operator.turns("bob").await),
        [(TurnOutcome::Vanished, 1), (TurnOutcome::Ok, 2)]
    );
    assert_eq!(
        unread(&operator, "operator").await,
        ["part one", "part two"].map(|part| (part.to_owned(), asked))
    );
    assert_eq!(rig.turn_starts("bob").len(), 2);
    rig.end().await;
}
