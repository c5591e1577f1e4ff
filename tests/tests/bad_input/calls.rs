//! Calls that no handler answers: past their deadline, compressed, or of a method that the socket
//! does not serve. Each answer names the way out.

use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::ReceiveMessagesRequest;
use hive_tests::rig::{Rig, raw, request, soon};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

const RECEIVE: &str = "/hive.v1.InboxService/ReceiveMessages";
const SELF: &str = "/hive.v1.TopologyService/GetSelf";

/// A connection without a gRPC client, which would enforce the deadline itself.
struct Plain {
    sender: SendRequest<Body>,
    _connection: JoinSet<()>,
}

impl Plain {
    async fn to_ada(rig: &Rig) -> Self {
        let stream = UnixStream::connect(rig.agent_socket("ada")).await.expect("it listens");
        let (sender, connection) =
            handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("it speaks HTTP/2");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        Self { sender, _connection: tasks }
    }

    /// Calls with one message and these headers; returns the refusal.
    async fn refused(&mut self, path: &str, headers: &[(&str, &str)], message: &[u8]) -> Status {
        let mut body = vec![0];
        body.extend(u32::try_from(message.len()).expect("short").to_be_bytes());
        body.extend(message);
        let mut call = http::Request::post(format!("http://localhost{path}"));
        for (name, value) in
            [("content-type", "application/grpc"), ("te", "trailers")].iter().chain(headers)
        {
            call = call.header(*name, *value);
        }
        let body = Body::new(String::from_utf8(body).expect("small numbers"));
        let call = self.sender.send_request(call.body(body).expect("a request"));
        let answer = soon(path, call).await.expect("an answer");
        Status::from_header_map(answer.headers())
            .unwrap_or_else(|| panic!("{path} {headers:?} is not refused: {answer:?}"))
    }
}

async fn hive() -> Rig {
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    rig
}

#[tokio::test]
async fn a_deadline_that_the_broker_sees_ends_the_call_as_exceeded() {
    let rig = hive().await;
    let mut ada = Plain::to_ada(&rig).await;
    for deadline in ["1m", "5m", "20m", "30000u", "40000000n"] {
        let wait = Some(Duration::from_secs(60).try_into().expect("a span"));
        let receive = ReceiveMessagesRequest { wait, ..request::receive() };
        let refusal =
            ada.refused(RECEIVE, &[("grpc-timeout", deadline)], &receive.encode_to_vec()).await;
        assert_eq!(refusal.code(), Code::DeadlineExceeded, "{deadline}: {refusal:?}");
        assert!(refusal.message().contains(&format!("`{deadline}`")), "{refusal:?}");
        assert_eq!(status::reason(&refusal), None, "as if the client had seen it: {refusal:?}");
        assert!(status::is_transient(&refusal));
    }
}

#[tokio::test]
async fn a_compressed_request_is_told_to_come_uncompressed() {
    let rig = hive().await;
    let mut ada = Plain::to_ada(&rig).await;
    for encoding in ["gzip", "deflate", "zstd", "bomb"] {
        let refusal = ada.refused(SELF, &[("grpc-encoding", encoding)], b"").await;
        assert_eq!(refusal.code(), Code::Unimplemented, "{refusal:?}");
        assert_eq!(status::reason(&refusal), Some(Reason::RequestCompressed), "{refusal:?}");
        for part in [encoding, "without compression"] {
            assert!(refusal.message().contains(part), "{part}: {refusal:?}");
        }
        let accepted = refusal.metadata().get("grpc-accept-encoding");
        assert_eq!(accepted.and_then(|value| value.to_str().ok()), Some("identity"));
    }
}

#[tokio::test]
async fn a_method_that_the_socket_does_not_serve_is_refused_with_the_way_out() {
    let rig = hive().await;
    let (ada, operator) = (rig.agent("ada").await.channel(), rig.operator().await.channel());
    let agents = "an agent's socket";
    for (channel, path, parts) in [
        (&ada, "/hive.v1.AdminService/Drain", &["`hived.sock`", "AdminService/Drain"][..]),
        (&operator, "/hive.v1.WakeService/Wake", &[agents, "WakeService/Wake"]),
        (&operator, "/hive.v1.TurnService/EndTurn", &[agents]),
        (&ada, "/hive.v1.MessageService/SendMesage", &["did you mean `SendMessage`"]),
        (&ada, "/hive.v1.MessageService/NoSuchCall", &["GetServerInfo"]),
        (&ada, "/hive.v1.MesageService/SendMessage", &["`hive.v1.MessageService`"]),
        (&ada, "/hive.v2.MessageService/SendMessage", &["`hive.v1.MessageService`"]),
        (&operator, "/other.Service/Call", &["`other.Service/Call`", "GetServerInfo"]),
        (&ada, "/hive.v1.MessageService", &["GetServerInfo"]),
        (&ada, "/", &["GetServerInfo"]),
    ] {
        let answer = soon(path, raw::call(channel, path, MetadataMap::new(), Vec::new())).await;
        let refusal = answer.map(drop).expect_err(path);
        assert_eq!(refusal.code(), Code::Unimplemented, "{path}: {refusal:?}");
        assert_eq!(status::reason(&refusal), Some(Reason::MethodNotServed), "{path}: {refusal:?}");
        for part in parts {
            assert!(refusal.message().contains(part), "{path}: {part}: {refusal:?}");
        }
    }
}
