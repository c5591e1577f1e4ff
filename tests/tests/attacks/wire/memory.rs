//! Slow readers and slow writers: what the broker must keep for a client that does not read, or
//! does not send the rest.
//!
//! Invariant: what all connections of one agent together can make the broker keep has a limit, and
//! is freed when they close.

use hive_core::limits::{AGENT_CALLS_MAX, AGENT_CONNECTIONS_MAX};
use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::ListMessagesRequest;
use hive_tests::rig::{raw, request, soon};
use prost::Message as _;
use tonic::metadata::MetadataMap;

use super::frames::{self, Raw, frame};
use super::scene::Scene;

const LIST: &str = "/hive.v1.MessageService/ListMessages";
const WATCH: &str = "/hive.v1.EventService/WatchEvents";
const SELF: &str = "/hive.v1.TopologyService/GetSelf";
const SEND: &str = "/hive.v1.MessageService/SendMessage";

/// Maximum memory that one agent can make the broker keep, in bytes: for each call a page of 3 MiB
/// as values and as bytes, and the allocators' overhead; for each connection its window.
const GROWN_MAX: u64 = AGENT_CALLS_MAX as u64 * 8 * MIB + AGENT_CONNECTIONS_MAX as u64 * MIB;
/// Maximum memory that remains afterwards, in bytes, after any number of attacks. The allocator
/// keeps memory between other objects for the next use; less than one attack takes.
const KEPT_MAX: u64 = 192 * MIB;
const MIB: u64 = 1024 * 1024;

/// Connections that the attacker opens; half of the limit, so that the attacker's own calls are
/// still served.
const CONNECTIONS: usize = AGENT_CONNECTIONS_MAX / 2;

/// Connections are served concurrently, so the owner of the last permitted call is uncertain by
/// this many.
const SPREAD: usize = 4;

