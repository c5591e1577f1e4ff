//! W4: many stored messages: the server is killed and started again, and consumers drain a part of
//! them in pages of 16, each an inbox.
//!
//! `HIVE_BENCH_MESSAGES` lists the numbers of messages. Invariant: what a round takes is sent again
//! before the next one, so each round has the same number.

use std::time::Instant;

use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::report::{Bounds, Report};
use crate::rival::{Consumer, Kind, Server};
use crate::rounds::{Rounds, is_quick, rounds};
use crate::sample::micros;
use crate::servers;

/// A million messages fit into this many inboxes of the default depth.
const INBOXES: usize = 100;
const PRODUCERS: usize = 8;
/// Outstanding sends of a producer.
const OUTSTANDING: usize = 16;
/// Messages of a page, and so of an ack.
const PAGE: usize = 16;
/// Maximum messages that a round takes from an inbox.
const QUOTA: usize = 31 * PAGE;
/// The numbers of messages that are compared.
const FEW: usize = 10_000;
const MANY: usize = 1_000_000;

/// The figures for one number of messages.
#[derive(Debug, Default)]
struct Figures {
    messages: usize,
    restart: Rounds,
    drained: Rounds,
    pss: Rounds,
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for messages in numbers()? {
        let figures = measure(messages).await?;
        figures.add(report);
        all.push(figures);
    }
    let of = |messages: usize| all.iter().find(|figures| figures.messages == messages);
    if let (Some(many), Some(few)) = (of(MANY), of(FEW)) {
        for kind in [Kind::Unary, Kind::Streamed].into_iter().filter(|kind| many.drained.has(*kind))
        {
            let name = kind.name();
            let drained = many.drained.of(kind).per(&few.drained.of(kind));
            let bounds = Some(Bounds::least(0.8, 0.9, 1.0));
            report.figure("W4", &format!("drain, 1M / 10k, {name}"), "", drained, bounds);
            let restart = many.restart.of(kind).per(&few.restart.of(kind));
            let bounds = Some(Bounds::most(2.0, 1.3, 1.1));
            let what = format!("restart to first message, 1M / 10k, {name}");
            report.figure("W4", &what, "", restart, bounds);
        }
    }
    Ok(())
}

/// Returns the numbers of messages to measure with.
fn numbers() -> anyhow::Result<Vec<usize>> {
    match std::env::var("HIVE_BENCH_MESSAGES") {
        Ok(list) => list.split(',').map(|number| Ok(number.trim().parse()?)).collect(),
        Err(_) if is_quick() => Ok(vec![FEW]),
        Err(_) => Ok(vec![FEW, MANY]),
    }
}

impl Figures {
    fn add(&self, report: &mut Report) {
        let label = label(self.messages);
        let Self { restart, drained, pss, .. } = self;
        restart.add_each(report, "W4", &format!("{label}: restart to first message"), "ms");
        drained.add_each(report, "W4", &format!("{label}: receive and ack"), "1/s");
        pss.add_each(report, "W4", &format!("{label}: PSS"), "MiB");
        let what = format!("{label}: drain");
        let bounds = Some(Bounds::least(0.4, 0.6, 0.9));
        drained.add_ratio(report, "W4", &what, (Kind::Unary, Kind::Reference), bounds);
        drained.add_ratio(report, "W4", &what, (Kind::Streamed, Kind::Reference), None);
    }
}

fn label(messages: usize) -> String {
    match messages {
        MANY => "1M".to_owned(),
        _ => format!("{}k", messages / 1000),
    }
}

async fn measure(messages: usize) -> anyhow::Result<Figures> {
    let kinds = Kind::available();
    let mut servers = Vec::new();
    // Both ways of using Hive have one server.
    for kind in kinds.iter().filter(|kind| !kind.is_hive() || **kind == first_hive(&kinds)) {
        let server = Server::start(*kind, INBOXES).await?;
        let each = (messages / INBOXES).max(1);
        fill(&server, &[each; INBOXES]).await?;
        servers.push(server);
    }
    let mut figures = Figures { messages, ..Figures::default() };
    for round in 0..rounds() {
        for place in 0..kinds.len() {
            let kind = kinds[(place + round) % kinds.len()];
            let place = servers.iter().position(|server| {
                server.kind() == kind || (server.kind().is_hive() && kind.is_hive())
            });
            let Some(place) = place else { continue };
            let text = format!("W4: {}, round {}, {}", label(messages), round + 1, kind.name());
            crate::progress(&text);
            let taken = round_of(&mut servers[place], kind, messages, &mut figures).await?;
            fill(&servers[place], &taken).await?;
        }
    }
    for server in servers {
        server.stop().await?;
    }
    Ok(figures)
}

