//! `hivectl turn new-session`: the next turn begins a fresh conversation, and nothing waits for it.

use hive_proto::v1::TurnKind::Mail;
use hive_proto::v1::TurnOutcome::Ok;
use hive_tests::rig::{Mode, Rig};

use super::{kinds, waited};
use crate::steps::{handled, rule, text};

both!(the_next_turn_begins_a_fresh_conversation);

async fn the_next_turn_begins_a_fresh_conversation(mode: Mode) {
    let mut rig = Rig::duo().await;
    mode.start(&mut rig, &[rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    let send = async |body: &str| {
        handled(&rig, &operator, "bob", body).await;
    };
    send("Letter 1.").await;
    // Bob is idle, so his next turn is far away: the answer arrives now and states when the command
    // applies.
    let said = waited(&rig, &["new-session", "bob"]).await;
    let told = said
        .stdout
        .starts_with("bob is told to begin its next turn with a fresh conversation (command ");
    assert!(said.code == 0 && told && said.stderr.contains("nothing to wait for"), "{said:?}");
    assert_eq!(operator.turns("bob").await.len(), 1, "nothing begins before there is mail for it");
    send("Letter 2.").await;
    send("Letter 3.").await;
    assert_eq!(rig.conversations("bob"), [1, 2]);
    assert_eq!(kinds(&operator).await, [(Mail, Ok); 3]);
    let starts = rig.turn_starts("bob");
    let fresh: Vec<bool> = starts.iter().map(|line| !line.contains("--continue")).collect();
    match mode {
        Mode::PerTurn => assert_eq!(fresh, [false, true, false], "{starts:?}"),
        Mode::Resident => assert_eq!(fresh, [false, true], "{starts:?}"),
    }
    rig.end().await;
}
