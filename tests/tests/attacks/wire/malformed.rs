//! Invalid frames, encodings that were not offered, and wrong lengths.

use hive_core::limits::{
    LOOSE_END_KEY_CHARS_MAX, LOOSE_END_TEXT_CHARS_MAX, PUBLISHED_LOOSE_ENDS_MAX,
};
use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::loose_end_service_client::LooseEndServiceClient;
use hive_proto::v1::{PublishedLooseEnd, ReplaceLooseEndsRequest};
use hive_tests::rig::{Rig, fresh_id, raw, request, soon};
use prost::Message as _;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic::codegen::http;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;

use super::frames::{self, Code, Raw, claiming, frame};
use super::scene::Scene;

const SELF: &str = "/hive.v1.TopologyService/GetSelf";
const SEND: &str = "/hive.v1.MessageService/SendMessage";
/// Maximum memory that the broker may keep of these frames, in bytes.
const KEPT_MAX: u64 = 24 * 1024 * 1024;

/// Returns frames against the protocol, each with the codes of which one must end the connection.
fn invalid() -> Vec<(&'static str, Vec<u8>, &'static [Code])> {
    use frames::{
        ACK, COMPRESSION_ERROR, CONTINUATION, DATA, END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR,
        FRAME_SIZE_ERROR, GOAWAY, HEADERS, PADDED, PING, PRIORITY, PROTOCOL_ERROR, PUSH_PROMISE,
        RST_STREAM, SETTINGS, STREAM_CLOSED, WINDOW_UPDATE,
    };
    let headers = |stream| frame(HEADERS, END_HEADERS, stream, &frames::call_headers(SELF));
    let then = |mut first: Vec<u8>, second: Vec<u8>| {
        first.extend(second);
        first
    };
    vec![
        ("data of no stream", frame(DATA, 0, 0, b"x"), &[PROTOCOL_ERROR][..]),
        ("data of a stream that was not opened", frame(DATA, 0, 7, b"x"), &[PROTOCOL_ERROR]),
        (
            "data after the end",
            then(frames::call(1, SELF, b""), frame(DATA, 0, 1, b"x")),
            &[STREAM_CLOSED, PROTOCOL_ERROR],
        ),
        (
            "padding beyond the frame",
            then(headers(1), frame(DATA, PADDED, 1, &[200, 1])),
            &[PROTOCOL_ERROR],
        ),
        ("headers of no stream", headers(0), &[PROTOCOL_ERROR]),
        ("headers of a stream of the server's", headers(2), &[PROTOCOL_ERROR]),
        (
            "headers of an earlier stream",
            then(headers(9), headers(3)),
            &[STREAM_CLOSED, PROTOCOL_ERROR],
        ),
        (
            "headers that are no block",
            frame(HEADERS, END_HEADERS, 1, &[0xff; 40]),
            &[COMPRESSION_ERROR, PROTOCOL_ERROR],
        ),
        (
            "another frame within headers",
            then(frame(HEADERS, 0, 1, &[]), frame(PING, 0, 0, &[0; 8])),
            &[PROTOCOL_ERROR],
        ),
        ("a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, &[]), &[PROTOCOL_ERROR]),
        (
            "a stream that depends on itself",
            frame(PRIORITY, 0, 0, &[0, 0, 0, 1, 0]),
            &[PROTOCOL_ERROR],
        ),
        (
            "a reset of a stream that was not opened",
            frame(RST_STREAM, 0, 5, &[0; 4]),
            &[PROTOCOL_ERROR],
        ),
        ("a reset of no stream", frame(RST_STREAM, 0, 0, &[0; 4]), &[PROTOCOL_ERROR]),
        (
            "a reset of three bytes",
            then(headers(1), frame(RST_STREAM, 0, 1, &[0; 3])),
            &[FRAME_SIZE_ERROR, PROTOCOL_ERROR],
        ),
        ("settings of a stream", frame(SETTINGS, 0, 1, &[]), &[PROTOCOL_ERROR]),
        (
            "settings of five bytes",
            frame(SETTINGS, 0, 0, &[0; 5]),
            &[FRAME_SIZE_ERROR, PROTOCOL_ERROR],
        ),
        (
            "an acknowledgement with settings",
            frame(SETTINGS, ACK, 0, &[0; 6]),
            &[FRAME_SIZE_ERROR, PROTOCOL_ERROR],
        ),
        ("frames of no size", frames::setting(frames::SETTING_MAX_FRAME, 0), &[PROTOCOL_ERROR]),
        (
            "a window of 4 GiB",
            frames::setting(frames::SETTING_INITIAL_WINDOW, u32::MAX),
            &[FLOW_CONTROL_ERROR, PROTOCOL_ERROR],
        ),
        ("a ping of seven bytes", frame(PING, 0, 0, &[0; 7]), &[FRAME_SIZE_ERROR, PROTOCOL_ERROR]),
        ("a ping of a stream", frame(PING, 0, 1, &[0; 8]), &[PROTOCOL_ERROR]),
        (
            "a promise of a client",
            frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]),
            &[PROTOCOL_ERROR],
        ),
        ("a farewell of a stream", frame(GOAWAY, 0, 1, &[0; 8]), &[PROTOCOL_ERROR]),
        ("a window that grows by nothing", frames::window(0, 0), &[PROTOCOL_ERROR]),
        ("a window over 2 GiB", frames::window(0, 0x7fff_ffff), &[FLOW_CONTROL_ERROR]),
        (
            "a window of three bytes",
            frame(WINDOW_UPDATE, 0, 0, &[0; 3]),
            &[FRAME_SIZE_ERROR, PROTOCOL_ERROR],
        ),
        (
            "a frame of 16 MB",
            claiming(0xff_ffff, DATA, END_STREAM, 1, &[0; 64]),
            &[FRAME_SIZE_ERROR],
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_against_the_protocol_end_the_connection_with_a_code() {
    let mut scene = Scene::new().await;
    let talk = scene.talk();
    for socket in [scene.rig.agent_socket("mallory"), scene.rig.operator_socket()] {
        for (what, attack, codes) in invalid() {
            let mut raw = Raw::greet(&socket, &[]).await.expect("it connects");
            drop(raw.send(&attack).await);
            let code = raw.end().await;
            assert!(
                code.is_some_and(|code| codes.contains(&code)),
                "{what}: {code:?}, not one of {codes:?}"
            );
        }
        // Frames that the protocol requires to ignore do no harm.
        let mut raw = Raw::greet(&socket, &frame(0xbe, 0xff, 77, b"from the future"))
            .await
            .expect("it connects");
        raw.send(&frames::call(1, "/grpc.health.v1.Health/Check", b""))
            .await
            .expect("the connection stays");
        assert!(
            raw.until("the call is answered", |heard| heard.answered.contains(&1)).await,
            "{:?}",
            raw.heard
        );
    }
    scene.served(talk, "invalid frames").await;
    scene.recovered("invalid frames", KEPT_MAX).await;
}

/// Sends one body unchanged, with these headers; returns the gRPC code in the answer's headers,
/// where a refusal has it.
async fn refused(channel: &Channel, path: &str, headers: &[(&str, &str)], body: &str) -> i32 {
    let mut request = http::Request::post(format!("http://localhost{path}"));
    for (name, value) in
        [("content-type", "application/grpc"), ("te", "trailers")].iter().chain(headers)
    {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::new(body.to_owned())).expect("a request");
    let mut channel = channel.clone();
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.expect("the connection stays");
    let response = soon("the call is answered", channel.call(request)).await.expect("an answer");
    let code =
        response.headers().get("grpc-status").and_then(|value| value.to_str().ok()?.parse().ok());
    code.unwrap_or_else(|| panic!("{path} {headers:?} {body:?} is not refused: {response:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_another_format_than_declared_are_refused() {
    let mut scene = Scene::new().await;
    let mallory = scene.rig.agent("mallory").await.channel();
    let code = |code: tonic::Code| code as i32;
    let (unimplemented, internal) = (code(tonic::Code::Unimplemented), code(tonic::Code::Internal));
    let gzip = [("grpc-encoding", "gzip")];
    assert_eq!(
        refused(&mallory, SELF, &gzip, "\u{1}\0\0\0\u{4}abcd").await,
        unimplemented,
        "no side offered gzip"
    );
    assert_eq!(
        refused(&mallory, SELF, &[("grpc-encoding", "bomb")], "\0\0\0\0\0").await,
        unimplemented,
        "nor that"
    );
    assert_eq!(
        refused(&mallory, SELF, &[], "\u{1}\0\0\0\u{4}abcd").await,
        internal,
        "packed, and it is not said how"
    );
    assert_eq!(refused(&mallory, SELF, &[], "\u{2}\0\0\0\0").await, internal, "no such flag");
    // Two gigabytes are announced: refused by the number, before any of it is awaited or allocated.
    let far = code(tonic::Code::InvalidArgument);
    assert_eq!(refused(&mallory, SELF, &[], "\0\u{7f}\u{7f}\u{7f}\u{7f}xyz").await, far);
    assert_eq!(
        refused(&mallory, SEND, &[], "\0\0\u{2}\0\0").await,
        far,
        "128 KiB, of which not one byte comes"
    );
    assert_eq!(
        refused(&mallory, SELF, &[], "\0\0\0\0\u{9}short").await,
        internal,
        "it ends before its end"
    );
    assert_eq!(
        refused(&mallory, "/hive.v1.AdminService/Drain", &[], "\0\0\0\0\0").await,
        unimplemented,
        "no such service here"
    );
    scene.recovered("untrue bodies", KEPT_MAX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_over_the_bound_is_refused_with_the_number() {
    let mut scene = Scene::new().await;
    let mallory = scene.rig.agent("mallory").await.channel();
    let send = |bytes: usize| request::send("carol", "x".repeat(bytes));
    // A possible request is read, and the body is measured.
    for bytes in [32 * 1024 + 1, 90 * 1024] {
        let refusal = raw::call(&mallory, SEND, MetadataMap::new(), send(bytes).encode_to_vec())
            .await
            .expect_err("too large");
        assert_eq!(status::reason(&refusal), Some(Reason::BodyTooLarge), "{refusal:?}");
        assert!(
            refusal.message().contains("32768") && refusal.message().contains(&bytes.to_string()),
            "{refusal:?}"
        );
    }
    // A longer one is refused by the length that it announces, and not read.
    for bytes in [100 * 1024, 1_000_000, 5_000_000, 64_000_000] {
        let request = send(bytes).encode_to_vec();
        let length = request.len().to_string();
        let refusal =
            raw::call(&mallory, SEND, MetadataMap::new(), request).await.expect_err("too large");
        assert_eq!(status::reason(&refusal), Some(Reason::BodyTooLarge), "{refusal:?}");
        assert!(
            refusal.message().contains("32768") && refusal.message().contains(&length),
            "{refusal:?}"
        );
    }
    scene.recovered("oversized messages", KEPT_MAX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_reads_more_than_it_can_need() {
    let mut scene = Scene::new().await;
    let mallory = scene.rig.agent("mallory").await.channel();
    // An unknown field is ignored; so only the length can be the reason for the refusal.
    let padded = |bytes: usize| {
        let mut request = Vec::new();
        prost::encoding::bytes::encode(15, &vec![b'x'; bytes], &mut request);
        request
    };
    let over = [
        (SELF, 128),
        ("/hive.v1.InboxService/ListDeliveries", 128),
        ("/hive.v1.LooseEndService/ReplaceLooseEnds", 512),
    ];
    for (path, kib) in over {
        let request = padded(kib * 1024);
        let (length, max) = (request.len().to_string(), (kib * 1024).to_string());
        let refusal =
            raw::call(&mallory, path, MetadataMap::new(), request).await.expect_err("too large");
        assert_eq!(status::reason(&refusal), Some(Reason::BodyTooLarge), "{path}: {refusal:?}");
        assert!(
            refusal.message().contains(&length) && refusal.message().contains(&max),
            "{path}: {refusal:?}"
        );
    }
    raw::call(&mallory, SELF, MetadataMap::new(), padded(100 * 1024))
        .await
        .expect("a client may know more than the broker");
    scene.recovered("padded requests", KEPT_MAX).await;
}

#[tokio::test]
async fn the_longest_set_of_loose_ends_is_taken() {
    let mut rig = Rig::new("[agents.mallory]\n");
    rig.start_broker().await;
    let wide = |count: usize| "\u{1f41d}".repeat(count);
    let entry = |number: usize| PublishedLooseEnd {
        key: format!("{number:03}{}", wide(LOOSE_END_KEY_CHARS_MAX - 3)),
        text: wide(LOOSE_END_TEXT_CHARS_MAX),
    };
    let loose_ends = (0..PUBLISHED_LOOSE_ENDS_MAX).map(entry).collect();
    let request =
        ReplaceLooseEndsRequest { request_id: fresh_id(), label: "ci".to_owned(), loose_ends };
    let mut client = LooseEndServiceClient::new(rig.agent("mallory").await.channel());
    client.replace_loose_ends(request).await.expect("each of its parts is within its bound");
}

/// The other files of this target need a rig; this one only tests a body at the limit.
#[tokio::test]
async fn a_message_at_the_bound_is_taken() {
    let mut rig = Rig::new("[agents.mallory]\n[agents.carol]\n");
    rig.start_broker().await;
    let id = rig.agent("mallory").await.send("carol", &"x".repeat(32 * 1024)).await;
    assert_eq!(
        rig.operator().await.delivery("carol", id).await.message.map(|message| message.body.len()),
        Some(32 * 1024)
    );
}
