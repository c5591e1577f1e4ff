//! W2: 8 producers with one outstanding send each, to random of 100 inboxes; 100 consumers receive
//! and ack. W2p: 16 outstanding sends a producer, where group commit shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::report::{Bounds, Report};
use crate::rival::{Kind, Server};
use crate::rounds::{Rounds, rounds, span};
use crate::sample::Sample;
use crate::servers;

pub(crate) const INBOXES: usize = 100;
const PRODUCERS: usize = 8;
/// Outstanding sends of a producer in W2p.
const OUTSTANDING: usize = 16;
/// Time in which all that was accepted arrives.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with its parked consumers.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) server: Server,
    received: Arc<AtomicU64>,
    consumers: JoinSet<anyhow::Result<()>>,
}

#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) accepted_per_second: f64,
    p99: f64,
    cpu_per_message: f64,
}

impl Loaded {
    pub(crate) async fn start(kind: Kind) -> anyhow::Result<Self> {
        Self::on(Server::start(kind, INBOXES).await?).await
    }

    /// Parks the consumers of a server.
    pub(crate) async fn on(server: Server) -> anyhow::Result<Self> {
        let (received, mut consumers) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
        for inbox in 0..INBOXES {
            let mut consumer = server.door().consumer(inbox, crate::PAGE).await?;
            let received = Arc::clone(&received);
            consumers.spawn(async move {
                loop {
                    let count = consumer.receive().await?;
                    received.fetch_add(count as u64, Ordering::Relaxed);
                }
            });
        }
        Ok(Self { server, received, consumers })
    }

    pub(crate) async fn round(&mut self, window: usize) -> anyhow::Result<Round> {
        let mut producers = Vec::new();
        for _ in 0..PRODUCERS {
            producers.push(self.server.door().producer().await?);
        }
        let (over, pid) = (Arc::new(AtomicBool::new(false)), self.server.pid()?);
        let received = self.received.load(Ordering::Relaxed);
        let (cpu, start) = (servers::cpu_micros(pid), Instant::now());
        let mut loads = JoinSet::new();
        for (producer, seed) in producers.into_iter().zip(1_u64..) {
            let over = Arc::clone(&over);
            // A small generator of its own, so that the inboxes are as random in every run.
            let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed);
            loads.spawn(producer.load(window, move || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (!over.load(Ordering::Relaxed)).then_some(state as usize % INBOXES)
            }));
        }
        tokio::time::sleep(span()).await;
        over.store(true, Ordering::Relaxed);
        let (mut sent, mut sample) = (0, Sample::default());
        while let Some(tally) = loads.join_next().await {
            let tally = tally??;
            sent += tally.sent;
            sample.append(tally.sample);
        }
        let span = start.elapsed();
        // Accepted messages must also be delivered, acked and put into an index; that CPU time
        // counts as well, and must not be taken from the next rival.
        while self.received.load(Ordering::Relaxed) - received < sent {
            anyhow::ensure!(start.elapsed() < PATIENCE, "what was accepted did not arrive");
            if let Some(ended) = self.consumers.try_join_next() {
                ended??;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.server.rests().await?;
        let cpu = servers::cpu_micros(pid) - cpu;
        #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
        let sent = sent as f64;
        Ok(Round {
            accepted_per_second: sent / span.as_secs_f64(),
            p99: sample.quantile(0.99),
            cpu_per_message: cpu / sent,
        })
    }

    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.consumers.shutdown().await;
        self.server.stop().await
    }
}

/// The figures of one workload.
#[derive(Debug, Default)]
struct Figures {
    accepted: Rounds,
    p99: Rounds,
    cpu: Rounds,
}

impl Figures {
    fn push(&mut self, kind: Kind, round: &Round) {
        self.accepted.push(kind, round.accepted_per_second);
        self.p99.push(kind, round.p99);
        self.cpu.push(kind, round.cpu_per_message);
    }

    fn add(&self, report: &mut Report, name: &'static str, least: f64, bounds: [Bounds; 2]) {
        let (reference, unary, streamed) = (Kind::Reference, Kind::Unary, Kind::Streamed);
        self.accepted.add_each(report, name, "accepted", "1/s");
        self.p99.add_each(report, name, "send p99", "us");
        self.cpu.add_each(report, name, "server CPU per message", "us");
        if let Some(ratio) = self.accepted.ratio(reference, Kind::Redis) {
            report.reference(name, ratio, least);
        }
        self.accepted.add_ratio(report, name, "accepted", (unary, reference), Some(bounds[0]));
        self.accepted.add_ratio(report, name, "accepted", (streamed, Kind::Redis), Some(bounds[1]));
    }
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for kind in Kind::available() {
        all.push(Loaded::start(kind).await?);
    }
    let (mut single, mut piped) = (Figures::default(), Figures::default());
    for round in 0..rounds() {
        let count = all.len();
        for (figures, window) in [(&mut single, 1), (&mut piped, OUTSTANDING)] {
            for place in 0..count {
                let loaded = &mut all[(place + round) % count];
                let kind = loaded.server.kind();
                let measured = loaded.round(window).await?;
                crate::progress(&format!(
                    "W2: round {}, {window} outstanding, {}: {:.0}/s",
                    round + 1,
                    kind.name(),
                    measured.accepted_per_second
                ));
                figures.push(kind, &measured);
            }
        }
    }
    for loaded in all {
        loaded.stop().await?;
    }
    let (reference, unary, streamed) = (Kind::Reference, Kind::Unary, Kind::Streamed);
    let bounds = [Bounds::least(0.8, 1.0, 1.2), Bounds::least(0.6, 0.8, 1.0)];
    single.add(report, "W2", 0.65, bounds);
    let bounds = [Bounds::least(0.7, 0.9, 1.0), Bounds::least(0.3, 0.45, 0.7)];
    piped.add(report, "W2p", 0.28, bounds);
    let (what, cpu) = ("server CPU per message", &piped.cpu);
    cpu.add_ratio(report, "W2p", what, (unary, reference), Some(Bounds::most(1.4, 1.1, 0.9)));
    cpu.add_ratio(report, "W2p", what, (streamed, reference), Some(Bounds::most(0.8, 0.6, 0.5)));
    Ok(())
}
