//! `soak`: keeps a hive of many agents busy for a long time, and reports whether its figures stayed
//! flat.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hive_campaigns::ledger::{Ledger, Line};
use hive_campaigns::soak::sample::Sample;
use hive_campaigns::soak::{self, Options};
use hive_campaigns::torture::now_ms;

/// Minimum time between restarts of the broker.
const RESTART_MIN: Duration = Duration::from_secs(40);

/// Mixed traffic at a fixed rate on real programs with scripted claudes, planned restarts and
/// agents that come and go; ends with 1 if memory, files, processes, sizes or delays are not flat,
/// or something was lost.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Duration, in minutes.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Agents with a harness.
    #[arg(long, default_value_t = 192)]
    workers: usize,
    /// Agents without one, on whose mail delays are measured.
    #[arg(long, default_value_t = 8)]
    players: usize,
    /// Deeds a second.
    #[arg(long, default_value_t = 4)]
    rate: u32,
    /// Seed of the traffic; by default a number that no run of the ledger had.
    #[arg(long)]
    seed: Option<u64>,
    /// Print only the totals of all runs so far.
    #[arg(long)]
    totals: bool,
}

fn row(sample: &Sample) -> String {
    format!(
        "{:>6}s broker {:>7.0} KiB {:>4.0} files, harness {:>6.0} KiB {:>3.1} files, {:>4.0} processes, database {:>7.0} wal {:>6.0} \
         search {:>6.0} turn events {:>6.0} KiB, p99 send {:>6.1} wake {:>6.1} ms",
        sample.at.as_secs(),
        sample.broker_kib,
        sample.broker_files,
        sample.harness_kib,
        sample.harness_files,
        sample.processes,
        sample.database_kib,
        sample.wal_kib,
        sample.search_kib,
        sample.turn_events_kib,
        sample.send_ms,
        sample.wake_ms
    )
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let ledger = Ledger::of("soak");
    let total = ledger.total()?;
    let mut out = std::io::stdout().lock();
    if arguments.totals {
        writeln!(out, "{:>10}  deeds in {} runs", total.count, ledger.lines()?.len())?;
        for (name, figure) in &total.figures {
            writeln!(out, "{figure:>10}  {name}")?;
        }
        writeln!(out, "{:>10}  violations", total.violations.len())?;
        return Ok(ExitCode::SUCCESS);
    }
    let seed = arguments.seed.unwrap_or(1 + ledger.lines()?.len() as u64);
    let span = Duration::from_secs(60 * arguments.minutes);
    let options = Options {
        span,
        workers: arguments.workers,
        players: arguments.players,
        rate: arguments.rate,
        sample_every: Duration::from_secs(10),
        // Often enough that each third of a run has several.
        restart_every: (span / 15).max(RESTART_MIN),
        day: span / 30,
        change_every: Duration::from_secs(15),
        seed,
        judge_delays: arguments.minutes >= 5,
    };
    writeln!(
        out,
        "seed {seed}, {} agents, {} minutes",
        arguments.workers + arguments.players,
        arguments.minutes
    )?;
    let outcome = soak::run(&options, |sample| {
        // If the output cannot be written to, the row is lost.
        drop(writeln!(out, "{}", row(sample)));
    })
    .await;
    let mut figures = outcome.figures.clone();
    figures.insert("minutes".to_owned(), arguments.minutes);
    let line = Line {
        date_ms: now_ms(),
        seed,
        count: outcome.deeds,
        figures,
        violations: outcome.violations.clone(),
    };
    ledger.add(&line)?;
    writeln!(out, "\n{:<22}{:>12}{:>12}{:>12}", "", "first third", "last third", "may be")?;
    for judged in &outcome.judged {
        writeln!(out, "{judged}")?;
    }
    writeln!(out, "\n{} deeds from seed {seed}: {:?}", outcome.deeds, outcome.figures)?;
    for violation in &outcome.violations {
        writeln!(out, "{violation}")?;
    }
    Ok(if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
