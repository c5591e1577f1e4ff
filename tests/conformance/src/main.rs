//! The conformance suite of clients: runs cases on the wire and through every kit.
//!
//! `tests/conformance/cases` has the cases, `conformance.proto` their schema. Invariant: the last
//! lines say how many cases ran, failed and were skipped; the exit code is 0 only if none failed.

#![expect(clippy::print_stdout, reason = "its results are its output")]

mod json;
mod kills;
mod kit;
mod kits;
mod path;
mod pattern;
mod refusal;
mod run;
mod scripted;
mod suite;
mod table;
mod task;
mod wire;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use clap::Parser;
use futures_util::stream::{self, StreamExt as _};

use crate::kit::Kit;
use crate::suite::{Case, Through};
use crate::table::Table;
use crate::task::Task;

/// Run the conformance suite.
#[derive(Debug, Parser)]
struct Args {
    /// `wire`, or a kit: python, typescript, go, rust. Without it all of them
    through: Vec<String>,
    /// Only cases whose family and name have this text
    #[arg(long, default_value = "")]
    only: String,
    /// Cases at the same time
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Print the names of the cases
    #[arg(long)]
    list: bool,
    /// In place of the cases: kill the broker so many times while each kit sends and takes mail
    #[arg(long, value_name = "COUNT")]
    kills: Option<usize>,
    /// Write the table of what ran, in Markdown, between the marks of this page
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// The directory of another `hived`, such as one of an earlier version
    #[arg(long, value_name = "DIRECTORY")]
    programs: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut cases = suite::read(&home.join("cases"))?;
    cases.retain(|case| title(case).contains(&args.only));
    if args.list {
        for case in &cases {
            println!("{}", title(case));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let all = ["wire".to_owned()].into_iter().chain(kits::NAMES.map(str::to_owned)).collect();
    let through: Vec<String> = if args.through.is_empty() { all } else { args.through };
    let programs = args.programs.as_deref();
    let mut lines = Vec::new();
    let mut failures = 0;
    let mut table = Table::default();
    for name in &through {
        let kit = match &name[..] {
            "wire" => None,
            kit => Some(Arc::new(Kit::start(kits::driver(kit)?).await?)),
        };
        if let Some(kit) = &kit {
            println!("{name}: {}", kit.version());
        }
        if let Some(kills) = args.kills {
            let kit = kit.with_context(|| format!("`{name}` is no kit"))?;
            let count = kills::run(kit, kills).await.with_context(|| name.clone())?;
            lines.push(format!(
                "{name}: {count} messages over {kills} kills, none lost, none doubled"
            ));
            continue;
        }
        let known = known_failing(&home, name)?;
        let (results, skipped) = run(&cases, kit, name, &known, args.jobs, programs).await;
        let failed = results.iter().filter(|(_, passed)| !passed).count();
        failures += failed;
        let count = results.len();
        lines.push(format!("{name}: {count} cases, {failed} failed, {skipped} skipped"));
        table.add(name, results);
    }
    if let Some(page) = &args.table {
        table.write(page)?;
    }
    println!("{}", lines.join("\n"));
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn title(case: &Case) -> String {
    format!("{}: {}", case.family, case.name)
}

/// Returns the cases that are known to fail through a kit. One that passes is a failure.
fn known_failing(home: &std::path::Path, name: &str) -> Result<BTreeSet<String>> {
    let file = home.join("known-failing").join(name);
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect())
}

/// Runs all cases that are for this way; returns the family of each, and whether it passed, and the
/// number of cases that are skipped.
async fn run(
    cases: &[Case],
    kit: Option<Arc<Kit>>,
    name: &str,
    known: &BTreeSet<String>,
    jobs: usize,
    programs: Option<&std::path::Path>,
) -> (Vec<(String, bool)>, usize) {
    let other = if kit.is_some() { Through::Wire } else { Through::Kits };
    let is_chosen = |case: &&Case| {
        // A scripted broker has no version.
        case.through != other && (programs.is_none() || case.script.is_empty())
    };
    let (skipped, chosen): (Vec<&Case>, Vec<&Case>) = cases
        .iter()
        .filter(is_chosen)
        .partition(|case| programs.is_some() && !case.later.is_empty());
    for case in &skipped {
        println!("{name}: SKIPPED: {}: {}", title(case), case.later);
    }
    let results = stream::iter(chosen.into_iter().enumerate().map(|(number, case)| {
        let (case, kit) = (case.clone(), kit.clone());
        let programs = programs.map(std::path::Path::to_path_buf);
        async move {
            let (family, title) = (case.family.clone(), title(&case));
            // A panic of the rig is a failure of its case alone.
            let ran = Task::start(async move { run::case(&case, kit, number, programs).await })
                .result()
                .await;
            (family, title, ran.unwrap_or_else(Err))
        }
    }));
    let mut results = results.buffer_unordered(jobs);
    let mut all = Vec::new();
    while let Some((family, title, result)) = results.next().await {
        let passed = result.is_ok() != known.contains(&title);
        match result {
            Ok(()) if !passed => println!("{name}: PASSES, and is listed as failing: {title}"),
            Err(error) if !passed => println!("{name}: FAILED: {title}\n    {error:#}"),
            Ok(()) | Err(_) => {}
        }
        all.push((family, passed));
    }
    (all, skipped.len())
}
