//! The operator cancels a turn: its mail is held, out of the queue, until it is released or
//! dropped.

use hive_proto::v1::{Delivery, DeliveryState, EventKind, RedeliveryCause, TurnOutcome};
use hive_tests::rig::{Client, Rig, Watch};

use crate::steps::{
    acked, answer, carried_out, ended, handled, hang, lives, recv, rule, standing, text, touch,
    unread,
};

/// Bob's turn over two messages is cancelled.
struct Scene {
    rig: Rig,
    operator: Client,
    asked: [u64; 2],
}

impl Scene {
    async fn cancelled() -> Self {
        let mut rig = Rig::duo().await;
        let (operator, mut watch) = (rig.operator().await, rig.watch().await);
        let asked = [operator.send("bob", "Hang.").await, operator.send("bob", "Letter 2.").await];
        let hanging = vec![answer("operator", "part one"), recv(1), touch(&rig, "reached"), hang()];
        let again =
            vec![answer("operator", "part one"), answer("operator", "part two"), text("Done.")];
        rig.start_harness(
            "bob",
            &[
                rule("has released the message now", again),
                rule("Hang", hanging),
                rule("", vec![text("Done.")]),
            ],
        );
        rig.appeared("reached").await;
        let said = rig.hivectl(&["turn", "cancel", "bob"]).await;
        assert!(
            said.code == 0 && said.stdout.starts_with("bob is told to cancel its turn (command "),
            "{said:?}"
        );
        ended(&rig, &mut watch, "bob", TurnOutcome::Cancelled).await;
        closed_well(&mut watch).await;
        let scene = Self { rig, operator, asked };
        let held = scene.rig.hivectl(&["status"]).await;
        assert!(
            held.code == 8 && held.stdout.contains("2 deliveries held after a cancelled turn"),
            "{held:?}"
        );
        scene
    }

    async fn stand(&self) -> [Delivery; 2] {
        [
            self.operator.delivery("bob", self.asked[0]).await,
            self.operator.delivery("bob", self.asked[1]).await,
        ]
    }
}

async fn closed_well(watch: &mut Watch) {
    let closed = watch.kind("bob", EventKind::CommandClosed).await;
    assert!(carried_out(&closed), "{closed:?}");
}

#[tokio::test]
async fn its_mail_is_released() {
    let scene = Scene::cancelled().await;
    for delivery in scene.stand().await {
        assert_eq!((delivery.state(), delivery.attempt), (DeliveryState::Held, 1));
    }
    // The queue continues without them.
    handled(&scene.rig, &scene.operator, "bob", "Letter 3.").await;
    let said = scene.rig.hivectl(&["turn", "release", "bob", "--all"]).await;
    assert_eq!((said.code, said.stdout.lines().count()), (0, 2), "{said:?}");
    for message in scene.asked {
        acked(&scene.rig, "bob", message).await;
        let done = (DeliveryState::Acked, 1, RedeliveryCause::Released);
        assert_eq!(standing(&scene.operator, "bob", message).await, done);
    }
    // Messages that the cancelled turn had sent are not sent twice, whichever message they answer.
    let first = scene.asked[0];
    let sent: Vec<_> = unread(&scene.operator, "operator")
        .await
        .into_iter()
        .filter(|(_, answers)| *answers == first)
        .collect();
    assert_eq!(sent, ["part one", "part two"].map(|part| (part.to_owned(), first)));
    let lives = lives(&scene.operator.turns("bob").await);
    assert_eq!(
        lives,
        [[(TurnOutcome::Cancelled, 1)].as_slice(), &[(TurnOutcome::Ok, 1); 3]].concat()
    );
    scene.rig.end().await;
}

#[tokio::test]
async fn its_mail_is_dropped() {
    let scene = Scene::cancelled().await;
    let id = scene.asked[0].to_string();
    let said = scene.rig.hivectl(&["turn", "drop", "bob", &id]).await;
    assert_eq!((said.code, said.stdout), (0, format!("message {id} of bob dropped\n")));
    let again = scene.rig.hivectl(&["turn", "release", "bob", &id]).await;
    assert_eq!(again.code, 5, "what is dropped stays so: {again:?}");
    assert_eq!(
        scene.stand().await.map(|delivery| delivery.state()),
        [DeliveryState::Dropped, DeliveryState::Held]
    );
    assert_eq!(lives(&scene.operator.turns("bob").await), [(TurnOutcome::Cancelled, 1)]);
    scene.rig.end().await;
}

#[tokio::test]
async fn without_a_turn_there_is_nothing_to_cancel() {
    let mut rig = Rig::duo().await;
    rig.start_harness("bob", &[]);
    rig.watch().await.kind("bob", EventKind::HarnessAttached).await;
    let said = rig.hivectl(&["turn", "cancel", "bob"]).await;
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.stderr.contains("TURN_NOT_FOUND"), "{said:?}");
    rig.end().await;
}
