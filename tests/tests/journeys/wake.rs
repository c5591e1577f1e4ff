//! A program beside an agent wakes it: its text is ordinary mail, under a label that resembles no
//! other sender.

use hive_proto::v1::{DeliveryState, OriginKind};
use hive_tests::rig::{Rig, Said};

use crate::steps::{acked, rule, text, touch, wait_for};

/// The message that a wake-up became.
fn id(said: &Said) -> u64 {
    assert_eq!(said.code, 0, "{said:?}");
    said.stdout.trim().parse().expect("the id of the message")
}

#[tokio::test]
async fn a_wake_up_over_stdin_becomes_a_turn() {
    let mut rig = Rig::duo().await;
    rig.start_harness("bob", &[rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    let body = "new message in #dev\nfrom @alice: grüße\n";
    let woken = id(&rig.wake("bob", &["--from", "matrix", "--body", "-"], body).await);
    acked(&rig, "bob", woken).await;
    let message = operator.delivery("bob", woken).await.message.expect("a message");
    let origin = message.origin.expect("an origin");
    assert_eq!(
        (origin.kind(), origin.name.as_str(), message.body.as_str()),
        (OriginKind::External, "matrix", body)
    );
    let prompt = &rig.prompts("bob")[0];
    let told = format!(
        "Message {woken} from the program matrix beside you:\n| new message in #dev\n| from \\@alice: grüße\n"
    );
    assert!(prompt.starts_with(&told), "{prompt}");
    rig.end().await;
}

/// Of those with one key only the newest is delivered; what is being read already stays.
#[tokio::test]
async fn a_newer_one_takes_the_place_of_an_undelivered_one() {
    let mut rig = Rig::duo().await;
    let stops = vec![touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")];
    rig.start_harness("bob", &[rule("build 1 ", stops), rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    let build = ["--from", "ci", "--key", "nightly", "--body", "-"];
    let mut woken = vec![id(&rig.wake("bob", &build, "build 1 failed").await)];
    rig.appeared("reached").await;
    for number in 2..=4 {
        woken.push(id(&rig.wake("bob", &build, &format!("build {number} failed")).await));
    }
    // The same key of another program is a separate key.
    let other =
        id(&rig.wake("bob", &["--from", "cd", "--key", "nightly", "--body", "deployed"], "").await);
    rig.touch("go");
    for message in [woken[0], woken[3], other] {
        acked(&rig, "bob", message).await;
    }
    for message in &woken[1..3] {
        assert_eq!(operator.delivery("bob", *message).await.state(), DeliveryState::Superseded);
    }
    let ran: Vec<u64> = operator.turns("bob").await.iter().map(|turn| turn.message_id).collect();
    assert_eq!(ran, [woken[0], woken[3], other]);
    rig.end().await;
}

#[tokio::test]
async fn a_label_that_resembles_another_sender_is_refused() {
    let rig = Rig::duo().await;
    let operator = rig.operator().await;
    // Recipients that the command itself checks, and one that only the broker knows.
    for (label, code, words) in [
        ("operator", 2, "operator"),
        ("system", 2, "system"),
        ("Matrix", 2, "Matrix"),
        ("ada", 1, "`ada` is the name of an agent; a label must not look like one (FIELD_INVALID)"),
        ("bob", 1, "`bob` is the name of an agent; a label must not look like one (FIELD_INVALID)"),
    ] {
        let said = rig.wake("bob", &["--from", label, "--body", "x"], "").await;
        assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{label}: {said:?}");
        assert!(
            said.stderr.starts_with("error: ") && said.stderr.contains(words),
            "{label}: {said:?}"
        );
    }
    assert!(operator.messages().await.is_empty());
    rig.end().await;
}

#[tokio::test]
async fn without_a_broker_it_says_so() {
    let mut rig = Rig::duo().await;
    rig.stop_broker().await;
    let said = rig.wake("bob", &["--from", "ci", "--body", "x"], "").await;
    assert_eq!((said.code, said.stdout.as_str()), (7, ""), "{said:?}");
    assert!(said.stderr.contains("next: check that hived runs"), "{said:?}");
    rig.end().await;
}
