//! Identity: the socket, the kernel and secrets prove who calls, and nothing that resembles them
//! does.
//!
//! What it is not: tokens of earlier turns and of other agents, which are in `authority`.
//! Invariant: a secret is right as a whole and for its own purpose, or it is wrong; an operator's
//! service is absent from an agent's socket, however its name is written.

use hive_core::reason::Reason;
use hive_proto::PROCESS_TOKEN_KEY;
use hive_proto::v1::*;
use hive_tests::rig::{Harness, Rig, fresh_id, raw, request, soon};
use tonic::Code;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::Channel;

use crate::ask::{call, call_with, done, in_session, refused};
use crate::authority_table::TABLE;

/// A hive in which `ada` has a harness with an open turn, and `bob` has leased a message.
struct Scene {
    rig: Rig,
    ada: Channel,
    bob: Channel,
    harness: Harness,
    turn: u64,
    process: String,
    lease: String,
}

impl Scene {
    async fn set() -> Self {
        let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
        rig.start_broker().await;
        let operator = rig.operator().await;
        let (ada, bob) = (rig.agent("ada").await.channel(), rig.agent("bob").await.channel());
        operator.send("ada", "for a turn").await;
        operator.send("bob", "for a client").await;
        let harness = Harness::attach(&ada, false).await;
        let (begun, process) = harness.begin().await;
        let receive = request::receive();
        let received: ReceiveMessagesResponse = done(&bob, &receive).await;
        let lease = received.deliveries[0].lease_token.clone();
        Self { turn: begun.turn.expect("a turn").id, rig, ada, bob, harness, process, lease }
    }

    /// Tries a text instead of each secret, and asserts that it is refused.
    async fn is_none(&self, text: &str) {
        let over = [Reason::SessionLost, Reason::FieldInvalid];
        let lost = [Reason::LeaseLost, Reason::FieldInvalid];
        let what = format!("{text:?}");
        let heartbeat = in_session(HeartbeatRequest {}, text);
        refused(&what, call(&self.ada, &heartbeat).await, &over);
        let end = in_session(request::end_turn(self.turn, TurnOutcome::Ok), text);
        refused(&what, call(&self.ada, &end).await, &over);
        let problem = ReportProblemRequest {
            request_id: fresh_id(),
            subject: "x".to_owned(),
            text: "y".to_owned(),
        };
        refused(&what, call(&self.ada, &in_session(problem, text)).await, &over);
        let extend = ExtendLeaseRequest { lease_token: text.to_owned(), lease_duration: None };
        refused(&what, call(&self.bob, &extend).await, &lost);
        let target = Some(ack_delivery_request::Target::LeaseToken(text.to_owned()));
        let ack = AckDeliveryRequest { target };
        refused(&what, call(&self.bob, &ack).await, &lost);
        if let Ok(value) = MetadataValue::try_from(text.as_bytes()) {
            let mut shown = MetadataMap::new();
            shown.insert(PROCESS_TOKEN_KEY, value);
            let send = request::send("bob", "x");
            let answer = call_with(&self.ada, shown.clone(), &send).await;
            refused(&what, answer, &[Reason::TurnEnded, Reason::FieldInvalid]);
            let answer = call_with(&self.ada, shown, &RequestNextTurnRequest {}).await;
            refused(&what, answer, &[Reason::TurnEnded, Reason::FieldInvalid]);
        }
    }
}

/// Returns texts that differ slightly from this one.
fn nearly(secret: &str) -> Vec<String> {
    let mut near = vec![
        secret[..secret.len() - 1].to_owned(),
        secret[1..].to_owned(),
        format!("{secret}0"),
        format!(" {secret}"),
        format!("{secret} "),
        format!("{secret}\u{200b}"),
        format!("{secret}\u{301}"),
        format!("{secret}\0"),
        format!("{secret},{secret}"),
        secret.chars().rev().collect(),
        // Patterns of SQL that would match it, and a text beside it.
        "%".to_owned(),
        "_".repeat(secret.chars().count()),
        "*".to_owned(),
        format!("{secret}' OR '1'='1"),
        format!("'{secret}'"),
        // Characters that resemble others.
        secret.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c)).collect(),
        "\u{1f41d}".repeat(128),
    ];
    near.extend(
        [secret.to_uppercase(), secret.to_lowercase()].into_iter().filter(|text| text != secret),
    );
    near
}

#[tokio::test]
async fn a_secret_that_is_nearly_right_is_wrong() {
    let scene = Scene::set().await;
    let before = scene.rig.on_disk();
    for secret in [&scene.harness.session, &scene.process, &scene.lease] {
        for text in nearly(secret) {
            scene.is_none(&text).await;
        }
        scene.rig.unchanged(&before, "a secret that is nearly right");
    }
    let heartbeat = in_session(HeartbeatRequest {}, &scene.harness.session);
    let alive: HeartbeatResponse = done(&scene.ada, &heartbeat).await;
    assert_eq!(alive.open_turn_ids, [scene.turn], "the right one is right still");
}

