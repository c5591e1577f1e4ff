//! Campaigns: many seeds on all cores, each on one thread, and the ledger in which they add up.
//!
//! Invariant: the seeds that run do not depend on their speed.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use crate::log::Echo;
use crate::plan::Plan;
use crate::run::{Report, run};
use crate::world::Figures;

/// Runs these plans and passes each report on as it arrives. The first `false` ends the campaign
/// after the runs under way.
pub fn run_all(plans: &[Plan], threads: usize, mut each: impl FnMut(Report) -> bool) {
    let next = AtomicU64::new(0);
    let (reports, reported) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let (next, reports) = (&next, reports.clone());
            scope.spawn(move || {
                while let Some(plan) = usize::try_from(next.fetch_add(1, Ordering::Relaxed))
                    .ok()
                    .and_then(|place| plans.get(place))
                {
                    if reports.send(run(plan, Echo::Hash)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(reports);
        for report in reported {
            if !each(report) {
                next.store(u64::MAX / 2, Ordering::Relaxed);
            }
        }
    });
}

/// The sum of several runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Total {
    pub first: u64,
    pub count: u64,
    /// The sum of the runs' figures.
    pub figures: Figures,
    /// Their total duration, in ms.
    pub took_ms: u64,
    pub violations: u64,
}

impl Total {
    /// Adds a run.
    pub fn add(&mut self, figures: &Figures) {
        self.count += 1;
        self.figures.add(figures);
    }

    /// Returns the hours on the simulated clock.
    pub fn fleet_hours(&self) -> u64 {
        self.figures.simulated_ms / 3_600_000
    }

    /// In one line, for people.
    pub fn line(&self) -> String {
        let Figures { calls, done, commits, deaths, voids, simulated_ms, .. } = self.figures;
        let hours = (simulated_ms / 3_600_000).max(1);
        let per_minute = simulated_ms.saturating_mul(60) / 3_600 / self.took_ms.max(1);
        format!(
            "{} seeds, {hours} fleet-hours ({per_minute} a minute), {calls} calls ({done} answered, {} a fleet-hour), {commits} commits, {deaths} \
             deaths of the broker, {voids} void batches, {} violations",
            self.count,
            calls / hours,
            self.violations
        )
    }
}

/// The ledger: a line of JSON for each campaign, in the form of the other campaigns.
#[derive(Clone, Debug)]
pub struct Ledger(PathBuf);

impl Ledger {
    /// Returns the ledger of this workspace.
    pub fn here() -> Self {
        Self(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/campaigns/sim.jsonl"))
    }

    /// Returns the ledger at this path.
    pub fn at(path: &Path) -> Self {
        Self(path.to_path_buf())
    }

    /// Appends a campaign.
    pub fn add(&self, date_ms: i64, total: &Total) -> io::Result<()> {
        if let Some(dir) = self.0.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let Figures { calls, done, commits, deaths, voids, steps, simulated_ms } = total.figures;
        let Total { first, count, took_ms, violations, .. } = total;
        let broken: Vec<String> = (0..*violations).map(|_| "\"see the seed\"".to_owned()).collect();
        let line = format!(
            "{{\"date_ms\":{date_ms},\"seed\":{first},\"count\":{count},\"figures\":{{\"calls\":{calls},\"done\":{done},\"commits\":{commits},\
             \"deaths\":{deaths},\"voids\":{voids},\"steps\":{steps},\"simulated_ms\":{simulated_ms},\"took_ms\":{took_ms},\
             \"violations\":{violations}}},\"violations\":[{}]}}\n",
            broken.join(",")
        );
        std::fs::File::options().create(true).append(true).open(&self.0)?.write_all(line.as_bytes())
    }

    /// Returns the sum of all campaigns, and the seed after the last one.
    pub fn total(&self) -> io::Result<(Total, u64)> {
        let text = match std::fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let (mut total, mut next) = (Total::default(), 1);
        for line in text.lines() {
            let get = |name: &str| number(line, name);
            total.count += get("count");
            total.took_ms += get("took_ms");
            total.violations += get("violations");
            total.figures.add(&Figures {
                calls: get("calls"),
                done: get("done"),
                commits: get("commits"),
                deaths: get("deaths"),
                voids: get("voids"),
                steps: get("steps"),
                simulated_ms: get("simulated_ms"),
            });
            next = next.max(get("seed") + get("count"));
        }
        Ok((total, next))
    }
}

/// Returns the number with this name in a line of the ledger; 0 if there is none.
fn number(line: &str, name: &str) -> u64 {
    let value = line.split_once(&format!("\"{name}\":")).map_or("", |(_, rest)| rest);
    value.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaigns_add_up_and_go_on_behind_the_last() {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = Ledger::at(&dir.path().join("deep/sim.jsonl"));
        assert_eq!(ledger.total().expect("no file is no error"), (Total::default(), 1));
        let figures = Figures {
            calls: 7,
            done: 6,
            commits: 5,
            deaths: 4,
            voids: 3,
            steps: 2,
            simulated_ms: 1,
        };
        for (first, violations) in [(1, 0), (11, 2)] {
            let total = Total { first, count: 10, figures, took_ms: 9, violations };
            ledger.add(1_800_000_000_000, &total).expect("written");
        }
        let (total, next) = ledger.total().expect("read");
        assert_eq!((total.count, total.violations, total.took_ms, next), (20, 2, 18, 21));
        assert_eq!(total.figures.calls, 14);
    }
}
