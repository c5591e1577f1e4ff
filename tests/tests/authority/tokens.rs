//! Tokens that are forged, of another agent, or outdated. Each is refused with its reason, and
//! nothing has changed.

use hive_core::reason::Reason;
use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{AckDeliveryRequest, AttachRequest, EventKind, ReceiveMessagesRequest};
use hive_proto::{PROCESS_TOKEN_KEY, in_session};
use hive_tests::rig::on_disk::changes;
use hive_tests::rig::{raw, request, soon};
use tonic::Code;
use tonic::metadata::{MetadataMap, MetadataValue};

use crate::authority_table::{Proof, Row, TABLE};
use crate::expected::{Stranger, of_owner, of_stranger};
use crate::requests;
use crate::rows::refused;
use crate::scene::{Scene, Things, path};

/// Texts that are not tokens of any agent.
const FORGED: [&str; 3] = [
    "00000000000000000000000000000000",
    "' OR 1=1 --; DROP TABLE turn;",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
];

fn row(method: &str) -> &'static Row {
    TABLE.iter().find(|row| row.method == method).expect("a row")
}

#[tokio::test]
async fn forged_tokens_are_refused_and_change_nothing() {
    let scene = Scene::set().await;
    let before = scene.on_disk();
    for row in TABLE.iter().filter(|row| row.agent) {
        let things = scene.owner(row);
        for forged in FORGED {
            let forged_things = Things {
                session: forged.to_owned(),
                process: forged.to_owned(),
                lease: forged.to_owned(),
                ..things.clone()
            };
            let reason = match (row.method, row.proof) {
                // An unknown session is a fresh start, and the takeover is requested: the owner may
                // do that.
                ("Attach", _) => continue,
                ("AckDelivery" | "NackDelivery" | "ExtendLease", _) => Reason::LeaseLost,
                (_, Proof::Session) => Reason::SessionLost,
                (_, Proof::Process | Proof::ProcessWhileAttached) => Reason::TurnEnded,
                (_, Proof::Socket) => continue,
            };
            refused(
                row,
                "its owner with a forged token",
                scene.call(&things.agent, row, &forged_things).await,
                reason,
            );
            scene.rig.unchanged(&before, row.method);
        }
    }
}

#[tokio::test]
async fn tokens_of_a_wrong_form_are_reported_as_such() {
    let scene = Scene::set().await;
    let before = scene.on_disk();
    let long = "x".repeat(129);
    for text in ["", "with\u{7}bell", long.as_str()] {
        for (method, things) in [
            ("Heartbeat", Things { session: text.to_owned(), ..scene.bob.clone() }),
            ("EndTurn", Things { session: text.to_owned(), ..scene.bob.clone() }),
            ("NackDelivery", Things { lease: text.to_owned(), ..scene.cyd.clone() }),
            ("BeginTurn", Things { process: text.to_owned(), ..scene.dan.clone() }),
        ] {
            let answer = scene.call(&things.agent, row(method), &things).await;
            refused(row(method), "its owner", answer, Reason::FieldInvalid);
        }
    }
    let short = Things { process: "only-15-of-them".to_owned(), ..scene.dan.clone() };
    refused(
        row("BeginTurn"),
        "its owner",
        scene.call("dan", row("BeginTurn"), &short).await,
        Reason::FieldInvalid,
    );
    for (metadata, what) in [
        (&b"short"[..], "short"),
        (b"\xff\xfe\xfd\xfc of sixteen and more", "no text"),
        (b"", "empty"),
    ] {
        let mut shown = MetadataMap::new();
        let value = MetadataValue::try_from(metadata).expect("a header may hold it");
        shown.insert(PROCESS_TOKEN_KEY, value);
        let request = requests::of(row("SendMessage"), &scene.bob);
        let answer =
            raw::call(&scene.channel("bob"), &path(row("SendMessage")), shown, request).await;
        refused(row("SendMessage"), what, answer, Reason::FieldInvalid);
    }
    scene.rig.unchanged(&before, "this");
}

