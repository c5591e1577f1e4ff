//! `cli`: how long the operator waits for `hivectl` in a hive of 1,000 agents, completion included.

use std::time::Instant;

use hive_tests::binary;
use tokio::process::Command;

use crate::report::Report;
use crate::sample::{Sample, micros};
use crate::servers;

const AGENTS: usize = 1000;
/// Runs of each command.
const RUNS: usize = 40;

/// Commands, and how long their p95 may be, in milliseconds.
const COMMANDS: [(&[&str], &str); 8] = [
    (&["status"], "30"),
    (&["agents"], "30"),
    (&["topology"], "30"),
    (&["agent", "show", "a500"], "30"),
    (&["inbox"], "30"),
    (&["questions"], "30"),
    (&["loose-ends"], "30"),
    (&["send", "a500", "hello"], "30"),
];

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let rig = servers::broker(AGENTS).await?;
    let (program, socket) = (binary::find("hivectl", "hivectl"), rig.operator_socket());
    for (words, bound) in COMMANDS {
        let mut command = Command::new(&program);
        command.args(words).env("HIVE_SOCKET", &socket);
        report.add_quantiles(
            "C",
            &format!("hivectl {}", words.join(" ")),
            timed(command).await?,
            bound,
        );
    }
    // The request of a shell for the names that complete `hivectl send a9`.
    let mut completion = Command::new(&program);
    completion
        .args(["--", "hivectl", "send", "a9"])
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "2");
    completion
        .env("_CLAP_COMPLETE_COMP_TYPE", "9")
        .env("_CLAP_COMPLETE_SPACE", "true")
        .env("_CLAP_IFS", "\n")
        .env("HIVE_SOCKET", &socket);
    report.add_quantiles("C", "completion of an agent's name", timed(completion).await?, "50");
    rig.end().await;
    Ok(())
}

/// Runs a command `RUNS` times; each run has to succeed and to print output.
async fn timed(mut command: Command) -> anyhow::Result<Sample> {
    let mut sample = Sample::default();
    for _ in 0..RUNS {
        let start = Instant::now();
        let output = command.output().await?;
        sample.push(micros(start.elapsed()) / 1e3);
        anyhow::ensure!(
            output.status.success(),
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        anyhow::ensure!(
            !output.stdout.is_empty() || !output.stderr.is_empty(),
            "{command:?} said nothing"
        );
    }
    Ok(sample)
}
