//! Streams and headers in numbers and sizes that cost the broker more than the attacker, on one
//! connection.

use std::path::PathBuf;

use super::frames::{self, Code, Raw, frame};
use super::scene::Scene;

/// Maximum memory that the broker may keep of an attack on one connection, in bytes: memory that
/// the allocator did not free, and no more with each attack.
const KEPT_MAX: u64 = 24 * 1024 * 1024;
/// Repetitions on each socket, so that kept memory would add up.
const TIMES: usize = 3;

const WATCH: &str = "/hive.v1.EventService/WatchEvents";
const SELF: &str = "/hive.v1.TopologyService/GetSelf";

/// Sends bytes on new connections, to mallory's socket and the operator's; asserts that each ends
/// with one of these codes.
async fn ends_with(what: &str, attack: &[u8], codes: &[Code]) {
    let mut scene = Scene::new().await;
    let talk = scene.talk();
    let sockets: [PathBuf; 2] = [scene.rig.agent_socket("mallory"), scene.rig.operator_socket()];
    for socket in sockets.iter().cycle().take(2 * TIMES) {
        let mut raw = Raw::greet(socket, &[]).await.expect("it connects");
        // The broker may hang up before everything is written.
        drop(raw.send(attack).await);
        let code = raw.end().await;
        assert!(
            code.is_some_and(|code| codes.contains(&code)),
            "{what} on {}: {code:?} of {codes:?}",
            socket.display()
        );
    }
    scene.served(talk, what).await;
    scene.recovered(what, KEPT_MAX).await;
}

