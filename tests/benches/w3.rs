//! W3: parked agents, each with a socket and a connection of its own; then one message to each.
//!
//! For Hive an agent is an attached harness with one `BeginTurn` that waits; for the reference
//! server it is one long poll. `HIVE_BENCH_AGENTS` sets their number. Invariant: each round has a
//! server of its own, so that its memory before the agents came is that of a fresh one.

use std::time::{Duration, Instant};

use crate::parked::park;
use crate::report::{Bounds, Report};
use crate::rival::{Kind, Server};
use crate::rounds::{Rounds, number, rounds};
use crate::sample::micros;
use crate::servers;

const AGENTS: usize = 1000;
/// Number of agents for which the bound on the last one is set.
const MANY: usize = 9500;
/// Outstanding sends of the operator.
const OUTSTANDING: usize = 16;
/// Time over which the CPU of an idle server is measured.
const IDLE: Duration = Duration::from_secs(2);
/// Time for a round.
const PATIENCE: Duration = Duration::from_secs(240);

#[derive(Debug)]
struct Round {
    /// Memory of the server for one agent, in KiB.
    pss_kib: f64,
    /// CPU of the idle server, in milliseconds per second.
    idle: f64,
    /// From the first send until the last agent has its message, in milliseconds.
    last: f64,
}

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let agents = number("HIVE_BENCH_AGENTS").unwrap_or(AGENTS);
    let is_compared = |kind: &Kind| matches!(kind, Kind::Reference | Kind::Unary);
    let kinds: Vec<Kind> = Kind::available().into_iter().filter(is_compared).collect();
    let (mut pss, mut idle, mut last) = <(Rounds, Rounds, Rounds)>::default();
    for round in 0..rounds() {
        for place in 0..kinds.len() {
            let kind = kinds[(place + round) % kinds.len()];
            crate::progress(&format!("W3: round {}, {agents} agents, {}", round + 1, kind.name()));
            let server = Server::start_with_agents(kind, agents).await?;
            let measured = tokio::time::timeout(PATIENCE, measure(&server, agents)).await??;
            server.stop().await?;
            pss.push(kind, measured.pss_kib);
            idle.push(kind, measured.idle);
            last.push(kind, measured.last);
        }
    }
    let hive = Kind::Unary;
    let (what, bounds) =
        (format!("PSS per parked agent of {agents}"), Bounds::most(28.0, 24.0, 20.0));
    pss.add_bounded(report, "W3", &what, "KiB", (&[hive], Some(bounds)));
    idle.add_each(report, "W3", "idle CPU per second", "ms");
    last.add_each(report, "W3", &format!("last of {agents} has its message"), "ms");
    let bounds = (agents >= MANY).then(|| Bounds::most(2.0, 1.5, 1.2));
    last.add_ratio(report, "W3", "last", (hive, Kind::Reference), bounds);
    Ok(())
}

async fn measure(server: &Server, agents: usize) -> anyhow::Result<Round> {
    let (pid, door) = (server.pid()?, server.door());
    let before = servers::pss_mib(pid);
    let mut parked = park(&door, agents).await?;
    server.rests().await?;
    #[expect(clippy::cast_precision_loss, reason = "a number of agents")]
    let pss_kib = (servers::pss_mib(pid) - before) * 1024.0 / agents as f64;
    let idle = server.used(IDLE).await? * 1e3;
    let producer = door.producer().await?;
    let (start, mut inboxes) = (Instant::now(), 0..agents);
    producer.load(OUTSTANDING, move || inboxes.next()).await?;
    let (mut last, mut all) = (start, Vec::new());
    while let Some(agent) = parked.join_next().await {
        let (at, agent) = agent??;
        last = last.max(at);
        all.push(agent);
    }
    Ok(Round { pss_kib, idle, last: micros(last - start) / 1e3 })
}
