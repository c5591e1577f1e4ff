//! Receives whose client gives up before it has the answer: their leases go back at once, without
//! an attempt.

use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{
    DeliveryState, EventKind, ReceiveMessagesRequest, ReceiveMessagesResponse, RedeliveryCause,
};
use hive_tests::rig::{Rig, request};
use tonic::transport::{Channel, Endpoint};

/// A client that has no room for an answer: the broker leases, and cannot send what it leased.
async fn without_room(rig: &Rig) -> InboxServiceClient<Channel> {
    let socket = rig.agent_socket("bob");
    let endpoint = Endpoint::from_static("http://localhost").initial_stream_window_size(0);
    let connector = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { tokio::net::UnixStream::connect(socket).await.map(hyper_util::rt::TokioIo::new) }
    });
    InboxServiceClient::new(endpoint.connect_with_connector(connector).await.expect("a broker"))
}

#[tokio::test]
async fn leases_of_a_client_that_gives_up_go_back_without_an_attempt() {
    let mut rig = Rig::new("[agents.alice]\n[agents.bob]");
    rig.start_broker().await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let sent = operator.send("bob", "hello").await;
    let slow = without_room(&rig).await;
    // By a deadline, which the broker sees too, and by a cancel.
    for deadline in [Some(Duration::from_millis(300)), None] {
        let mut receive = tonic::Request::new(request::receive());
        if let Some(deadline) = deadline {
            receive.set_timeout(deadline);
        }
        let mut slow = slow.clone();
        let call = tokio::spawn(async move { slow.receive_messages(receive).await });
        watch.kind("bob", EventKind::DeliveryLeased).await;
        // After its deadline the client still waits for the end of the answer.
        if deadline.is_none() {
            call.abort();
        }
        watch.kind("bob", EventKind::DeliveryReturned).await;
        call.abort();
        let delivery = operator.delivery("bob", sent).await;
        assert_eq!(delivery.state(), DeliveryState::Ready);
        assert_eq!(delivery.redelivery_cause(), RedeliveryCause::NotReceived);
        assert_eq!((delivery.attempt, delivery.not_before_time), (1, None));
    }
    // A client that reads its answer keeps the lease.
    let mut bob = InboxServiceClient::new(rig.agent("bob").await.channel());
    let taken = bob.receive_messages(request::receive()).await.expect("received").into_inner();
    assert_eq!(ids(&taken), [sent]);
    assert_eq!(operator.delivery("bob", sent).await.state(), DeliveryState::Leased);
    rig.end().await;
}

#[tokio::test]
async fn a_repeat_with_other_times_gets_the_leases_that_still_live() {
    let mut rig = Rig::new("[agents.alice]\n[agents.bob]");
    rig.start_broker().await;
    let operator = rig.operator().await;
    let sent = [operator.send("bob", "one").await, operator.send("bob", "two").await];
    let mut bob = InboxServiceClient::new(rig.agent("bob").await.channel());
    let ask = ReceiveMessagesRequest { max_deliveries: 2, ..request::receive() };
    let first = bob.receive_messages(ask.clone()).await.expect("received").into_inner();
    assert_eq!(ids(&first), sent);
    let span = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let repeat = ReceiveMessagesRequest { wait: span(1), lease_duration: span(600), ..ask.clone() };
    let again = bob.receive_messages(repeat).await.expect("repeated").into_inner();
    let tokens = |received: &ReceiveMessagesResponse| {
        let leases = received.deliveries.iter().map(|leased| leased.lease_token.clone());
        leases.collect::<Vec<_>>()
    };
    assert_eq!(tokens(&again), tokens(&first));
    let more = ReceiveMessagesRequest { max_deliveries: 3, ..ask };
    let refused = bob.receive_messages(more).await.expect_err("other content");
    assert_eq!(hive_proto::status::reason(&refused), Some(Reason::RequestIdReused));
    rig.end().await;
}

fn ids(received: &ReceiveMessagesResponse) -> Vec<u64> {
    let ids = received.deliveries.iter().map(|leased| leased.delivery.as_ref());
    ids.map(|delivery| delivery.and_then(|it| it.message.as_ref()).map_or(0, |it| it.id)).collect()
}
