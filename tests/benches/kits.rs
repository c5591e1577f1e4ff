//! `kits`: sends, and deliveries that are received and acked, through each client kit, compared
//! with the generated client of the same language, which makes the same calls with the same window.
//!
//! The programs that send and receive are those in `clients/*/rates`; each prints the seconds of
//! its counted part. Invariant: every message that was sent is received before the next program
//! runs, so all of them meet an empty inbox.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use hive_tests::binary;
use hive_tests::rig::Rig;
use tokio::process::Command;

use crate::report::{Bounds, Report};
use crate::rounds::rounds;
use crate::sample::Sample;
use crate::servers;

/// Messages of a round, of which the last ten elevenths count.
const MESSAGES: u32 = 22_000;
/// Messages that are under way at once: sends, and deliveries.
const SENDS: u32 = 16;
const DELIVERIES: u32 = 64;

/// The kits, and the part of the rate of the generated client that each must reach.
const KITS: [(&str, f64); 4] = [("rust", 0.5), ("go", 0.5), ("typescript", 0.5), ("python", 0.7)];

/// How a program uses the broker, and what it does.
const WAYS: [&str; 2] = ["kit", "generated"];
const WORKS: [(&str, &str, u32); 2] =
    [("send", "sent", SENDS), ("receive", "received and acked", DELIVERIES)];

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let built = Command::new(binary::workspace().join("clients/build.sh")).status().await?;
    ensure!(built.success(), "clients/build.sh has failed; tests/setup.sh installs what it needs");
    let mut rig = servers::hive(1, &format!("[broker.limits]\ninbox_depth_max = {MESSAGES}\n"))?;
    rig.start_broker().await;
    for (kit, must) in KITS {
        // By way, and by work.
        let mut rates: [[Sample; 2]; 2] = Default::default();
        for round in 0..rounds() {
            crate::progress(&format!("kits: {kit}, round {}", round + 1));
            for place in 0..WAYS.len() {
                let way = (place + round) % WAYS.len();
                for (work, sample) in rates[way].iter_mut().enumerate() {
                    sample.push(rate(&rig, kit, way, work).await?);
                }
            }
        }
        for (work, (_, done, _)) in WORKS.iter().enumerate() {
            let [own, generated] = [0, 1].map(|way| rates[way][work].clone());
            let ratio = own.per(&generated);
            report.figure("kits", &format!("{done}, {kit}"), "/s", own, None);
            let what = format!("{done}, {kit}, generated client");
            report.figure("kits", &what, "/s", generated, None);
            let what = format!("{done}, {kit} / generated client");
            report.figure("kits", &what, "", ratio, Some(Bounds::only_least(must)));
        }
    }
    rig.end().await;
    Ok(())
}

/// Runs the program of a kit to its end; returns the messages of a second.
async fn rate(rig: &Rig, kit: &str, way: usize, work: usize) -> anyhow::Result<f64> {
    let (way, (work, _, window)) = (WAYS[way], WORKS[work]);
    let counted = MESSAGES / 11 * 10;
    // The operator's socket has no rate limit.
    let socket = if work == "send" { rig.operator_socket() } else { rig.agent_socket("a0") };
    let mut command = program(kit);
    command.args([way, work]).arg(socket).args(["a0", &counted.to_string(), &window.to_string()]);
    let output = command.kill_on_drop(true).output().await?;
    let what = || format!("{kit} {way} {work}: {}", String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), what());
    let seconds: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().with_context(what)?;
    Ok(f64::from(counted) / seconds)
}

/// Returns the command that starts the program of a kit.
fn program(kit: &str) -> Command {
    let home = binary::workspace();
    let script = |program: &Path, name: &str| {
        let mut command = Command::new(program);
        command.arg(home.join("clients").join(kit).join("rates").join(name));
        command
    };
    match kit {
        "rust" => Command::new(binary::find("hive-client-rates", "hive-client-rates")),
        "go" => Command::new(home.join(".cache/go-rates")),
        "typescript" => script(&PathBuf::from("node"), "rates.mjs"),
        _ => {
            let mut command = script(&home.join(".cache/python/bin/python"), "rates.py");
            command.env("PYTHONPATH", home.join("clients/python/src"));
            command
        }
    }
}
