//! `make bench`: what Hive costs, as ratios to rivals that do the same work, measured in one run.
//!
//! Rounds of the rivals take turns, so a machine that grows slower slows all. Each figure is a
//! median over the rounds with its smallest and largest. The load generator shares the cores with
//! the server. Everything runs on default settings, and "accepted" means synced.
//! Invariant: nothing here decides whether a test passes; it prints, and a person compares with
//! `docs/performance.md`.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod broadcast;
mod cli;
mod eyes;
mod flood;
mod history;
mod isolation;
mod kits;
mod migration;
mod parked;
mod plot;
mod report;
mod resident;
mod rival;
mod rounds;
mod sample;
mod search;
mod servers;
mod talk;
mod w1;
mod w2;
mod w3;
mod w4;
mod w5;
mod w6;
mod waiting;
mod watchers;

use std::io::Write as _;
use std::path::PathBuf;

use report::Report;
use rustix::process::{Resource, Rlimit};

/// Rounds of every workload.
const ROUNDS: usize = 5;
/// Messages that a consumer takes at once.
const PAGE: usize = 64;

/// Shows how far the bench is.
fn progress(text: &str) {
    // The figures matter, and this does not.
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// What the command line asks for.
#[derive(Debug, Default)]
struct Wanted {
    /// Names of workloads; none: all.
    names: Vec<String>,
    /// The file for all figures.
    json: Option<PathBuf>,
}

impl Wanted {
    /// Reads `[WORKLOAD…] [--json FILE]`; Cargo adds options of its own, which mean nothing here.
    fn read(mut args: impl Iterator<Item = String>) -> Self {
        let json = std::env::var_os("HIVE_BENCH_JSON").map(PathBuf::from);
        let mut wanted = Self { names: Vec::new(), json };
        while let Some(arg) = args.next() {
            if arg == "--json" {
                wanted.json = args.next().map(PathBuf::from);
            } else if !arg.starts_with('-') {
                wanted.names.push(arg.to_lowercase());
            }
        }
        wanted
    }

    fn has(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|wanted| wanted == name)
    }
}

fn main() -> anyhow::Result<()> {
    let wanted = Wanted::read(std::env::args().skip(1));
    raise_open_files()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut report = Report::new();
    runtime.block_on(run(&wanted, &mut report))?;
    if let Some(path) = &wanted.json {
        std::fs::write(path, format!("{:#}\n", report.json()))?;
    }
    plot::write(report.lines(), &hive_tests::binary::workspace().join("target/bench"))?;
    Ok(writeln!(std::io::stdout(), "{report}")?)
}

/// Raises the limit of open files as far as the host allows; servers inherit it.
fn raise_open_files() -> anyhow::Result<()> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    Ok(rustix::process::setrlimit(Resource::Nofile, raised)?)
}

async fn run(wanted: &Wanted, report: &mut Report) -> anyhow::Result<()> {
    if wanted.has("w1") {
        w1::run(report).await?;
    }
    if wanted.has("w2") {
        w2::run(report).await?;
    }
    if wanted.has("w3") {
        w3::run(report).await?;
    }
    if wanted.has("broadcast") {
        broadcast::run(report).await?;
    }
    if wanted.has("w4") {
        w4::run(report).await?;
    }
    if wanted.has("history") {
        history::run(report).await?;
    }
    if wanted.has("migration") {
        migration::run(report).await?;
    }
    if wanted.has("watchers") {
        watchers::run(report).await?;
    }
    if wanted.has("eyes") {
        eyes::run(report).await?;
    }
    if wanted.has("flood") {
        flood::run(report).await?;
    }
    if wanted.has("w5") {
        w5::run(report).await?;
    }
    if wanted.has("w6") {
        w6::run(report).await?;
        resident::run(report).await?;
    }
    if wanted.has("waiting") {
        waiting::run(report).await?;
    }
    if wanted.has("kits") {
        kits::run(report).await?;
    }
    if wanted.has("isolation") {
        isolation::run(report).await?;
    }
    if wanted.has("talk") {
        talk::run(report).await?;
    }
    if wanted.has("cli") {
        cli::run(report).await?;
    }
    if wanted.has("search") {
        search::run(report).await?;
    }
    Ok(())
}