#[tokio::test]
async fn a_secret_of_one_purpose_is_none_for_another() {
    let scene = Scene::set().await;
    let before = scene.rig.on_disk();
    let Scene { ada, bob, harness, process, lease, .. } = &scene;
    for (kind, text) in [("process", process), ("lease", lease)] {
        let heartbeat = in_session(HeartbeatRequest {}, text);
        refused(kind, call(ada, &heartbeat).await, &[Reason::SessionLost]);
        // Attaching with it is attaching without a token, while another harness is attached.
        let attach = in_session(AttachRequest::default(), text);
        refused(kind, call(ada, &attach).await, &[Reason::AlreadyAttached]);
    }
    for (kind, text) in [("session", &harness.session), ("lease", lease)] {
        let mut shown = MetadataMap::new();
        shown.insert(PROCESS_TOKEN_KEY, text.parse().expect("plain text"));
        let send = request::send("bob", "x");
        refused(kind, call_with(ada, shown, &send).await, &[Reason::TurnEnded]);
    }
    for (kind, text) in [("session", &harness.session), ("process", process)] {
        for channel in [ada, bob] {
            let extend = ExtendLeaseRequest { lease_token: text.clone(), lease_duration: None };
            refused(kind, call(channel, &extend).await, &[Reason::LeaseLost]);
        }
    }
    // The right secret, where it is not read.
    for key in [
        "hive-session-token",
        "authorization",
        "hive-caller",
        "hive-agent",
        "x-forwarded-user",
        "hive-operator",
    ] {
        let mut shown = MetadataMap::new();
        for text in [harness.session.as_str(), process.as_str(), "operator", "bob"] {
            shown.append(key, text.parse().expect("plain text"));
        }
        let who: GetSelfResponse =
            call_with(ada, shown.clone(), &GetSelfRequest {}).await.expect("answered").decode();
        assert_eq!(who.agent.expect("an agent").name, "ada", "{key}");
        let next = call_with(ada, shown, &RequestNextTurnRequest {}).await;
        refused(key, next, &[Reason::HarnessAttached]);
    }
    // Two tokens count as none: whichever is read, the other is not tried.
    let mut both = MetadataMap::new();
    both.append(PROCESS_TOKEN_KEY, "a-token-of-nobody-at-all".parse().expect("plain text"));
    both.append(PROCESS_TOKEN_KEY, process.parse().expect("plain text"));
    let answer = call_with(ada, both, &RequestNextTurnRequest {}).await;
    refused("two tokens", answer, &[Reason::TurnEnded]);
    scene.rig.unchanged(&before, "a secret of another purpose");
}

#[tokio::test]
async fn a_session_of_an_older_epoch_stays_lost_over_a_kill_of_the_broker() {
    let mut scene = Scene::set().await;
    let newer = Harness::attach(&scene.ada, true).await;
    let (_, process) = newer.begin().await;
    scene.rig.crash_broker().await;
    let ada = scene.rig.agent("ada").await.channel();
    let before = scene.rig.on_disk();
    let old = in_session(HeartbeatRequest {}, &scene.harness.session);
    refused("the older session", call(&ada, &old).await, &[Reason::SessionLost]);
    let mut shown = MetadataMap::new();
    shown.insert(PROCESS_TOKEN_KEY, scene.process.parse().expect("plain text"));
    let answer = call_with(&ada, shown, &RequestNextTurnRequest {}).await;
    refused("a process of the older session", answer, &[Reason::TurnEnded]);
    scene.rig.unchanged(&before, "a session of before");
    let new = in_session(HeartbeatRequest {}, &newer.session);
    let alive: HeartbeatResponse = done(&ada, &new).await;
    assert!(alive.open_turn_ids[0] > scene.turn, "the newer one goes on with its turn");
    let mut shown = MetadataMap::new();
    shown.insert(PROCESS_TOKEN_KEY, process.parse().expect("plain text"));
    call_with(&ada, shown, &RequestNextTurnRequest {}).await.expect("its process too");
}

#[tokio::test]
async fn an_operators_service_is_not_there_however_its_name_is_written() {
    let scene = Scene::set().await;
    let before = scene.rig.on_disk();
    for row in TABLE.iter().filter(|row| !row.agent) {
        let (service, method) = (row.service, row.method);
        let lower = service.to_lowercase();
        for path in [
            format!("/hive.v1.{service}/{method}"),
            format!("//hive.v1.{service}/{method}"),
            format!("/hive.v1.{service}//{method}"),
            format!("/hive.v1.{service}/{method}/"),
            format!("/hive.v1.{service}/{method}?x=1"),
            format!("/hive.v1.{service}%2F{method}"),
            format!("/hive%2Ev1.{service}/{method}"),
            format!("/./hive.v1.{service}/{method}"),
            format!("/hive.v1.TopologyService/../hive.v1.{service}/{method}"),
            format!("/hive.v1.{lower}/{method}"),
            format!("/hive.v1.{service}/{}", method.to_lowercase()),
            format!("/hive.v1.{service}/{method}%00"),
            format!("/{service}/{method}"),
        ] {
            let mut shown = MetadataMap::new();
            for (key, value) in [
                ("hive-caller", "operator"),
                ("x-forwarded-host", "hived.sock"),
                ("host", "operator"),
            ] {
                shown.insert(key, value.parse().expect("plain text"));
            }
            let refusal = soon(&path, raw::call(&scene.ada, &path, shown, Vec::new()))
                .await
                .map(drop)
                .expect_err(&path);
            assert_eq!(refusal.code(), Code::Unimplemented, "{path}: {refusal:?}");
        }
    }
    scene.rig.unchanged(&before, "an operator's call on an agent's socket");
    scene.rig.operator().await.send("ada", "the broker serves on").await;
}
