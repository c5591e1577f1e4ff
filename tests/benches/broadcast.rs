//! A message to everyone: parked agents are served, while another producer sends one message after
//! the other to agents that are not parked.
//!
//! ref has no such message, so there is a limit for the longest of these sends only.
//! `HIVE_BENCH_AGENTS` sets the number of agents. Invariant: each round has a server of its own.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::parked::park;
use crate::report::{Bounds, Report};
use crate::rival::{Kind, Producer, Server};
use crate::rounds::{Rounds, number, rounds};
use crate::sample::{Sample, micros};

const AGENTS: usize = 1000;
/// Agents that are not parked: the other messages go to them in turn.
const OTHERS: usize = 16;
/// Sends before the message to everyone.
const ALONE: usize = 200;
/// Time for a round.
const PATIENCE: Duration = Duration::from_secs(240);

#[derive(Debug)]
struct Round {
    /// The sends of the other producer before, in microseconds.
    before: Sample,
    /// Those from the message to everyone until the last agent has it.
    during: Sample,
    /// The time of the message to everyone.
    accepted: f64,
    /// From its start until the last agent has it.
    last: f64,
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let agents = number("HIVE_BENCH_AGENTS").unwrap_or(AGENTS);
    let hive = Kind::Unary;
    let (mut alone, mut longest) = <(Rounds, Rounds)>::default();
    let (mut accepted, mut last) = <(Rounds, Rounds)>::default();
    for round in 0..rounds() {
        crate::progress(&format!("broadcast: round {}, {agents} agents", round + 1));
        let server = Server::start_with_agents(hive, agents + OTHERS).await?;
        let measured = tokio::time::timeout(PATIENCE, measure(&server, agents)).await??;
        server.stop().await?;
        alone.push(hive, measured.before.quantile(1.0) / 1e3);
        longest.push(hive, measured.during.quantile(1.0) / 1e3);
        accepted.push(hive, measured.accepted / 1e3);
        last.push(hive, measured.last / 1e3);
    }
    alone.add_each(report, "broadcast", "longest other send before it", "ms");
    let (what, bounds) =
        (format!("longest other send while {agents} are served"), Bounds::only_most(100.0));
    longest.add_bounded(report, "broadcast", &what, "ms", (&[hive], Some(bounds)));
    accepted.add_each(report, "broadcast", &format!("accepted for {agents}"), "ms");
    last.add_each(report, "broadcast", &format!("last of {agents} has it"), "ms");
    Ok(())
}

async fn measure(server: &Server, agents: usize) -> anyhow::Result<Round> {
    let door = server.door();
    let mut parked = park(&door, agents).await?;
    server.rests().await?;
    let before = sends(door.producer().await?, agents, |sent| sent == ALONE).await?;
    let (served, is_served) = watch::channel(false);
    let other = door.producer().await?;
    let during = tokio::spawn(sends(other, agents, move |_| *is_served.borrow()));
    let everyone = door.producer().await?;
    let start = Instant::now();
    everyone.send_to_everyone().await?;
    let accepted = micros(start.elapsed());
    let (mut last, mut all) = (start, Vec::new());
    while let Some(agent) = parked.join_next().await {
        let (at, agent) = agent??;
        last = last.max(at);
        all.push(agent);
    }
    served.send_replace(true);
    Ok(Round { before, during: during.await??, accepted, last: micros(last - start) })
}

/// Sends to the agents that are not parked, one message at a time, until it is enough.
async fn sends(
    mut producer: Producer,
    parked: usize,
    is_enough: impl Fn(usize) -> bool,
) -> anyhow::Result<Sample> {
    let (mut sample, mut sent) = (Sample::default(), 0);
    while !is_enough(sent) {
        let start = Instant::now();
        producer.send(parked + sent % OTHERS).await?;
        sample.push(micros(start.elapsed()));
        sent += 1;
    }
    Ok(sample)
}
