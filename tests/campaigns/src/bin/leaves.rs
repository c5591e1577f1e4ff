//! `leaves`: sends mail to agents on demand as their harnesses leave, and reports which moments it
//! hit and the longest wait.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use hive_campaigns::leaves::{self, Options};
use hive_campaigns::ledger::{Ledger, Line};
use hive_campaigns::torture::now_ms;

/// Mail for agents on demand under `hivectl up`, aimed at the moment at which the harness leaves:
/// before the broker decides, while the process ends, and after its end; ends with 1 if a message
/// waits, is handled twice, or finds two harnesses.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Number of tries.
    #[arg(long, default_value_t = 1000)]
    tries: u64,
    /// Hives that run at once, each with one agent.
    #[arg(long, default_value_t = 4)]
    hives: u64,
    /// Seed of the moments; by default a number that no run of the ledger had.
    #[arg(long)]
    seed: Option<u64>,
    /// Print only the totals of all runs so far.
    #[arg(long)]
    totals: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let ledger = Ledger::of("leaves");
    let total = ledger.total()?;
    let mut out = std::io::stdout().lock();
    if arguments.totals {
        writeln!(out, "{:>10}  tries in {} runs", total.count, ledger.lines()?.len())?;
        for (name, figure) in &total.figures {
            writeln!(out, "{figure:>10}  {name}")?;
        }
        writeln!(out, "{:>10}  violations", total.violations.len())?;
        return Ok(ExitCode::SUCCESS);
    }
    let seed = arguments.seed.unwrap_or(1 + ledger.lines()?.len() as u64);
    let options = Options { tries: arguments.tries, hives: arguments.hives.max(1), seed };
    let start = Instant::now();
    let outcome = leaves::run(&options).await;
    ledger.add(&Line {
        date_ms: now_ms(),
        seed,
        count: options.tries,
        figures: outcome.figures.clone(),
        violations: outcome.violations.clone(),
    })?;
    writeln!(
        out,
        "{} tries from seed {seed} in {:.0} s; the longest time from a send to its ack: {:.3} s",
        options.tries,
        start.elapsed().as_secs_f64(),
        outcome.longest_wait.as_secs_f64()
    )?;
    for (name, figure) in &outcome.figures {
        writeln!(out, "{figure:>10}  {name}")?;
    }
    for violation in &outcome.violations {
        writeln!(out, "{violation}")?;
    }
    Ok(if outcome.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
