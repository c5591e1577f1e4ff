//! A broker of an older revision of the contract: what it would not know is refused before it is
//! sent, with both versions; everything else goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hive_core::message::OPERATOR;
use hive_in_process::Broker;
use hive_proto::connect::connect_lazy_as;
use hive_proto::handshake::{Addition, Channel, Handshake, Program, REVISION};
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::{
    GetInboxStatusRequest, GetServerInfoRequest, GetServerInfoResponse, ListRecipientsRequest,
    SendMessageRequest,
};
use hive_tests::rig::{request, soon};
use tonic::{Code, Response, Status};

use crate::ask::{bad_field, done};

const PROGRAM: Program = Program { name: "probe", version: "7.8.9" };

/// Parts of the contract that stand for later additions.
const ADDITIONS: &[Addition] = &[
    Addition {
        revision: REVISION,
        rpc: "/hive.v1.MessageService/ListRecipients",
        field: &[],
        name: "",
    },
    Addition {
        revision: REVISION,
        rpc: "/hive.v1.MessageService/SendMessage",
        field: &[4],
        name: "in_reply_to",
    },
    Addition {
        revision: REVISION,
        rpc: "/hive.v1.MessageService/SendMessage",
        field: &[2, 4],
        name: "to.everyone",
    },
];

fn channel(broker: &Broker) -> Channel {
    let handshake = Handshake::new(PROGRAM, ADDITIONS);
    connect_lazy_as(handshake, &broker.socket()).expect("a short path")
}

/// Returns a broker that states another revision, and the count of its handshakes.
fn broker(revision: u32) -> (Broker, Arc<AtomicUsize>) {
    let broker = Broker::start("[agents.ada]\n[agents.bob]\n", OPERATOR);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    broker.edit("GetServerInfo", move |answer: &mut Response<GetServerInfoResponse>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let info = answer.get_mut();
        (info.version, info.contract_revision) = ("0.0.1".to_owned(), revision);
    });
    (broker, count)
}

async fn send(channel: &Channel, message: SendMessageRequest) -> Result<u64, Status> {
    let mut client = MessageServiceClient::new(channel.clone());
    let sent = soon("an answer", client.send_message(message)).await?;
    Ok(sent.into_inner().message_id)
}

async fn list(channel: &Channel, message_id: u64) -> Result<usize, Status> {
    let request = ListRecipientsRequest { message_id, ..ListRecipientsRequest::default() };
    let mut client = MessageServiceClient::new(channel.clone());
    Ok(soon("an answer", client.list_recipients(request)).await?.into_inner().recipients.len())
}

fn sentence<T: std::fmt::Debug>(refused: Result<T, Status>) -> String {
    let status = refused.expect_err("it is refused");
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    status.message().to_owned()
}

#[tokio::test]
async fn what_an_older_broker_would_drop_is_refused_with_both_versions() {
    let (broker, handshakes) = broker(REVISION - 1);
    let channel = channel(&broker);
    let first = send(&channel, request::send("ada", "hello")).await.expect("nothing new is set");
    let reply = SendMessageRequest { in_reply_to: first, ..request::send("ada", "again") };
    assert_eq!(
        sentence(send(&channel, reply).await),
        format!(
            "`in_reply_to` of `SendMessage` came with revision {REVISION} of the contract, and the \
             broker (hived 0.0.1, revision {}) does not know it; upgrade hived to the version of \
             probe, which is 7.8.9, or do without it",
            REVISION - 1
        )
    );
    let everyone = sentence(send(&channel, request::send("*", "all")).await);
    assert!(everyone.starts_with("`to.everyone` of `SendMessage` came with"), "{everyone}");
    let unknown = sentence(list(&channel, first).await);
    assert!(unknown.starts_with("`ListRecipients` came with"), "{unknown}");
    // The broker has seen what was allowed, and nothing else.
    let sent = broker.requests::<SendMessageRequest>("SendMessage");
    assert_eq!(sent.len(), 1);
    assert!(broker.requests::<ListRecipientsRequest>("ListRecipients").is_empty());
    assert_eq!(handshakes.load(Ordering::Relaxed), 1, "once for a connection");
}

#[tokio::test]
async fn a_broker_of_the_same_revision_is_sent_everything() {
    let (broker, handshakes) = broker(REVISION);
    let channel = channel(&broker);
    let first = send(&channel, request::send("*", "all")).await.expect("sent");
    let reply = SendMessageRequest { in_reply_to: first, ..request::send("ada", "again") };
    send(&channel, reply).await.expect("sent");
    assert_eq!(list(&channel, first).await.expect("listed"), 2);
    assert_eq!(handshakes.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn another_connection_makes_another_handshake() {
    let (mut broker, handshakes) = broker(REVISION);
    let channel = channel(&broker);
    send(&channel, request::send("ada", "one")).await.expect("sent");
    broker.kill();
    broker.run();
    // The first call after the loss finds it, or makes the new connection.
    let status = || {
        let mut client = InboxServiceClient::new(channel.clone());
        async move { client.get_inbox_status(GetInboxStatusRequest::default()).await }
    };
    let again = async {
        while status().await.is_err() || handshakes.load(Ordering::Relaxed) < 2 {
            tokio::task::yield_now().await;
        }
    };
    soon("the new connection makes a handshake", again).await;
}

#[tokio::test]
async fn a_client_states_its_name_and_version() {
    let (broker, _) = broker(REVISION);
    let stated = Arc::new(std::sync::Mutex::new(None));
    let seen = Arc::clone(&stated);
    broker.edit_request("GetServerInfo", move |request: &mut GetServerInfoRequest| {
        *seen.lock().expect("no panic") = Some(request.clone());
    });
    send(&channel(&broker), request::send("ada", "one")).await.expect("sent");
    let stated = stated.lock().expect("no panic").clone();
    let expected = GetServerInfoRequest {
        client_name: "probe".to_owned(),
        client_version: "7.8.9".to_owned(),
        contract_revision: REVISION,
    };
    assert_eq!(stated, Some(expected));
}

#[tokio::test]
async fn a_client_without_a_printable_name_is_refused() {
    let broker = Broker::start("[agents.ada]\n", "ada");
    let operator = broker.operator().await.channel();
    for bad in ["x".repeat(129), "two\nlines".to_owned()] {
        let name = GetServerInfoRequest { client_name: bad.clone(), ..Default::default() };
        bad_field(&operator, &name, "client_name").await;
        let version = GetServerInfoRequest { client_version: bad, ..Default::default() };
        bad_field(&operator, &version, "client_version").await;
    }
    let answer: GetServerInfoResponse = done(&operator, &GetServerInfoRequest::default()).await;
    assert_eq!(answer.contract_revision, REVISION);
    let limits = answer.limits.expect("limits");
    assert_eq!((limits.page_rows_default, limits.page_rows_max), (50, 500));
    assert!(answer.capabilities.expect("capabilities").search);
}
