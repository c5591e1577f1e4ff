//! `torture`: kills the programs of a hive again and again, and checks the delivery contract
//! against what its clients observed.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use hive_campaigns::ledger::{Ledger, Line};
use hive_campaigns::torture::{self, Options};

/// Kills broker, harnesses, bridges and claudes of a hive without warning, at random moments and at
/// fail points, and checks that the delivery contract was kept. What programs with fail points are
/// there is taken from HIVE_TEST_FAULTS_DIR or target/faults.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Number of kills.
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// The first round's seed; by default one that no run of the ledger had.
    #[arg(long)]
    seed: Option<u64>,
    /// Keep the hive of each round, even if nothing is found.
    #[arg(long)]
    keep: bool,
    /// Print only the totals of all runs so far.
    #[arg(long)]
    totals: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let ledger = Ledger::of("torture");
    let mut out = std::io::stdout().lock();
    let total = ledger.total()?;
    if arguments.totals {
        writeln!(out, "{:>10}  kills in {} runs", total.count, ledger.lines()?.len())?;
        for (name, figure) in &total.figures {
            writeln!(out, "{figure:>10}  {name}")?;
        }
        writeln!(out, "{:>10}  violations", total.violations.len())?;
        return Ok(ExitCode::SUCCESS);
    }
    // Rounds count their seeds up, and no run has more rounds than kills.
    let seed = arguments.seed.unwrap_or(1 + total.count);
    let options = Options {
        kills: arguments.kills,
        seed,
        faults: torture::faults_dir(),
        keep: arguments.keep,
    };
    if options.faults.is_none() {
        writeln!(
            std::io::stderr().lock(),
            "no programs with fail points are there; kills come at random only (tests/build-faults.sh)"
        )?;
    }
    let start = Instant::now();
    let rate = |kills: u64| kills as f64 / start.elapsed().as_secs_f64();
    let run = torture::run(&options, |seed, figures| {
        let mut err = std::io::stderr().lock();
        if err.is_terminal() {
            let kills = figures.kills();
            // If the terminal cannot be written to, the progress is lost.
            drop(write!(
                err,
                "\rseed {seed}: {kills} of {} kills, {:.1}/s ",
                options.kills,
                rate(kills)
            ));
        }
    })
    .await;
    let kills = run.figures.kills();
    ledger.add(&Line {
        date_ms: torture::now_ms(),
        seed,
        count: kills,
        figures: run.figures.0.clone(),
        violations: run.found.iter().map(|text| text.chars().take(4000).collect()).collect(),
    })?;
    let starts = rate(run.figures.get("broker starts"));
    writeln!(
        out,
        "{kills} kills from seed {seed}, {:.1}/s; {starts:.1} starts of a broker/s\n{}",
        rate(kills),
        run.figures
    )?;
    for found in &run.found {
        writeln!(out, "{found}")?;
    }
    Ok(if run.found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
