//! `disks`: makes the broker's files fail again and again, and checks that what it answered is
//! still there.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use hive_campaigns::disks::{self, Options};
use hive_campaigns::ledger::{Ledger, Line};
use hive_campaigns::torture::now_ms;

/// Runs the broker on disks that fail, fill up, lose what they were to sync, and lose their power;
/// checks that every receipt holds. Each 20th run is the real hived under strace.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Number of runs.
    #[arg(long, default_value_t = 1000)]
    runs: u64,
    /// The first run's seed; by default the one behind those of all runs so far.
    #[arg(long)]
    seed: Option<u64>,
    /// Print only the totals of all runs so far.
    #[arg(long)]
    totals: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let ledger = Ledger::of("disks");
    let mut out = std::io::stdout().lock();
    let total = ledger.total()?;
    if arguments.totals {
        writeln!(out, "{:>10}  runs", total.count)?;
        for (name, figure) in &total.figures {
            writeln!(out, "{figure:>10}  {name}")?;
        }
        writeln!(out, "{:>10}  violations", total.violations.len())?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options { runs: arguments.runs, seed: arguments.seed.unwrap_or(total.count) };
    let start = Instant::now();
    let outcome = disks::run(&options, |seed, outcome| {
        let mut err = std::io::stderr().lock();
        if err.is_terminal() {
            // If the terminal cannot be written to, the progress is lost.
            drop(write!(err, "\rseed {seed}: {} found ", outcome.found.len()));
        }
    })
    .await;
    ledger.add(&Line {
        date_ms: now_ms(),
        seed: options.seed,
        count: options.runs,
        figures: outcome.figures.clone(),
        violations: outcome.found.iter().map(|text| text.chars().take(4000).collect()).collect(),
    })?;
    writeln!(
        out,
        "{} runs from seed {}, {:.1}/s",
        options.runs,
        options.seed,
        options.runs as f64 / start.elapsed().as_secs_f64()
    )?;
    for (name, figure) in &outcome.figures {
        writeln!(out, "{figure:>10}  {name}")?;
    }
    for found in &outcome.found {
        writeln!(out, "{found}")?;
    }
    Ok(if outcome.found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
