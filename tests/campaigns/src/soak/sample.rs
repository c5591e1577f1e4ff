//! A sample of a hive at one moment: memory, open files, processes, sizes and delays.

use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;

/// The figures of a hive at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The time since the traffic began.
    pub at: Duration,
    /// Memory of the broker, in KiB.
    pub broker_kib: f64,
    /// Mean memory of a harness, in KiB.
    pub harness_kib: f64,
    pub broker_files: f64,
    /// Mean number of open files of a harness.
    pub harness_files: f64,
    pub processes: f64,
    /// The database, in KiB.
    pub database_kib: f64,
    /// The database's write-ahead log, in KiB.
    pub wal_kib: f64,
    /// The search index, in KiB.
    pub search_kib: f64,
    /// The database of turn events with its log, in KiB.
    pub turn_events_kib: f64,
    /// p99 of a send since the last sample, in ms.
    pub send_ms: f64,
    /// p99 from a send to a player's receive since the last sample, in ms.
    pub wake_ms: f64,
}

pub(super) fn take(
    at: Duration,
    broker: Pid,
    harnesses: &[Pid],
    processes: u64,
    state: &Path,
    sends: &[Duration],
    wakes: &[Duration],
) -> Sample {
    let mean = |of: fn(Pid) -> f64| {
        harnesses.iter().map(|pid| of(*pid)).sum::<f64>() / harnesses.len().max(1) as f64
    };
    let size = |name: &str| {
        let files = std::fs::read_dir(state).into_iter().flatten().flatten();
        let named = files.filter(|file| file.file_name().to_string_lossy() == name);
        named.filter_map(|file| Some(file.metadata().ok()?.len())).sum::<u64>() as f64 / 1024.0
    };
    Sample {
        at,
        broker_kib: memory_kib(broker),
        harness_kib: mean(memory_kib),
        broker_files: files(broker),
        harness_files: mean(files),
        processes: processes as f64,
        database_kib: size("hive.db"),
        wal_kib: size("hive.db-wal"),
        search_kib: size("search.sqlite3") + size("search.sqlite3-wal"),
        turn_events_kib: size("turn-events.db") + size("turn-events.db-wal"),
        send_ms: p99_ms(sends),
        wake_ms: p99_ms(wakes),
    }
}

fn memory_kib(pid: Pid) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero()))
        .unwrap_or_default();
    let pss = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok());
    pss.unwrap_or_default()
}

/// Counts open files without the database's: the broker keeps up to eight idle connections to it,
/// each opened when that many are first needed.
fn files(pid: Pid) -> f64 {
    let files = std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()))
        .into_iter()
        .flatten()
        .flatten();
    let target = |file: std::fs::DirEntry| std::fs::read_link(file.path()).unwrap_or_default();
    files.map(target).filter(|file| !is_of_the_database(file)).count() as f64
}

fn is_of_the_database(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hive.db"))
}

/// Returns the p99 in ms; 0 if there are no times.
fn p99_ms(times: &[Duration]) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let place = (times.len() * 99).div_ceil(100).saturating_sub(1);
    times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p99_is_the_value_that_99_of_100_do_not_exceed() {
        let times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!((p99_ms(&times), p99_ms(&times[199..]), p99_ms(&[])), (198.0, 1.0, 0.0));
    }
}
