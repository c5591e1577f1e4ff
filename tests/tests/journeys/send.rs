//! A message makes the whole trip.

use hive_proto::v1::{DeliveryState, EventKind, TurnOutcome};
use hive_tests::rig::Rig;

#[tokio::test]
async fn an_operator_writes_and_the_agent_answers() {
    let mut rig = Rig::duo().await;
    rig.start_harness("ada", &[]);
    let operator = rig.operator().await;
    let mut watch = rig.watch().await;

    let asked = operator.send("ada", "Hello ada, who are you?").await;
    let answered = watch.kind("operator", EventKind::MessageAccepted).await;
    let ended = watch.kind("ada", EventKind::TurnEnded).await;

    let messages = operator.messages().await;
    let answer = messages.iter().find(|message| message.id == answered.message_id).expect("the answer");
    assert_eq!(answer.in_reply_to, asked);
    assert_eq!(operator.delivery("ada", asked).await.state(), DeliveryState::Acked);
    let turn = operator.turn(ended.turn_id).await;
    assert_eq!((turn.outcome(), turn.attempt, turn.message_id), (TurnOutcome::Ok, 1, asked));
    assert_eq!(turn.sent_message_ids, [answer.id]);
}
