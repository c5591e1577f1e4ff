//! `hivectl turn restart --wait`: the turn is requeued, the program starts again, and the agent
//! gets one notice.

use hive_proto::in_session;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_proto::v1::{
    AckCommandRequest, AttachRequest, AttachResponse, Delivery, DeliveryState, EventKind,
    SystemKind, TurnOutcome,
};
use hive_tests::rig::{Client, Mode, Rig, soon};
use tonic::Streaming;

use super::done;
use crate::steps::{acked, answer, handled, lives, rule, text, touch, unread, wait_for};

both!(in_mid_turn, between_turns);

/// Returns the notices of a restart in an inbox, in any state.
async fn notices(operator: &Client) -> Vec<Delivery> {
    let all = operator.all_deliveries("bob").await.into_iter();
    let is_notice = |delivery: &Delivery| {
        delivery
            .message
            .as_ref()
            .is_some_and(|message| message.system_kind() == SystemKind::Restarted)
    };
    all.filter(is_notice).collect()
}

fn message_id(delivery: &Delivery) -> u64 {
    delivery.message.as_ref().map_or(0, |message| message.id)
}

async fn in_mid_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let parts = [answer("operator", "part one"), answer("operator", "part two"), text("Done.")];
    let mut first = parts.to_vec();
    first.splice(1..1, [touch(&rig, "reached"), wait_for(&rig, "go")]);
    let notice = rule("Your harness was restarted", vec![text("I go on.")]);
    mode.start(&mut rig, &[notice, rule("This is attempt", parts.to_vec()), rule("", first)]);
    let operator = rig.operator().await;
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    let pid = rig.harness("bob").pid();
    done(&rig, &["restart", "bob"]).await;
    acked(&rig, "bob", asked).await;
    assert_eq!(rig.harness("bob").pid(), pid, "its supervisor sees no end");
    let notices = notices(&operator).await;
    assert_eq!(notices.iter().map(Delivery::state).collect::<Vec<_>>(), [DeliveryState::Acked]);
    let turns = operator.turns("bob").await;
    assert_eq!(
        lives(&turns),
        [(TurnOutcome::Drained, 1), (TurnOutcome::Ok, 1), (TurnOutcome::Ok, 1)]
    );
    let order: Vec<u64> = turns.iter().map(|turn| turn.message_id).collect();
    assert_eq!(order, [asked, message_id(&notices[0]), asked], "the notice comes first");
    assert!(
        rig.prompts("bob")[1].starts_with(&format!("Message {} from Hive itself", order[1])),
        "{:?}",
        rig.prompts("bob")
    );
    assert_eq!(
        unread(&operator, "operator").await,
        ["part one", "part two"].map(|part| (part.to_owned(), asked))
    );
    rig.end().await;
}

async fn between_turns(mode: Mode) {
    let mut rig = Rig::duo().await;
    mode.start(&mut rig, &[rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    done(&rig, &["restart", "bob"]).await;
    let told = notices(&operator).await;
    assert_eq!(told.len(), 1, "it is there when the order is closed: {told:?}");
    acked(&rig, "bob", message_id(&told[0])).await;
    // A second restart is a second word.
    done(&rig, &["restart", "bob"]).await;
    let told = notices(&operator).await;
    assert_eq!(told.len(), 2, "{told:?}");
    acked(&rig, "bob", message_id(&told[1])).await;
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1); 3]);
    assert_eq!(rig.conversations("bob"), [3], "the conversation goes on");
    rig.end().await;
}

/// A harness that was killed and started again had no order: its agent gets no notice, and no turn
/// runs.
#[tokio::test]
async fn a_start_without_an_order_notifies_nothing() {
    let mut rig = Rig::duo().await;
    let mut watch = rig.watch().await;
    for _ in 0..3 {
        Mode::PerTurn.start(&mut rig, &[]);
        watch.kind("bob", EventKind::HarnessAttached).await;
        rig.kill_harness("bob").await;
    }
    assert_eq!(rig.operator().await.all_deliveries("bob").await, []);
    assert_eq!(rig.operator().await.turns("bob").await, []);
    rig.end().await;
}

/// Attaches a harness that knows the contract, and returns its stream of responses.
async fn attached(
    rig: &Rig,
    token: &str,
) -> (TurnServiceClient<tonic::transport::Channel>, Streaming<AttachResponse>, String) {
    let mut turns = TurnServiceClient::new(rig.agent("bob").await.channel());
    let request = AttachRequest { take_over: false, revision: "test".to_owned() };
    let request = in_session(request, token);
    let mut stream = turns.attach(request).await.expect("it attaches").into_inner();
    let Step::Attached(attached) = next_step(&mut stream).await else {
        panic!("the first word is another")
    };
    (turns, stream, attached.session_token)
}

async fn next_step(stream: &mut Streaming<AttachResponse>) -> Step {
    let heard =
        soon("the broker sends a step", stream.message()).await.expect("the stream goes on");
    heard.expect("the stream goes on").step.expect("a step")
}

/// The order is closed, and the answer to that is lost with the broker: it is closed again, by the
/// same session and by the next one.
#[tokio::test]
async fn an_end_that_is_reported_twice_is_one_notice() {
    let mut rig = Rig::duo().await;
    let (mut turns, mut stream, token) = attached(&rig, "").await;
    let given = rig.hivectl(&["turn", "restart", "bob"]).await;
    assert_eq!(given.code, 0, "{given:?}");
    let Step::Command(command) = next_step(&mut stream).await else { panic!("no command") };
    let ack = |token: &str| {
        let request = AckCommandRequest { command_id: command.id, error: String::new() };
        in_session(request, token)
    };
    turns.ack_command(ack(&token)).await.expect("it is closed");
    turns.ack_command(ack(&token)).await.expect("it is closed already");
    rig.crash_broker().await;
    let (mut turns, _stream, token) = attached(&rig, &token).await;
    turns.ack_command(ack(&token)).await.expect("it is closed already");
    let operator = rig.operator().await;
    let told = notices(&operator).await;
    assert_eq!(told.iter().map(Delivery::state).collect::<Vec<_>>(), [DeliveryState::Ready]);
    rig.end().await;
}