#[tokio::test]
async fn a_harness_that_was_taken_over_can_do_nothing_more() {
    let mut scene = Scene::set().await;
    let old = scene.bob.clone();
    let session =
        scene.attach("bob", AttachRequest { take_over: true, ..AttachRequest::default() }).await;
    assert_ne!(session, old.session);
    let (turn, process) = scene.begin("bob", &session).await;
    let new = Things { session, turn, process, ..old.clone() };
    let before = scene.on_disk();
    for row in TABLE.iter().filter(|row| row.agent && row.method != "Attach") {
        let reason = match row.proof {
            Proof::Session => Reason::SessionLost,
            Proof::Process | Proof::ProcessWhileAttached => Reason::TurnEnded,
            Proof::Socket => continue,
        };
        refused(row, "the old harness", scene.call("bob", row, &old).await, reason);
        scene.rig.unchanged(&before, row.method);
    }
    // The old turn with the new session: it ended with its own session.
    let mixed = Things { turn: old.turn, ..new.clone() };
    for method in ["EndTurn", "ReportTurnEvents"] {
        refused(
            row(method),
            "the new harness",
            scene.call("bob", row(method), &mixed).await,
            Reason::SessionLost,
        );
    }
    scene.rig.unchanged(&before, "this");
    scene.call("bob", row("EndTurn"), &new).await.expect("the new harness ends its turn");
}

#[tokio::test]
async fn an_attached_harness_is_not_replaced_without_takeover() {
    let scene = Scene::set().await;
    let before = scene.on_disk();
    for session_token in ["", FORGED[0]] {
        let request = in_session(AttachRequest::default(), session_token);
        let refusal = scene.turns("bob").attach(request).await.expect_err("bob's harness lives");
        assert_eq!(hive_proto::status::reason(&refusal), Some(Reason::AlreadyAttached));
    }
    scene.rig.unchanged(&before, "this");
    scene.call("bob", row("Heartbeat"), &scene.bob).await.expect("bob's session lives");
}

#[tokio::test]
async fn the_process_of_a_turn_that_ended_can_do_nothing_more() {
    let scene = Scene::set().await;
    scene.call("bob", row("EndTurn"), &scene.bob).await.expect("the turn ends");
    let (_, next) = scene.begin("bob", &scene.bob.session).await;
    for row in TABLE.iter().filter(|row| row.agent && requests::shows_process(row)) {
        let before = scene.on_disk();
        refused(
            row,
            "a bridge that outlived its turn",
            scene.call("bob", row, &scene.bob).await,
            Reason::TurnEnded,
        );
        // A shell that dropped the token while a harness is attached.
        let answer = scene.call_by("bob", row, &scene.bob, "").await;
        refused(row, "a program without a token", answer, Reason::HarnessAttached);
        scene.rig.unchanged(&before, row.method);
        // The present turn's token on another's socket.
        let answer = scene.call_by("dan", row, &scene.bob, &next).await;
        match of_stranger(row) {
            Stranger::Logged(reason) => {
                refused(row, "another agent", answer, reason);
                scene.refusal_logged(&before, row.method);
            }
            Stranger::Refused(reason) => {
                refused(row, "another agent", answer, reason);
                scene.rig.unchanged(&before, row.method);
            }
            Stranger::Public | Stranger::OnOwn | Stranger::Absent => {
                refused(row, "another agent", answer, Reason::TurnEnded);
                scene.rig.unchanged(&before, row.method);
            }
        }
    }
    // Without an attached harness a plain client needs no token, but a wrong one is refused.
    for row in TABLE.iter().filter(|row| row.agent && requests::shows_process(row)) {
        refused(
            row,
            "a client with another's token",
            scene.call_by("cyd", row, &scene.cyd, &next).await,
            Reason::TurnEnded,
        );
        let answer = scene.call_by("cyd", row, &scene.cyd, "").await;
        if row.proof == Proof::Process {
            refused(row, "a client without a turn", answer, Reason::TurnEnded);
        } else if let Some(reason) = of_owner(row) {
            refused(row, "a plain client", answer, reason);
        } else {
            drop(answer.expect("a plain client may"));
        }
    }
    assert_eq!(
        scene
            .call("bob", row("EndTurn"), &scene.bob)
            .await
            .map(drop)
            .map_err(|refusal| refusal.code()),
        Ok(())
    );
}