/// Returns the numbers of streams that a client opens.
fn opened(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|number| number * 2 + 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_reset_at_once_end_the_connection() {
    let reset = |stream| {
        let mut bytes =
            frame(frames::HEADERS, frames::END_HEADERS, stream, &frames::call_headers(WATCH));
        bytes.extend(frame(frames::RST_STREAM, 0, stream, &frames::CANCEL.to_be_bytes()));
        bytes
    };
    let attack: Vec<u8> = opened(20_000).flat_map(reset).collect();
    ends_with("rapid reset", &attack, &[frames::ENHANCE_YOUR_CALM]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_make_the_broker_reset_them_end_the_connection() {
    // A window over its limit is an error of the stream, so the broker resets it.
    let provoke = |stream| {
        let mut bytes =
            frame(frames::HEADERS, frames::END_HEADERS, stream, &frames::call_headers(WATCH));
        bytes.extend(frames::window(stream, 0x7fff_ffff));
        bytes
    };
    let attack: Vec<u8> = opened(20_000).flat_map(provoke).collect();
    ends_with("provoked resets", &attack, &[frames::ENHANCE_YOUR_CALM]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_calls_at_once_end_the_connection() {
    let attack: Vec<u8> =
        opened(20_000).flat_map(|stream| frames::call(stream, WATCH, b"")).collect();
    ends_with("thousands of calls", &attack, &[frames::ENHANCE_YOUR_CALM]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_the_bound_are_refused_and_those_within_it_served() {
    let mut scene = Scene::new().await;
    let talk = scene.talk();
    let mut raw = Raw::greet(&scene.rig.agent_socket("mallory"), &[]).await.expect("it connects");
    let attack: Vec<u8> = opened(300).flat_map(|stream| frames::call(stream, WATCH, b"")).collect();
    raw.send(&attack).await.expect("the connection stays");
    let all = |heard: &frames::Heard| heard.reset.len() + heard.answered.len() >= 300;
    assert!(raw.until("each call is answered or refused", all).await, "{:?}", raw.heard);
    assert!(
        raw.heard.reset.values().all(|code| *code == frames::REFUSED_STREAM),
        "{:?}",
        raw.heard
    );
    assert!((150..300).contains(&raw.heard.reset.len()), "{} are refused", raw.heard.reset.len());
    drop(raw);
    scene.served(talk, "calls over the bound").await;
    scene.recovered("calls over the bound", KEPT_MAX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_huge_header_ends_the_connection() {
    let mut block = frames::call_headers(SELF);
    block.extend(frames::header("x-long", &"x".repeat(4 << 20), false));
    let mut chunks = block.chunks(16_000).peekable();
    let mut attack = frame(frames::HEADERS, 0, 1, chunks.next().expect("a first part"));
    while let Some(chunk) = chunks.next() {
        let flags = if chunks.peek().is_none() { frames::END_HEADERS } else { 0 };
        attack.extend(frame(frames::CONTINUATION, flags, 1, chunk));
    }
    ends_with("one huge header", &attack, &[frames::ENHANCE_YOUR_CALM, frames::COMPRESSION_ERROR])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_headers_end_the_connection() {
    let mut block = frames::call_headers(SELF);
    for number in 0..20_000 {
        block.extend(frames::header(&format!("x-{number}"), "y", false));
    }
    let mut attack = Vec::new();
    for (place, chunk) in block.chunks(16_000).enumerate() {
        attack.extend(frame(
            if place == 0 { frames::HEADERS } else { frames::CONTINUATION },
            0,
            1,
            chunk,
        ));
    }
    ends_with(
        "thousands of headers",
        &attack,
        &[frames::ENHANCE_YOUR_CALM, frames::COMPRESSION_ERROR],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_without_an_end_end_the_connection() {
    let mut attack = frame(frames::HEADERS, 0, 1, &frames::call_headers(SELF));
    for _ in 0..100_000 {
        attack.extend(frame(frames::CONTINUATION, 0, 1, &[]));
    }
    ends_with("empty continuations", &attack, &[frames::ENHANCE_YOUR_CALM]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_unfolds_to_a_thousand_times_its_size_ends_the_connection() {
    // Four kilobytes into the table, then a byte for each copy: 60 MB of headers in one
    // frame.
    let mut block = frames::call_headers(SELF);
    block.extend(frames::header("x", &"y".repeat(4000), true));
    block.resize(16_000, 0x80 | 62);
    let attack = frame(frames::HEADERS, frames::END_HEADERS | frames::END_STREAM, 1, &block);
    ends_with("unfolding headers", &attack, &[frames::ENHANCE_YOUR_CALM]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_larger_table_of_headers_than_offered_ends_the_connection() {
    let mut block = frames::table_size(1 << 30);
    block.extend(frames::call_headers(SELF));
    let attack = frame(frames::HEADERS, frames::END_HEADERS | frames::END_STREAM, 1, &block);
    ends_with("a larger table", &attack, &[frames::COMPRESSION_ERROR, frames::PROTOCOL_ERROR])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_in_crumbs_ends_the_connection() {
    let mut attack = frame(frames::HEADERS, frames::END_HEADERS, 1, &frames::call_headers(SELF));
    attack.extend(frame(frames::DATA, 0, 1, &[0, 0, 0x10, 0, 0]));
    for _ in 0..200_000 {
        attack.extend(frame(frames::DATA, 0, 1, b"x"));
    }
    ends_with("a body in crumbs", &attack, &[frames::ENHANCE_YOUR_CALM]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_nothing_ends_the_connection() {
    let mut attack = frame(frames::HEADERS, frames::END_HEADERS, 1, &frames::call_headers(SELF));
    for _ in 0..200_000 {
        attack.extend(frame(frames::DATA, 0, 1, &[]));
    }
    ends_with("empty bodies", &attack, &[frames::ENHANCE_YOUR_CALM]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_and_settings_without_end_are_acknowledged_and_cost_no_memory() {
    let mut scene = Scene::new().await;
    let pings: Vec<u8> =
        (0..50_000_u64).flat_map(|n| frame(frames::PING, 0, 0, &n.to_be_bytes())).collect();
    let settings: Vec<u8> =
        (0..50_000).flat_map(|n| frames::setting(frames::SETTING_INITIAL_WINDOW, n)).collect();
    for (what, attack) in [("pings", pings), ("settings", settings)] {
        let talk = scene.talk();
        let mut raw =
            Raw::greet(&scene.rig.agent_socket("mallory"), &[]).await.expect("it connects");
        raw.send(&attack).await.expect("the connection stays");
        // The acknowledgement of the test's first settings is one more.
        assert!(
            raw.until("all are acknowledged", |heard| heard.acks >= 50_000).await,
            "{what}: {:?}",
            raw.heard
        );
        scene.served(talk, what).await;
        // The broker stops reading from a client that does not read the acknowledgements: writing
        // stops, and nothing piles up behind it.
        let talk = scene.talk();
        let mut deaf =
            Raw::greet(&scene.rig.agent_socket("mallory"), &[]).await.expect("it connects");
        let endless = attack.repeat(20);
        tokio::select! {
            sent = deaf.send_deaf(&endless) => panic!("{what}: all of it was taken in: {sent:?}"),
            () = scene.served(talk, what) => {}
        }
        let grown = scene.grown();
        assert!(grown <= KEPT_MAX, "{what}: the broker grew by {grown} bytes");
        drop((raw, deaf));
        scene.recovered(what, KEPT_MAX).await;
    }
}
