//! `hivectl turn new-session --wait`: done when the fresh conversation has begun.

use hive_proto::v1::EventKind;
use hive_proto::v1::TurnKind::Mail;
use hive_proto::v1::TurnOutcome::Ok;
use hive_tests::rig::Rig;

use super::{done, kinds};
use crate::mode::Mode;
use crate::steps::{acked, rule, text};

both!(the_next_turn_begins_a_fresh_conversation);

async fn the_next_turn_begins_a_fresh_conversation(mode: Mode) {
    let mut rig = Rig::duo().await;
    mode.start(&mut rig, &[rule("", vec![text("Done.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let send = async |body: &str| {
        let message = operator.send("bob", body).await;
        acked(&rig, "bob", message).await;
    };
    send("Letter 1.").await;
    let go_on = async {
        watch.kind("bob", EventKind::CommandGiven).await;
        assert_eq!(operator.turns("bob").await.len(), 1, "nothing begins before there is mail for it");
        send("Letter 2.").await;
    };
    tokio::join!(done(&rig, &["new-session", "bob"]), go_on);
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
