//! Migration: the database of the first broker, with a million messages, is opened by this one.
//!
//! The time is that from exec to the first answer, so it includes the migration, its syncs, and the
//! rest of the start. It is compared with the time of a start that has nothing to migrate.
//! `HIVE_BENCH_MIGRATION` sets the number of messages. Invariant: each round has a fresh copy of
//! the old database, and its contents are compared after the round.

use hive_tests::rig::old_database::{self, Contents};
use rustix::process::Signal;

use crate::report::{Bounds, Report};
use crate::rival::{Kind, Server};
use crate::rounds::{number, rounds};
use crate::sample::{Sample, micros};
use crate::servers;

const MESSAGES: usize = 1_000_000;
/// Rounds of it at most: one copies half a gigabyte, twice.
const ROUNDS_MAX: usize = 3;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let messages = u32::try_from(number("HIVE_BENCH_MIGRATION").unwrap_or(MESSAGES))?;
    let dir = servers::disk_dir()?;
    let old = dir.path().join("old.db");
    crate::progress(&format!("migration: making a database of {messages} messages"));
    let before = old_database::make(&old, messages)?;
    let (mut migrated, mut again) = <(Sample, Sample)>::default();
    for round in 0..rounds().min(ROUNDS_MAX) {
        crate::progress(&format!("migration: round {}", round + 1));
        let mut server = Server::start(Kind::Unary, 0).await?;
        server.end(Signal::TERM).await?;
        let database = server.database()?;
        std::fs::copy(&old, &database)?;
        // What the copy leaves to be written is not for the migration.
        std::fs::File::open(&database)?.sync_all()?;
        migrated.push(micros(server.restart().await?) / 1e6);
        server.end(Signal::TERM).await?;
        let version = old_database::read(&database)?.version;
        anyhow::ensure!(
            old_database::read(&database)? == Contents { version, ..before } && version > 1,
            "the migration has lost something"
        );
        again.push(micros(server.restart().await?) / 1e6);
        server.stop().await?;
    }
    let what = format!("start with {messages} messages of the first version");
    report.figure("migration", &what, "s", migrated, Some(Bounds::only_most(60.0)));
    report.figure("migration", "the next start", "s", again, None);
    Ok(())
}
