//! Heartbeats of agents by the real clock. Journeys of the harness have all else, by a clock that
//! the test sets.

use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{ReceiveMessagesRequest, SystemKind};
use hive_tests::rig::{Rig, request};
use rustix::process::Signal;

/// Longer than the minute until the due time.
const WAIT_SECS: i64 = 90;

#[tokio::test]
async fn a_heartbeat_that_a_reload_adds_comes_with_the_next_minute() {
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    rig.configure("[agents.ada]\nheartbeat = { every = \"1m\" }\n");
    rig.broker().signal(Signal::HUP);
    rig.broker().says_times("the configuration file was read again", 1).await;
    let wait = Some(prost_types::Duration { seconds: WAIT_SECS, nanos: 0 });
    let receive = ReceiveMessagesRequest { wait, ..request::receive() };
    let taken = InboxServiceClient::new(rig.agent("ada").await.channel())
        .receive_messages(receive)
        .await
        .expect("received");
    let deliveries = taken.into_inner().deliveries;
    assert_eq!(deliveries.len(), 1, "{deliveries:?}");
    let delivery = deliveries[0].delivery.clone().expect("a delivery");
    let message = delivery.message.expect("a message");
    assert_eq!(message.system_kind(), SystemKind::Heartbeat);
    let accepted = message.accept_time.expect("a time");
    assert!(accepted.seconds % 60 < 30, "by the minute: {accepted:?}");
    rig.end().await;
}
