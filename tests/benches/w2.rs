//! W2: 8 producers with one outstanding send each, to random of 100 inboxes; 100 consumers receive
//! and ack. W2p: 16 outstanding sends a producer, where group commit shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{AckDeliveryRequest, ReceiveMessagesRequest};
use hive_tests::rig::{Client, Rig, request};

use crate::sample::{Report, Sample, micros};
use crate::{ROUNDS, floors, servers};

const INBOXES: usize = 100;
const PRODUCERS: usize = 8;
const OUTSTANDING: usize = 16;
const SPAN: Duration = Duration::from_secs(3);

struct Round {
    accepted_per_second: f64,
    p99: f64,
    cpu_per_message: f64,
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let mut rig = servers::broker(INBOXES).await?;
    let floor_dir = servers::disk_dir()?;
    let received = Arc::new(AtomicU64::new(0));
    let mut consumers = Vec::new();
    for inbox in 0..INBOXES {
        consumers.push(tokio::spawn(consume(
            rig.agent(&format!("a{inbox}")).await,
            Arc::clone(&received),
        )));
    }
    let (mut floor, mut single, mut piped) = (Sample::default(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floor.push(floors::group_commit(floor_dir.path(), PRODUCERS, SPAN)?);
        single.push(round(&mut rig, PRODUCERS, &received).await?);
        piped.push(round(&mut rig, PRODUCERS * OUTSTANDING, &received).await?);
    }
    for consumer in consumers {
        consumer.abort();
    }
    rig.stop_broker().await;
    let floor_median = floor.median();
    report.add("W2", "floor: 8 producers, group append and sync", "1/s", floor, None);
    for (name, rounds, bound) in [("W2", &single, Some("0.35")), ("W2p", &piped, None)] {
        report.add(
            name,
            "accepted",
            "1/s",
            rounds.iter().map(|round| round.accepted_per_second).collect(),
            None,
        );
        report.add(
            name,
            "accepted / floor of W2",
            "",
            rounds.iter().map(|round| round.accepted_per_second / floor_median).collect(),
            bound,
        );
        report.add(name, "send p99", "us", rounds.iter().map(|round| round.p99).collect(), None);
        report.add(
            name,
            "server CPU per message",
            "us",
            rounds.iter().map(|round| round.cpu_per_message).collect(),
            None,
        );
    }
    Ok(())
}

pub(crate) async fn consume(client: Client, count: Arc<AtomicU64>) {
    let mut inbox = InboxServiceClient::new(client.channel());
    for number in 0_u64.. {
        let request = ReceiveMessagesRequest {
            request_id: format!("receive-{number}"),
            max_deliveries: 32,
            ..request::receive_waiting()
        };
        let Ok(received) = inbox.receive_messages(request).await else { return };
        for leased in received.into_inner().deliveries {
            let request =
                AckDeliveryRequest { target: Some(Target::LeaseToken(leased.lease_token)) };
            if inbox.ack_delivery(request).await.is_err() {
                return;
            }
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn round(rig: &mut Rig, tasks: usize, received: &Arc<AtomicU64>) -> anyhow::Result<Round> {
    // A connection for each producer; those with many outstanding sends share theirs, as a client
    // does.
    let mut channels = Vec::new();
    for _ in 0..PRODUCERS {
        channels.push(rig.operator().await);
    }
    let over = Arc::new(AtomicBool::new(false));
    let pid = rig.broker().pid();
    let (received_before, cpu_before, start) =
        (received.load(Ordering::Relaxed), servers::cpu_micros(pid), Instant::now());
    let senders: Vec<_> = (0..tasks)
        .map(|task| {
            let (client, over) = (channels[task % PRODUCERS].clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let body = "x".repeat(200);
                // A small generator of its own, so that the inboxes are as random in every run.
                let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(task as u64 + 1);
                let mut sample = Sample::default();
                let mut sent = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let to = format!("a{}", state % INBOXES as u64);
                    let start = Instant::now();
                    client.send(&to, &body).await;
                    sample.push(micros(start.elapsed()));
                    sent += 1;
                }
                (sent, sample.quantile(0.99))
            })
        })
        .collect();
    tokio::time::sleep(SPAN).await;
    over.store(true, Ordering::Relaxed);
    let (mut sent, mut tails) = (0, Sample::default());
    for sender in senders {
        let (count, tail) = sender.await?;
        sent += count;
        tails.push(tail);
    }
    let span = start.elapsed();
    // Accepted messages must also be delivered; that CPU time counts as well.
    while received.load(Ordering::Relaxed) - received_before < sent {
        anyhow::ensure!(
            start.elapsed() < Duration::from_secs(60),
            "what was accepted did not arrive"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let cpu = servers::cpu_micros(pid) - cpu_before;
    #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
    let sent = sent as f64;
    Ok(Round {
        accepted_per_second: sent / span.as_secs_f64(),
        p99: tails.median(),
        cpu_per_message: cpu / sent,
    })
}
