//! A broker to be measured: with N agents, on a file system that really syncs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hive_tests::api::{Api, Reply, Script};
use hive_tests::rig::Rig;
use rustix::process::Pid;
use serde_json::json;

use crate::sample::Sample;

/// A directory on the disk of the workspace, because the usual temporary one may be memory.
pub(crate) fn disk_dir() -> anyhow::Result<tempfile::TempDir> {
    let target = hive_tests::binary::workspace().join("target");
    std::fs::create_dir_all(&target)?;
    Ok(tempfile::Builder::new().prefix("b").tempdir_in(target)?)
}

/// A running broker with agents `a0`, `a1`, ….
pub(crate) async fn broker(agents: usize) -> anyhow::Result<Rig> {
    let mut rig = hive(agents, "")?;
    rig.start_broker().await;
    Ok(rig)
}

/// A hive with agents `a0`, `a1`, …, and this addition to its configuration.
pub(crate) fn hive(agents: usize, section: &str) -> anyhow::Result<Rig> {
    let mut config = format!("[hive]\nname = \"bench\"\n{section}");
    for agent in 0..agents {
        writeln!(config, "[agents.a{agent}]")?;
    }
    Ok(Rig::new_in(&config, &hive_tests::binary::workspace().join("target")))
}

/// A model that answers the operator in each turn, and ends it.
pub(crate) fn model() -> Api {
    let steps = [
        Reply::tool("mcp__hive__send", json!({"to": "operator", "body": "done"})),
        Reply::text("done"),
    ];
    Api::start(Script::new().when("", steps))
}

/// CPU time that a process's living threads have used, in microseconds.
pub(crate) fn cpu_micros(pid: Pid) -> f64 {
    let tasks = PathBuf::from(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let used = |task: &Path| -> Option<f64> {
        let schedstat = std::fs::read_to_string(task.join("schedstat")).ok()?;
        Some(schedstat.split_whitespace().next()?.parse::<f64>().ok()? / 1000.0)
    };
    std::fs::read_dir(tasks)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| used(&task.path()))
        .sum()
}

/// CPU time of a process's ended and awaited children, in microseconds. Counted in ticks of 10 ms,
/// so it wants many children.
pub(crate) fn children_cpu_micros(pid: Pid) -> f64 {
    let stat =
        std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // Behind the name: state is field 3 of the manual, cutime 16 and cstime 17.
    let ticks = |field: usize| {
        fields.get(field - 3).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0)
    };
    (ticks(16) + ticks(17)) * 10_000.0
}

/// Memory of a process that is its own part, in MiB.
pub(crate) fn pss_mib(pid: Pid) -> f64 {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero()))
        .unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(f64::NAN)
        / 1024.0
}

/// Memory of everything below a process, in MiB: one figure, the sum.
pub(crate) fn family_pss_mib(pid: Pid) -> Sample {
    let children = |pid: Pid| -> Vec<Pid> {
        let number = pid.as_raw_nonzero();
        let tasks =
            std::fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
        let listed =
            tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let numbers: Vec<i32> = listed
            .flat_map(|text| {
                text.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()
            })
            .collect();
        numbers.into_iter().filter_map(Pid::from_raw).collect()
    };
    let (mut open, mut sum) = (children(pid), 0.0);
    while let Some(pid) = open.pop() {
        sum += pss_mib(pid);
        open.extend(children(pid));
    }
    [sum].into_iter().collect()
}