fn first_hive(kinds: &[Kind]) -> Kind {
    kinds.iter().copied().find(|kind| kind.is_hive()).unwrap_or(Kind::Unary)
}

/// Sends this many messages to each inbox.
pub(crate) async fn fill(server: &Server, each: &[usize]) -> anyhow::Result<()> {
    let total: usize = each.iter().sum();
    // Streams are the fastest way to load a Hive.
    let kind = server.kind();
    let door = server.door_of(if kind.is_hive() { Kind::Streamed } else { kind });
    let mut loads = JoinSet::new();
    for first in 0..PRODUCERS {
        let mut left: Vec<usize> = each.to_vec();
        let (mut inbox, mut sent) = (first, 0_usize);
        let name = kind.name();
        let next = move || {
            // Each producer fills inboxes of its own, all of them in turns.
            for _ in 0..=left.len() {
                let now = inbox;
                inbox += PRODUCERS;
                if inbox >= left.len() {
                    inbox = first;
                }
                if left[now] > 0 {
                    left[now] -= 1;
                    sent += 1;
                    if first == 0 && sent.is_multiple_of(10_000) {
                        crate::progress(&format!("W4: loading {name}: {} of {total}", sent * 8));
                    }
                    return Some(now);
                }
            }
            None
        };
        loads.spawn(door.producer().await?.load(OUTSTANDING, next));
    }
    let mut sent = 0;
    while let Some(tally) = loads.join_next().await {
        sent += tally??.sent;
    }
    anyhow::ensure!(sent == total as u64, "{sent} of {total} messages were sent");
    // What the server still does with them is not for the next rival.
    server.rests().await
}

/// Kills and starts the server, and drains; returns how many messages each inbox lost.
async fn round_of(
    server: &mut Server,
    kind: Kind,
    messages: usize,
    figures: &mut Figures,
) -> anyhow::Result<Vec<usize>> {
    server.end(Signal::KILL).await?;
    let start = Instant::now();
    server.restart().await?;
    let door = server.door_of(kind);
    let mut consumer = door.consumer(0, PAGE).await?;
    let first = consumer.receive().await?;
    figures.restart.push(kind, micros(start.elapsed()) / 1e3);
    consumer.finish().await?;

    let quota = (messages / INBOXES).min(QUOTA);
    let mut taken = vec![0; INBOXES];
    taken[0] = first;
    let mut connected = Vec::new();
    for inbox in 0..INBOXES {
        connected.push(door.consumer(inbox, PAGE).await?);
    }
    let (mut consumers, start) = (JoinSet::new(), Instant::now());
    for (inbox, consumer) in connected.into_iter().enumerate() {
        consumers.spawn(drain(consumer, inbox, quota.saturating_sub(taken[inbox])));
    }
    let mut count = 0;
    while let Some(drained) = consumers.join_next().await {
        let (inbox, drained) = drained??;
        taken[inbox] += drained;
        count += drained;
    }
    let span = start.elapsed();
    #[expect(clippy::cast_precision_loss, reason = "a count of messages")]
    figures.drained.push(kind, count as f64 / span.as_secs_f64());
    figures.pss.push(kind, servers::pss_mib(server.pid()?));
    Ok(taken)
}

/// Receives and acks this many messages of each inbox.
pub(crate) async fn drain_all(server: &Server, each: &[usize]) -> anyhow::Result<()> {
    let door = server.door_of(Kind::Streamed);
    let mut consumers = JoinSet::new();
    for (inbox, quota) in each.iter().enumerate().filter(|(_, quota)| **quota > 0) {
        consumers.spawn(drain(door.consumer(inbox, PAGE).await?, inbox, *quota));
    }
    while let Some(drained) = consumers.join_next().await {
        drained??;
    }
    server.rests().await
}

/// Receives and acks this many messages of an inbox, up to a page more.
async fn drain(
    mut consumer: Consumer,
    inbox: usize,
    quota: usize,
) -> anyhow::Result<(usize, usize)> {
    let mut taken = 0;
    while taken < quota {
        taken += consumer.receive().await?;
    }
    if taken > 0 {
        consumer.finish().await?;
    }
    Ok((inbox, taken))
}
