//! A message that breaks every turn ends as a dead letter, and harms no message beside it.

use hive_proto::v1::event::Facts;
use hive_proto::v1::{
    DeliveryDead, DeliveryState, EventKind, RedeliveryCause, SystemKind, TurnOutcome,
};
use hive_tests::rig::Rig;
use hive_tests::scripted::script::Step;

use crate::steps::{DONE, acked, answer, exit, handled, lives, recv, rule, standing, text};

/// Returns the beginning of every prompt of a message.
fn of(message: u64) -> String {
    format!("Message {message} from ")
}

/// Ada's parent is the operator, bob's is ada.
async fn reported(agent: &str, parent: &str) {
    let mut rig = Rig::duo().await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let poison = operator.send(agent, "poison").await;
    let mut neighbours = Vec::new();
    for number in 1..=3 {
        neighbours.push(operator.send(agent, &format!("Letter {number}.")).await);
    }
    let well = vec![answer("operator", "fine"), text("Done.")];
    let complain = Step::Stderr { stderr: "I cannot stand this.".to_owned() };
    rig.start_harness(
        agent,
        &[
            rule("the operator sends it round again", well.clone()),
            rule(&of(poison), vec![complain, exit(3)]),
            rule("", well),
        ],
    );
    let dead = watch.kind(agent, EventKind::DeliveryDead).await;
    for neighbour in &neighbours {
        acked(&rig, agent, *neighbour).await;
        let (state, attempt, cause) = standing(&operator, agent, *neighbour).await;
        assert_eq!((state, attempt, cause), DONE);
    }
    assert_eq!(dead.message_id, poison);
    let facts = DeliveryDead { attempt: 5, cause: RedeliveryCause::TurnFailed.into() };
    assert_eq!(dead.facts, Some(Facts::DeliveryDead(facts)));
    let turns = operator.turns(agent).await;
    let (bad, good): (Vec<_>, Vec<_>) =
        turns.into_iter().partition(|turn| turn.message_id == poison);
    assert_eq!(lives(&bad), [1, 2, 3, 4, 5].map(|attempt| (TurnOutcome::Failed, attempt)));
    assert_eq!(lives(&good), [(TurnOutcome::Ok, 1); 3]);
    assert!(bad.iter().all(|turn| turn.received_message_ids.is_empty()));

    // The queue continues at once.
    handled(&rig, &operator, agent, "And now?").await;

    let letters = operator.notices(parent, SystemKind::DeadLetter).await;
    assert!(matches!(&letters[..], [letter] if letter.in_reply_to == poison), "{letters:?}");
    let error = "claude ended without a result (exit code 3): I cannot stand this.";
    assert!(
        letters[0].body.starts_with(&format!(
            "Message {poison} to {agent} is a dead letter after 5 failed attempts:\n\n> {error}"
        )),
        "{letters:?}"
    );
    assert_eq!(operator.notices(parent, SystemKind::TurnFailed).await.len(), 5);

    shown_and_redriven(&rig, agent, poison).await;
    acked(&rig, agent, poison).await;
    assert_eq!(
        standing(&operator, agent, poison).await,
        (DeliveryState::Acked, 1, RedeliveryCause::Redriven)
    );
    rig.end().await;
}

/// Checks the operator's view of the message, and redrives it.
async fn shown_and_redriven(rig: &Rig, agent: &str, poison: u64) {
    let id = poison.to_string();
    let status = rig.hivectl(&["status"]).await;
    assert_eq!(status.code, 8, "{status:?}");
    let listed = rig.hivectl(&["--json", "dead-letters", "list"]).await;
    let list: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{listed:?}");
    assert_eq!(
        (&list[0]["agent"], &list[0]["message"]["id"], &list[0]["state"]),
        (&agent.into(), &poison.into(), &"dead".into())
    );
    let shown = rig.hivectl(&["dead-letters", "show", &id]).await;
    for words in [
        "poison",
        "claude ended without a result (exit code 3)",
        "end of the turn's output:",
        "stderr: I cannot stand this.",
    ] {
        assert!(shown.stdout.contains(words), "{words}: {shown:?}");
    }
    let redriven = rig.hivectl(&["dead-letters", "redrive", &id]).await;
    assert_eq!(
        (redriven.code, redriven.stdout.trim()),
        (0, format!("message {id} of {agent} redriven").as_str())
    );
    let again = rig.hivectl(&["dead-letters", "redrive", &id]).await;
    assert_eq!(again.code, 3, "it is none any more: {again:?}");
}

cases! {
    a_poison_message_of_a_root_is_reported_to_the_operator => reported("ada", "operator"),
    a_poison_message_of_a_child_is_reported_to_its_parent => reported("bob", "ada"),
}

/// A turn that took its neighbours with it: they are not drawn into its last attempts.
#[tokio::test]
async fn neighbours_that_it_draws_in_survive_it() {
    let mut rig = Rig::duo().await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let poison = operator.send("bob", "poison").await;
    let mut neighbours = Vec::new();
    for number in 1..=3 {
        neighbours.push(operator.send("bob", &format!("Letter {number}.")).await);
    }
    rig.start_harness(
        "bob",
        &[rule(&of(poison), vec![recv(8), exit(1)]), rule("", vec![text("Done.")])],
    );
    let dead = watch.kind("bob", EventKind::DeliveryDead).await;
    assert_eq!(dead.message_id, poison);
    let facts = DeliveryDead { attempt: 5, cause: RedeliveryCause::TurnFailed.into() };
    assert_eq!(dead.facts, Some(Facts::DeliveryDead(facts)));
    for neighbour in &neighbours {
        acked(&rig, "bob", *neighbour).await;
        let attempt = operator.delivery("bob", *neighbour).await.attempt;
        assert!(attempt <= 3, "message {neighbour} had {attempt} attempts");
    }
    assert_eq!(standing(&operator, "bob", poison).await.0, DeliveryState::Dead);
    rig.end().await;
}
