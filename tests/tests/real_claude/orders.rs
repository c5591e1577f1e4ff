//! The operator orders a compaction: at once, behind a running turn, in vain.

use hive_proto::v1::TurnKind::{self, Compact, Mail};
use hive_proto::v1::TurnOutcome;
use hive_tests::api::{Gate, Kind, Reply, Script, Usage};

use crate::stage::{Stage, count};
use hive_tests::rig::Mode;

both!(a_compaction_by_order);

async fn a_compaction_by_order(mode: Mode) {
    let gate = Gate::new();
    let long = |text: &str| Reply::text(text).using(Usage::context(900_000));
    let script = Script::new()
        .when("take your time", [long("Done.").held(&gate)])
        .when("", [long("Done.")])
        .compacting([Reply::text("<summary>What was said.</summary>")]);
    let mut stage = Stage::in_mode(mode, script).await;
    // However large it is, nothing is done without an order.
    stage.set_env("HIVE_AUTO_COMPACT", "false");
    stage.start();

    // There is nothing yet.
    let said = stage.rig.hivectl(&["turn", "compact", "ada", "--wait"]).await;
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("No messages to compact"), "{said:?}");
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Failed);

    // Idle.
    for body in ["the first", "the second"] {
        stage.send(body).await;
        stage.ok().await;
    }
    assert_eq!(stage.api.count(Kind::Compaction), 0);
    stage.order(&["compact", "ada"]).await;
    let turn = stage.ok().await;
    assert_eq!((turn.kind(), turn.compacted), (Compact, true), "{turn:?}");
    assert_eq!(stage.api.count(Kind::Compaction), 1);

    // Behind a running turn, which notices nothing.
    let running = stage.send("take your time").await;
    stage
        .api
        .wait_until("the model is asked", |requests| {
            requests.iter().any(|request| request.prompt.contains("take your time"))
        })
        .await;
    let said = stage.rig.hivectl(&["turn", "compact", "ada"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    // A harness that carried out this order has received the one before.
    stage.order(&["model", "ada", "haiku"]).await;
    let next = stage.send("what is new").await;
    assert_eq!(stage.api.count(Kind::Compaction), 1, "the turn runs");
    gate.open();
    assert_eq!(stage.ok().await.message_id, running);
    let turn = stage.ok().await;
    assert_eq!((turn.kind(), turn.compacted), (Compact, true), "{turn:?}");
    assert_eq!(stage.ok().await.message_id, next);
    let last = stage.last_request_of(next);
    assert!(last.mentions("What was said."), "{:#}", last.body["messages"]);
    assert_eq!(count(&last, "| take your time\n"), 0, "{:#}", last.body["messages"]);

    let kinds: Vec<TurnKind> = stage.turns().await.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, [Compact, Mail, Mail, Compact, Mail, Compact, Mail]);
    stage.end().await;
}
