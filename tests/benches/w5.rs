//! W5: how long from exec to the first answered request, on a first boot and on existing state; and
//! the memory of an idle server, and of one after a round of W2.

use rustix::process::Signal;

use crate::report::{Bounds, Report};
use crate::rival::{Kind, Server};
use crate::rounds::{Rounds, rounds};
use crate::sample::micros;
use crate::{servers, w2};

/// Agents of the hive.
const AGENTS: usize = 2;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let kinds = Kind::available();
    let (mut first, mut again, mut pss, mut after) = <(Rounds, Rounds, Rounds, Rounds)>::default();
    for round in 0..rounds() {
        crate::progress(&format!("W5: round {}", round + 1));
        for place in 0..kinds.len() {
            let kind = kinds[(place + round) % kinds.len()];
            // To start, both ways of using Hive are the same.
            if kind != Kind::Streamed {
                let (mut server, span) = Server::boot(kind, AGENTS, 0).await?;
                first.push(kind, micros(span) / 1e3);
                server.end(Signal::TERM).await?;
                again.push(kind, micros(server.restart().await?) / 1e3);
                pss.push(kind, servers::pss_mib(server.pid()?));
                server.stop().await?;
            }
            let mut loaded = w2::Loaded::start(kind).await?;
            loaded.round(1).await?;
            after.push(kind, servers::pss_mib(loaded.server.pid()?));
            loaded.stop().await?;
        }
    }
    let (hive, pair) = (Kind::Unary, (Kind::Unary, Kind::Reference));
    first.add_each(report, "W5", "first boot to the first answer", "ms");
    again.add_each(report, "W5", "boot on existing state to the first answer", "ms");
    let bounds = Some(Bounds::most(2.0, 1.5, 1.2));
    first.add_ratio(report, "W5", "first boot", pair, bounds);
    let bounds = Some(Bounds::most(1.5, 1.2, 1.0));
    again.add_ratio(report, "W5", "boot on existing state", pair, bounds);
    let bounds = Some(Bounds::most(11.0, 9.0, 7.0));
    pss.add_bounded(report, "W5", "idle memory (PSS)", "MiB", (&[hive], bounds));
    let (hives, bounds) = ([hive, Kind::Streamed], Some(Bounds::most(24.0, 16.0, 12.0)));
    after.add_bounded(report, "W5", "memory after a round of W2 (PSS)", "MiB", (&hives, bounds));
    Ok(())
}
