//! W1: a consumer is parked on its inbox; one message of 200 bytes is sent durably, one at a time.
//! Measures the time from the start of the send until the consumer has the message.

use std::time::{Duration, Instant};

use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{AckDeliveryRequest, ReceiveMessagesRequest};
use hive_tests::rig::request;
use tokio::sync::mpsc;

use crate::sample::{Report, Sample, micros};
use crate::{ROUNDS, floors, servers};

const MESSAGES: usize = 300;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let mut rig = servers::broker(1).await?;
    let (operator, agent) = (rig.operator().await, rig.agent("a0").await);
    let floor_dir = servers::disk_dir()?;
    let mut consumer = InboxServiceClient::new(agent.channel());
    let (took, mut taken) = mpsc::channel(1);
    let consuming = tokio::spawn(async move {
        for number in 0_u64.. {
            let request = ReceiveMessagesRequest {
                request_id: format!("receive-{number}"),
                ..request::receive_waiting()
            };
            let Ok(received) = consumer.receive_messages(request).await else { return };
            let at = Instant::now();
            for leased in received.into_inner().deliveries {
                let request =
                    AckDeliveryRequest { target: Some(Target::LeaseToken(leased.lease_token)) };
                if consumer.ack_delivery(request).await.is_err() || took.send(at).await.is_err() {
                    return;
                }
            }
        }
    });
    let body = "x".repeat(200);
    let (mut p50, mut p99, mut ratio, mut own, mut floor_us) =
        <(Sample, Sample, Sample, Sample, Sample)>::default();
    for _ in 0..ROUNDS {
        let floor = floors::round_trip(floor_dir.path(), 2000)?.median()
            + floors::append_sync(floor_dir.path(), 300)?.median();
        let mut round = Sample::default();
        for _ in 0..MESSAGES {
            // The consumer has to be parked again, as it would be: its ack is answered, and its
            // next receive is on its way.
            tokio::time::sleep(Duration::from_millis(2)).await;
            let start = Instant::now();
            operator.send("a0", &body).await;
            let at =
                taken.recv().await.ok_or_else(|| anyhow::anyhow!("the consumer has stopped"))?;
            round.push(micros(at.duration_since(start)));
        }
        let (median, tail) = (round.median(), round.quantile(0.99));
        floor_us.push(floor);
        p50.push(median);
        p99.push(tail);
        ratio.push(median / floor);
        own.push(tail / median);
    }
    consuming.abort();
    rig.stop_broker().await;
    report.add(
        "W1",
        "floor: unix socket round trip + append and sync of 4 KiB",
        "us",
        floor_us,
        None,
    );
    report.add("W1", "send to hand, p50", "us", p50, None);
    report.add("W1", "send to hand, p99", "us", p99, None);
    report.add("W1", "p50 / floor", "", ratio, Some("2.5"));
    report.add("W1", "p99 / own p50", "", own, Some("4"));
    Ok(())
}
