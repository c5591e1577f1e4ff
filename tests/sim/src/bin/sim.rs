//! `sim`: simulates hives, by seed. See `sim --help`.

use std::io::{self, Write as _};
use std::num::NonZero;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use hive_broker::clock::{Clock as _, SystemClock};
use hive_fault::Bug;
use hive_sim::bugs::{self, SEEDS_MAX};
use hive_sim::campaign::{Ledger, Total, run_all};
use hive_sim::{Echo, Fault, Plan, Report, run, shrink};

/// Simulates hives: each on one thread, each determined by its seed.
#[derive(Debug, Parser)]
struct Cli {
    /// Number of seeds to run.
    #[arg(long, default_value_t = 100, conflicts_with = "seed")]
    seeds: u64,
    /// First seed; by default the one after the last of the ledger.
    #[arg(long, conflicts_with = "seed")]
    start: Option<u64>,
    /// Run this seed alone.
    #[arg(long)]
    seed: Option<u64>,
    /// Print its event log.
    #[arg(long, requires = "seed")]
    log: bool,
    /// Number of steps after which everything heals.
    #[arg(long)]
    steps: Option<u64>,
    /// Maximum number of agents.
    #[arg(long)]
    agents: Option<u64>,
    /// Minutes on the simulated clock after which everything heals.
    #[arg(long)]
    minutes: Option<u64>,
    /// Leave these classes of faults out.
    #[arg(long, value_delimiter = ',')]
    without: Vec<Fault>,
    /// Search for the planted bugs.
    #[arg(long)]
    bugs: bool,
    /// Plant this bug in the seed, or search for it alone.
    #[arg(long)]
    bug: Option<String>,
    /// Print the totals of all campaigns.
    #[arg(long)]
    totals: bool,
    /// Number of threads; by default the number of cores.
    #[arg(long)]
    threads: Option<usize>,
}

impl Cli {
    fn plan(&self, seed: u64) -> Plan {
        let whole = Plan::of(seed);
        Plan {
            seed,
            steps: self.steps.unwrap_or(whole.steps),
            agents: self.agents.unwrap_or(whole.agents),
            minutes: self.minutes.unwrap_or(whole.minutes),
            without: self.without.iter().copied().collect(),
        }
    }

    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZero::get))
    }
}

fn tell(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

fn main() -> io::Result<ExitCode> {
    let cli = Cli::parse();
    if cli.totals {
        tell(&Ledger::here().total()?.0.line())?;
        return Ok(ExitCode::SUCCESS);
    }
    let bug = cli.bug.as_deref().map(bug_named).transpose()?;
    match (cli.seed, bug) {
        _ if cli.bugs => look_for_bugs(&cli, &Bug::ALL),
        (Some(seed), bug) => one(&cli, seed, bug),
        (None, Some(bug)) => look_for_bugs(&cli, &[bug]),
        (None, None) => campaign(&cli),
    }
}

fn bug_named(name: &str) -> io::Result<Bug> {
    let bug = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
    bug.ok_or_else(|| io::Error::other(format!("there is no bug {name}; --bugs lists them")))
}

fn code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(cli: &Cli, seed: u64, bug: Option<Bug>) -> io::Result<ExitCode> {
    hive_fault::plant(bug);
    let began = Instant::now();
    let report = run(&cli.plan(seed), if cli.log { Echo::Print } else { Echo::Hash });
    let took = began.elapsed();
    tell_of(&report)?;
    tell(&format!("{}: {:?}, hash {}, {took:.1?}", report.plan, report.figures, report.hash))?;
    Ok(code(report.violations.is_empty()))
}

fn tell_of(report: &Report) -> io::Result<()> {
    for violation in &report.violations {
        tell(&format!("BROKEN {violation}"))?;
    }
    Ok(())
}

fn campaign(cli: &Cli) -> io::Result<ExitCode> {
    let ledger = Ledger::here();
    let first = match cli.start {
        Some(start) => start,
        None => ledger.total()?.1,
    };
    let plans: Vec<Plan> = (first..first + cli.seeds).map(|seed| cli.plan(seed)).collect();
    let began = Instant::now();
    let (mut total, mut failed, mut told) = (Total { first, ..Total::default() }, Vec::new(), 0);
    run_all(&plans, cli.threads(), |report| {
        total.add(&report.figures);
        total.violations += report.violations.len() as u64;
        total.took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        if !report.violations.is_empty() {
            failed.push(report);
        }
        if total.took_ms / 10_000 > told {
            told = total.took_ms / 10_000;
            // A caller that does not read the progress still gets the end.
            drop(tell(&total.line()));
        }
        failed.len() < 3
    });
    tell(&total.line())?;
    let now = SystemClock::new()?.now().wall.0;
    // A shrunk or limited run is not a campaign.
    if cli.steps.is_none()
        && cli.minutes.is_none()
        && cli.agents.is_none()
        && cli.without.is_empty()
    {
        ledger.add(now, &total)?;
    }
    failed.sort_by_key(|report| report.plan.seed);
    for report in &failed {
        tell(&format!("seed {} broke a promise:", report.plan.seed))?;
        tell_of(report)?;
    }
    if let Some(report) = failed.into_iter().next() {
        tell("shrinking the first of them")?;
        let smallest = shrink(report);
        tell_of(&smallest)?;
        tell(&format!("the smallest that breaks one: {}", smallest.plan))?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn look_for_bugs(cli: &Cli, bugs: &[Bug]) -> io::Result<ExitCode> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let (hunts, hunted) = std::sync::mpsc::channel();
    let mut missed = 0;
    std::thread::scope(|scope| {
        for _ in 0..cli.threads() {
            let (next, hunts) = (&next, hunts.clone());
            scope.spawn(move || {
                while let Some(bug) =
                    bugs.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    // The main thread reads until the last hunt, so the send succeeds.
                    drop(hunts.send(bugs::hunt(*bug, cli.start.unwrap_or(1), SEEDS_MAX)));
                }
            });
        }
        drop(hunts);
        for hunt in hunted {
            let (name, seconds) = (format!("{:?}", hunt.bug), hunt.took.as_secs_f64());
            match hunt.caught {
                Some((seed, violation)) => {
                    let violation: String =
                        violation.lines().next().unwrap_or_default().chars().take(120).collect();
                    tell(&format!("{name:<24} seed {seed:>4}  {seconds:>6.1} s  {violation}"))?;
                }
                None => {
                    missed += 1;
                    tell(&format!("{name:<24} NOT FOUND in {SEEDS_MAX} seeds  {seconds:>6.1} s"))?;
                }
            }
        }
        Ok::<_, io::Error>(())
    })?;
    Ok(code(missed == 0))
}
