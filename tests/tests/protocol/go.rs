//! The program in Go.

use hive_proto::v1::DeliveryState;
use hive_tests::rig::{Harness, process_token};

use crate::workshop::{Language, Workshop};

pub(crate) async fn the_program_sends_receives_and_settles(file: &str) {
    let Some(mut workshop) = Workshop::of(Language::Go).await else { return };
    workshop.succeeds(workshop.example("go.sh", &[])).await;
    workshop.succeeds(workshop.command("go", &["build", "-o", "mail", file])).await;
    let program = |workshop: &Workshop, to, body| workshop.command("./mail", &[to, body]);

    let said = workshop.fails(program(&workshop, "bobby", "hello")).await;
    assert_eq!(said, "refused NotFound AGENT_NOT_FOUND map[agent:bobby nearest:bob]\n");
    let said = workshop.fails(program(&workshop, "bob", "")).await;
    let refused = "refused InvalidArgument FIELD_INVALID map[field:body]";
    assert_eq!(said, format!("{refused}\nbody a message needs a text\n"));

    let mail = workshop.rig.agent("bob").await.send("ada", "first").await;
    let command = program(&workshop, "bob", "hello");
    let said = workshop.reconnects(command).await;
    let operator = workshop.rig.operator().await;
    let sent = operator.messages().await.pop().expect("it was sent");
    assert_eq!(sent.body, "hello");
    assert_eq!(said, format!("sent {}\nmessage {mail} first\n", sent.id));
    assert_eq!(operator.delivery("ada", mail).await.state(), DeliveryState::Acked);

    let ada = workshop.rig.agent("ada").await;
    let harness = Harness::attach(&ada.channel(), false).await;
    let token = process_token();
    let turn = harness.open(&token).await;
    let said = workshop.fails(program(&workshop, "bob", "in a turn")).await;
    assert_eq!(said, "refused FailedPrecondition HARNESS_ATTACHED map[agent:ada]\n");
    // A lease of a turn has no token, so the program cannot settle it.
    workshop.rig.agent("bob").await.send("ada", "second").await;
    let mut command = program(&workshop, "bob", "in a turn");
    command.env("HIVE_PROCESS_TOKEN", token);
    workshop.succeeds(command).await;
    let sent = operator.messages().await.pop().expect("it was sent");
    assert_eq!((sent.body.as_str(), sent.turn_id), ("in a turn", turn));
    drop(harness);
    workshop.rig.end().await;
}
