//! W1: a consumer is parked on its inbox; one message of 200 bytes is sent durably, one at a time.
//! Measures the time from the start of the send until the consumer has the message.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::report::{Bounds, Report};
use crate::rival::{Kind, Producer, Server};
use crate::rounds::{Rounds, rounds};
use crate::sample::{Sample, micros};

/// Messages of a round.
const MESSAGES: usize = 300;

/// A server with a parked consumer.
#[derive(Debug)]
pub(crate) struct Pair {
    server: Server,
    inbox: usize,
    producer: Producer,
    taken: mpsc::Receiver<Instant>,
    consumer: JoinHandle<anyhow::Result<()>>,
}

impl Pair {
    async fn start(kind: Kind) -> anyhow::Result<Self> {
        Self::on(Server::start(kind, 1).await?, 0).await
    }

    /// Parks a consumer on an empty inbox of a server.
    pub(crate) async fn on(server: Server, inbox: usize) -> anyhow::Result<Self> {
        let producer = server.door().producer().await?;
        let mut consumer = server.door().consumer(inbox, crate::PAGE).await?;
        let (took, taken) = mpsc::channel(1);
        let consumer = tokio::spawn(async move {
            loop {
                consumer.receive().await?;
                if took.send(Instant::now()).await.is_err() {
                    return Ok(());
                }
            }
        });
        Ok(Self { server, inbox, producer, taken, consumer })
    }

    pub(crate) async fn round(&mut self) -> anyhow::Result<Sample> {
        let mut sample = Sample::default();
        for _ in 0..MESSAGES {
            // The consumer is parked again: its ack is answered, and its next receive waits.
            tokio::time::sleep(Duration::from_millis(2)).await;
            let start = Instant::now();
            self.producer.send(self.inbox).await?;
            let taken = self.taken.recv().await;
            let at = taken.ok_or_else(|| anyhow::anyhow!("the consumer has stopped"))?;
            sample.push(micros(at.duration_since(start)));
        }
        Ok(sample)
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.consumer.abort();
        drop(self.producer);
        self.server.stop().await
    }
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let mut pairs = Vec::new();
    for kind in Kind::available() {
        pairs.push(Pair::start(kind).await?);
    }
    let (mut p50, mut p99) = (Rounds::default(), Rounds::default());
    for round in 0..rounds() {
        crate::progress(&format!("W1: round {}", round + 1));
        let count = pairs.len();
        for place in 0..count {
            let pair = &mut pairs[(place + round) % count];
            let sample = pair.round().await?;
            p50.push(pair.server.kind(), sample.median());
            p99.push(pair.server.kind(), sample.quantile(0.99));
        }
    }
    for pair in pairs {
        pair.stop().await?;
    }
    p50.add_each(report, "W1", "send to hand, p50", "us");
    p99.add_each(report, "W1", "send to hand, p99", "us");
    let (reference, unary, streamed) = (Kind::Reference, Kind::Unary, Kind::Streamed);
    p50.add_ratio(report, "W1", "p50", (unary, reference), Some(Bounds::most(1.15, 1.05, 0.95)));
    p50.add_ratio(report, "W1", "p50", (streamed, reference), Some(Bounds::most(1.0, 0.85, 0.7)));
    for kind in [unary, streamed].into_iter().filter(|kind| p50.has(*kind)) {
        let own = p99.of(kind).per(&p50.of(kind));
        let what = format!("p99 / own p50, {}", kind.name());
        report.figure("W1", &what, "", own, Some(Bounds::most(3.0, 2.5, 2.0)));
    }
    Ok(())
}