/// Opens `CONNECTIONS` connections to mallory's socket, with these settings.
async fn connect(scene: &Scene, settings: &[u8]) -> Vec<Raw> {
    let mut raws = Vec::new();
    for _ in 0..CONNECTIONS {
        raws.push(
            Raw::greet(&scene.rig.agent_socket("mallory"), settings).await.expect("it connects"),
        );
    }
    raws
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_pages_are_bounded_over_all_connections() {
    let mut scene = Scene::new().await;
    let mallory = scene.rig.agent("mallory").await;
    for _ in 0..100 {
        mallory.send("operator", &"m".repeat(32 * 1024)).await;
    }
    let list =
        ListMessagesRequest { page_size: 500, ..ListMessagesRequest::default() }.encode_to_vec();
    // More than once, so that kept memory would add up; without any room for an answer, and with
    // room for its first byte.
    for window in [0, 1, 0, 1] {
        let talk = scene.talk();
        let mut raws =
            connect(&scene, &frames::setting(frames::SETTING_INITIAL_WINDOW, window)).await;
        // A hundred calls on each, every one for a page of 3 MiB of which not a byte is read.
        // Headers need no window, so the test sees that each is answered.
        for raw in &mut raws {
            let attack: Vec<u8> =
                (0..100).flat_map(|number| frames::call(number * 2 + 1, LIST, &list)).collect();
            raw.send(&attack).await.expect("the connection stays");
            let all = |heard: &frames::Heard| heard.answered.len() >= 100;
            assert!(raw.until("each call is answered", all).await, "{:?}", raw.heard);
            assert!(
                raw.heard.bytes <= window as usize * AGENT_CALLS_MAX,
                "there is no more window: {:?}",
                raw.heard
            );
        }
        // The next call is refused with the number and a delay, like most of these.
        let refusal = raw::call(&mallory.channel(), SELF, MetadataMap::new(), Vec::new())
            .await
            .expect_err("too many");
        assert_eq!(status::reason(&refusal), Some(Reason::CallLimit), "{refusal:?}");
        assert!(refusal.message().starts_with(&AGENT_CALLS_MAX.to_string()), "{refusal:?}");
        assert!(status::retry_after(&refusal).is_some(), "{refusal:?}");
        let grown = scene.grown();
        assert!(grown <= GROWN_MAX, "the broker grew by {grown} bytes, of {GROWN_MAX} that it may");
        scene.served(talk, "unread pages").await;
        // Reading byte by byte does not free the calls; with a window each call can be ended.
        let talk = scene.talk();
        for raw in &mut raws {
            raw.send(&[frames::window(1, 1), frames::window(1, 1)].concat())
                .await
                .expect("the connection stays");
        }
        scene.served(talk, "pages read in crumbs").await;
        drop(raws);
        scene.recovered("unread pages", KEPT_MAX).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_that_do_not_read_are_bounded_and_miss_nothing_but_their_own() {
    let mut scene = Scene::new().await;
    let mut raws = connect(&scene, &frames::setting(frames::SETTING_INITIAL_WINDOW, 0)).await;
    for raw in &mut raws {
        let attack: Vec<u8> =
            (0..4).flat_map(|number| frames::call(number * 2 + 1, WATCH, &[0x08, 0x01])).collect();
        raw.send(&attack).await.expect("the connection stays");
        assert!(
            raw.until("each call is answered", |heard| heard.answered.len() >= 4).await,
            "{:?}",
            raw.heard
        );
    }
    let mallory = scene.rig.operator().await;
    let talk = scene.talk();
    for _ in 0..200 {
        mallory.send("mallory", "what is followed and not read").await;
    }
    scene.served(talk, "deaf watchers").await;
    let grown = scene.grown();
    assert!(grown <= 64 * MIB, "the broker grew by {grown} bytes");
    drop(raws);
    scene.recovered("deaf watchers", KEPT_MAX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_requests_are_bounded_and_do_nothing() {
    let mut scene = Scene::new().await;
    let send = |bytes: usize| request::send("dave", "x".repeat(bytes));
    let talk = scene.talk();
    let mut raws = connect(&scene, &[]).await;
    for (place, raw) in raws.iter_mut().enumerate() {
        // A connection begins with a window of 65,535 bytes, and the broker's update of it can come
        // after the attack has arrived.
        assert!(
            raw.until("its window is open", |heard| heard.windows > 0).await,
            "{:?}",
            raw.heard
        );
        // The longest message that is read at all, as far as the window of a call allows.
        let body = frames::message(&send(95 * 1024).encode_to_vec());
        let mut attack =
            frame(frames::HEADERS, frames::END_HEADERS, 1, &frames::call_headers(SEND));
        for chunk in body[..64 * 1024].chunks(16_000) {
            attack.extend(frame(frames::DATA, 0, 1, chunk));
        }
        // Three more that stop after their first byte, so that a quarter of as many connections
        // uses all permitted calls.
        for number in 1..4 {
            attack.extend(frame(
                frames::HEADERS,
                frames::END_HEADERS,
                number * 2 + 1,
                &frames::call_headers(SEND),
            ));
            attack.extend(frame(frames::DATA, 0, number * 2 + 1, &[0]));
        }
        attack.extend(frame(frames::PING, 0, 0, &[0; 8]));
        raw.send(&attack).await.unwrap_or_else(|error| panic!("connection {place} stays: {error}"));
        assert!(
            raw.until("what was said has been read", |heard| heard.acks >= 2).await,
            "{:?}",
            raw.heard
        );
        if place >= AGENT_CALLS_MAX / 4 + SPREAD {
            assert!(
                raw.until("it is refused", |heard| !heard.answered.is_empty()).await,
                "{:?}",
                raw.heard
            );
        } else if place < AGENT_CALLS_MAX / 4 - SPREAD {
            let waits = raw.heard.reset.is_empty() && raw.heard.answered.is_empty();
            assert!(waits, "connection {place}: the rest is waited for: {:?}", raw.heard);
        }
    }
    let grown = scene.grown();
    assert!(grown <= GROWN_MAX, "the broker grew by {grown} bytes, of {GROWN_MAX} that it may");
    scene.served(talk, "unfinished requests").await;
    drop(raws);
    scene.recovered("unfinished requests", KEPT_MAX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_dripped_out_byte_by_byte_serves_its_own_call_to_the_end() {
    let mut scene = Scene::new().await;
    let settings = frames::setting(frames::SETTING_INITIAL_WINDOW, 0);
    let mut raw =
        Raw::greet(&scene.rig.agent_socket("mallory"), &settings).await.expect("it connects");
    let talk = scene.talk();
    raw.send(&frames::call(1, SELF, b"")).await.expect("the connection stays");
    let mut had = 0;
    // The answer's headers come first and its trailers last; between them a byte for each byte of
    // window.
    while raw.heard.answered.len() < 2 {
        raw.send(&frames::window(1, 1)).await.expect("the connection stays");
        let more = |heard: &frames::Heard| heard.bytes > had || heard.answered.len() == 2;
        assert!(soon("a byte comes", raw.until("a byte comes", more)).await, "{:?}", raw.heard);
        had = raw.heard.bytes;
    }
    assert!(had > 20, "{:?}", raw.heard);
    scene.served(talk, "a dripping window").await;
    drop(raw);
    scene.recovered("a dripping window", KEPT_MAX).await;
}
