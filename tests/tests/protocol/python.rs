//! The examples in Python, but for those of streams.

use hive_proto::v1::DeliveryState;
use hive_tests::rig::process_token;

use crate::workshop::{Language, Workshop};

/// Returns a workshop with the generated code.
pub(crate) async fn workshop() -> Option<Workshop> {
    let workshop = Workshop::of(Language::Python).await?;
    workshop.succeeds(workshop.example("python.sh", &[])).await;
    Some(workshop)
}

pub(crate) async fn the_first_program_sends_receives_and_settles(file: &str) {
    let Some(mut workshop) = workshop().await else { return };
    let answer = workshop.rig.agent("bob").await.send("ada", "It is green.").await;
    let said = workshop.succeeds(workshop.example(file, &[])).await;
    assert_eq!(said, format!("{answer} It is green.\n"));
    // All of it is on the disk.
    workshop.rig.crash_broker().await;
    let operator = workshop.rig.operator().await;
    assert_eq!(operator.delivery("ada", answer).await.state(), DeliveryState::Acked);
    let sent = operator.deliveries("bob", &[]).await;
    let bodies: Vec<_> = sent.into_iter().filter_map(|sent| sent.message).collect();
    assert_eq!(bodies.len(), 1);
    assert_eq!(bodies[0].body, "Is the build green?");
    assert_eq!(bodies[0].origin.as_ref().expect("an origin").name, "ada");
    workshop.rig.end().await;
}

pub(crate) async fn a_call_waits_for_the_broker(_imported: &str) {
    let Some(mut workshop) = workshop().await else { return };
    let command = workshop.example("send.py", &["bob", "late"]);
    let said = workshop.reconnects(command).await;
    let messages = workshop.rig.operator().await.messages().await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(said, format!("sent {}\n", messages[0].id));
    workshop.rig.end().await;
}

pub(crate) async fn a_send_proves_its_turn_and_names_refusals(file: &str) {
    let Some(workshop) = workshop().await else { return };
    let said = workshop.fails(workshop.example(file, &["bobby", "hello"])).await;
    // The order of metadata is not fixed.
    for part in ["refused NOT_FOUND AGENT_NOT_FOUND {", "'agent': 'bobby'", "'nearest': 'bob'"] {
        assert!(said.contains(part), "{said}");
    }
    let said = workshop.fails(workshop.example(file, &["bob", ""])).await;
    assert_eq!(
        said,
        "refused INVALID_ARGUMENT FIELD_INVALID {'field': 'body'}\nbody a message needs a text\n"
    );

    // While a harness is attached, only a process of its turn may send.
    let ada = workshop.rig.agent("ada").await;
    let harness = hive_tests::rig::Harness::attach(&ada.channel(), false).await;
    let token = process_token();
    let turn = harness.open(&token).await;
    let said = workshop.fails(workshop.example(file, &["bob", "hello"])).await;
    assert_eq!(said, "refused FAILED_PRECONDITION HARNESS_ATTACHED {'agent': 'ada'}\n");
    let mut command = workshop.example(file, &["bob", "hello"]);
    command.env("HIVE_PROCESS_TOKEN", token);
    let said = workshop.succeeds(command).await;
    let messages = workshop.rig.operator().await.messages().await;
    assert_eq!(said, format!("sent {}\n", messages[0].id));
    assert_eq!((messages.len(), messages[0].turn_id), (1, turn));
    drop(harness);
    workshop.rig.end().await;
}