#[tokio::test]
async fn a_lease_is_its_holders_while_it_lasts() {
    let scene = Scene::set().await;
    let before = scene.on_disk();
    let mut inbox = InboxServiceClient::new(scene.channel("cyd"));
    // The operator settles by name; an agent may not, not even its own lease.
    let key =
        hive_proto::v1::DeliveryKey { agent: "cyd".to_owned(), message_id: scene.cyd.message };
    let by_name = AckDeliveryRequest { target: Some(Target::Key(key)) };
    for name in ["ada", "cyd"] {
        let refusal = InboxServiceClient::new(scene.channel(name))
            .ack_delivery(by_name.clone())
            .await
            .expect_err("refused");
        assert_eq!(hive_proto::status::reason(&refusal), Some(Reason::NotYours), "{name}");
    }
    scene.rig.unchanged(&before, "this");

    // Settled: a repeated ack is still done, and a nack has lost the lease.
    scene.call("cyd", row("AckDelivery"), &scene.cyd).await.expect("it is acked");
    let rows = |scene: &Scene| {
        let mut tables = scene.on_disk();
        // A repeated answer is stored under its own request id.
        tables.remove("request");
        tables
    };
    let settled = rows(&scene);
    scene.call("cyd", row("AckDelivery"), &scene.cyd).await.expect("it is done already");
    for method in ["NackDelivery", "ExtendLease"] {
        refused(
            row(method),
            "its holder of before",
            scene.call("cyd", row(method), &scene.cyd).await,
            Reason::LeaseLost,
        );
    }
    assert_eq!(changes(&settled, &rows(&scene)), [""; 0]);

    // Expired: the delivery is requeued and leased to another.
    let mut watch = scene.rig.watch().await;
    scene.rig.operator().await.send("cyd", "again").await;
    let lease_duration = Some(prost_types::Duration { seconds: 0, nanos: 1_000_000 });
    let request = ReceiveMessagesRequest { lease_duration, ..request::receive() };
    let received = inbox.receive_messages(request).await.expect("mail").into_inner();
    let stale = Things { lease: received.deliveries[0].lease_token.clone(), ..scene.cyd.clone() };
    watch.kind("cyd", EventKind::DeliveryReturned).await;
    let before = scene.on_disk();
    for method in ["AckDelivery", "NackDelivery", "ExtendLease"] {
        refused(
            row(method),
            "its holder of before",
            scene.call("cyd", row(method), &stale).await,
            Reason::LeaseLost,
        );
        scene.rig.unchanged(&before, method);
    }
}

#[tokio::test]
async fn an_agent_that_is_gone_has_no_socket_and_its_connections_end() {
    let scene = Scene::set().await;
    let health = tonic_health::pb::health_client::HealthClient::new(scene.channel("bob"))
        .watch(tonic_health::pb::HealthCheckRequest::default())
        .await
        .expect("it is watched");
    let mut health = health.into_inner();
    assert!(health.message().await.expect("an answer").is_some());
    scene.call("operator", row("RetireAgent"), &scene.bob).await.expect("bob is retired");
    let end = soon("the connection ends", async {
        loop {
            match health.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status.code()),
            }
        }
    });
    assert!(!matches!(end.await, Some(Code::Ok)));
    assert!(!scene.rig.agent_socket("bob").exists(), "the socket is gone");
    let answer = scene.call("bob", row("Heartbeat"), &scene.bob).await;
    assert_eq!(answer.map(drop).expect_err("no broker answers").code(), Code::Unavailable);
}
