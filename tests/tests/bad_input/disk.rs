//! A full disk, at the start and in the middle: accepted mail stays, new requests are refused with
//! the advice to retry, and when there is room the broker continues by itself.

use std::collections::BTreeMap;

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::{GetBrokerStatusRequest, GetBrokerStatusResponse, SendMessageRequest};
use hive_tests::rig::small_disk::SmallDisk;
use hive_tests::rig::{Client, Rig, request, soon};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

const DISK_BYTES: u64 = 6 << 20;

fn request(number: usize) -> SendMessageRequest {
    let body = format!("message {number}, {}", "x".repeat(30_000));
    request::send("ada", body)
}

async fn broker_status(client: &Client) -> GetBrokerStatusResponse {
    client
        .admin()
        .get_broker_status(GetBrokerStatusRequest {})
        .await
        .expect("it can always be asked")
        .into_inner()
}

/// Checks that every acknowledged message is in the inbox with its text, and none twice.
async fn all_there(rig: &Rig, acknowledged: &BTreeMap<u64, String>) {
    let found = rig
        .operator()
        .await
        .deliveries("ada", &[])
        .await
        .into_iter()
        .filter_map(|delivery| delivery.message);
    let found: Vec<(u64, String)> = found.map(|message| (message.id, message.body)).collect();
    let by_id: BTreeMap<u64, String> = found.iter().cloned().collect();
    assert_eq!(found.len(), by_id.len(), "an id names one message");
    for (id, body) in acknowledged {
        assert_eq!(by_id.get(id), Some(body), "message {id} was acknowledged");
    }
    let mut bodies: Vec<&String> = by_id.values().collect();
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len(), by_id.len(), "nothing is there twice");
}

#[tokio::test]
async fn a_disk_that_fills_up_loses_nothing_and_the_broker_recovers_by_itself() {
    let mut rig = Rig::new("[agents.ada]\n");
    let Some(disk) = SmallDisk::mount(&rig.path("state"), DISK_BYTES).await else { return };
    rig.start_broker_by(disk.inside(&rig.broker_command())).await;
    let operator = rig.operator().await;
    let mut health = HealthClient::new(operator.channel())
        .watch(HealthCheckRequest::default())
        .await
        .expect("watched")
        .into_inner();
    assert_eq!(
        health.message().await.expect("a status").expect("a status").status(),
        ServingStatus::Serving
    );
    let mut sender = MessageServiceClient::new(operator.channel());
    let mut acknowledged = BTreeMap::new();
    let mut voided: Vec<SendMessageRequest> = Vec::new();

    for round in 0..2 {
        for number in 0..8 {
            let request = request(round * 100 + number);
            let body = request.body.clone();
            acknowledged.insert(
                sender.send_message(request).await.expect("there is room").into_inner().message_id,
                body,
            );
        }
        disk.fill();
        // Several at once, so that a batch with more than one command is voided too.
        let refusal = loop {
            let requests: Vec<_> = (0..4)
                .map(|number| request(round * 100 + 50 + voided.len() * 10 + number))
                .collect();
            let sends = requests.iter().map(|request| {
                let (mut sender, request) = (sender.clone(), request.clone());
                tokio::spawn(async move { sender.send_message(request).await })
            });
            let mut last = None;
            for (request, sent) in requests.iter().zip(sends.collect::<Vec<_>>()) {
                match soon("an answer", sent).await.expect("no panic") {
                    Ok(receipt) => drop(
                        acknowledged.insert(receipt.into_inner().message_id, request.body.clone()),
                    ),
                    Err(refusal) => {
                        voided.push(request.clone());
                        last = Some(refusal);
                    }
                }
            }
            if let Some(refusal) = last {
                break refusal;
            }
        };
        assert_eq!(status::reason(&refusal), Some(Reason::StorageUnavailable), "{refusal:?}");
        assert!(status::retry_after(&refusal).is_some(), "it says when to try again");
        let told = soon("its health changes", health.message())
            .await
            .expect("a status")
            .expect("a status");
        assert_eq!(told.status(), ServingStatus::NotServing);
        let shown = broker_status(&operator).await;
        assert!(!shown.storage_ok && shown.storage_error.contains("full"), "{shown:?}");
        let said = rig.hivectl(&["status"]).await;
        assert_eq!(said.code, 8, "{said:?}");
        assert!(said.stdout.contains("the database cannot be written"), "{said:?}");
        let refusal = sender.send_message(request(99)).await.expect_err("nothing is accepted");
        assert_eq!(status::reason(&refusal), Some(Reason::StorageUnavailable), "{refusal:?}");

        disk.free();
        let told =
            soon("it recovers", health.message()).await.expect("a status").expect("a status");
        assert_eq!(told.status(), ServingStatus::Serving);
        assert!(broker_status(&operator).await.storage_ok);
        all_there(&rig, &acknowledged).await;
        // A request that was answered "unknown, retry" is repeated with its id, and is stored once.
        for request in std::mem::take(&mut voided) {
            let body = request.body.clone();
            let receipt = sender.send_message(request).await.expect("there is room").into_inner();
            acknowledged.insert(receipt.message_id, body);
        }
        all_there(&rig, &acknowledged).await;
    }
    // And on disk, not only in memory.
    rig.kill_broker().await;
    rig.start_broker_by(disk.inside(&rig.broker_command())).await;
    all_there(&rig, &acknowledged).await;
}

#[tokio::test]
async fn a_disk_that_is_full_at_the_start_is_reported_and_loses_nothing() {
    let mut rig = Rig::new("[agents.ada]\n");
    let Some(disk) = SmallDisk::mount(&rig.path("state"), DISK_BYTES).await else { return };
    disk.fill();
    let error = rig.refused_broker_by(disk.inside(&rig.broker_command())).await;
    assert!(error.contains("full") || error.contains("No space left"), "{error}");
    disk.free();

    rig.start_broker_by(disk.inside(&rig.broker_command())).await;
    let mut acknowledged = BTreeMap::new();
    for number in 0..4 {
        let request = request(number);
        let body = request.body.clone();
        let mut sender = MessageServiceClient::new(rig.operator().await.channel());
        acknowledged.insert(
            sender.send_message(request).await.expect("there is room").into_inner().message_id,
            body,
        );
    }
    for kill in [true, false] {
        if kill {
            rig.kill_broker().await;
        } else {
            rig.stop_broker().await;
        }
        disk.fill();
        let error = rig.refused_broker_by(disk.inside(&rig.broker_command())).await;
        assert!(error.contains("full") || error.contains("No space left"), "{error}");
        disk.free();
        rig.start_broker_by(disk.inside(&rig.broker_command())).await;
        all_there(&rig, &acknowledged).await;
    }
}
