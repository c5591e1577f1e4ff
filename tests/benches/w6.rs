//! W6: a whole turn with the real claude against an instant stand-in of its API. What harness,
//! bridge and broker use of the CPU, next to what claude itself uses.

use hive_proto::v1::EventKind;
use hive_tests::rig::{HarnessOptions, Rig};
use hive_tests::{binary, claude, mcp};

use crate::report::{Bounds, Report};
use crate::sample::Sample;
use crate::{ROUNDS, servers};

/// Turns of one round.
const TURNS: usize = 5;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let cli = claude::find()?;
    let api = servers::model();
    let mut rig = servers::broker(1).await?;
    let home = rig.path("agents/a0/home");
    std::fs::create_dir_all(home.join("tmp"))?;
    let claude_env = claude::further_environment(&home, &api.url());
    let options = HarnessOptions { claude: cli, claude_env, ..HarnessOptions::default() };
    let key = rig.start_harness_with("a0", &options);
    turn(&mut rig).await;

    let bridge = bridge_cpu(&rig).await?;
    let (mut ours, mut theirs, mut ratio, mut span) = <(Sample, Sample, Sample, Sample)>::default();
    for _ in 0..ROUNDS {
        let (harness, broker) = (rig.harness(&key).pid(), rig.broker().pid());
        let before = [
            servers::cpu_micros(harness),
            servers::cpu_micros(broker),
            servers::children_cpu_micros(harness),
        ];
        let start = std::time::Instant::now();
        for _ in 0..TURNS {
            turn(&mut rig).await;
        }
        let after = [
            servers::cpu_micros(harness),
            servers::cpu_micros(broker),
            servers::children_cpu_micros(harness),
        ];
        #[expect(clippy::cast_precision_loss, reason = "a handful of turns")]
        let per_turn = |place: usize| (after[place] - before[place]) / TURNS as f64 / 1000.0;
        let hive = per_turn(0) + per_turn(1) + bridge;
        let model = per_turn(2) - bridge;
        ours.push(hive);
        theirs.push(model);
        ratio.push(100.0 * hive / model);
        #[expect(clippy::cast_precision_loss, reason = "a handful of turns")]
        span.push(start.elapsed().as_secs_f64() * 1e3 / TURNS as f64);
    }
    report.add("W6", "wake to settled, one claude process a turn", "ms", span, None);
    report.add("W6", "CPU of harness, bridge and broker per turn", "ms", ours, None);
    report.add(
        "W6",
        "of it the bridge, alone in the same calls",
        "ms",
        [bridge].into_iter().collect(),
        None,
    );
    report.add("W6", "CPU of claude per turn", "ms", theirs, None);
    let bounds = Bounds::most(2.0, 1.5, 1.0);
    report.figure("W6", "ours / claude's", "%", ratio, Some(bounds));
    rig.stop_harness(&key).await;
    rig.stop_broker().await;
    Ok(())
}

async fn turn(rig: &mut Rig) {
    let mut watch = rig.watch_from_now().await;
    rig.operator().await.send("a0", "Say that you are done.").await;
    watch.kind("a0", EventKind::TurnEnded).await;
}

/// Returns the CPU of a bridge for one turn's calls, in milliseconds. The bridge runs alone: inside
/// claude its CPU cannot be separated.
async fn bridge_cpu(rig: &Rig) -> anyhow::Result<f64> {
    let runs = 20_u32;
    let own = rustix::process::getpid();
    let before = servers::children_cpu_micros(own);
    for _ in 0..runs {
        let socket = rig.agent_socket("a0");
        let program = binary::find("hive-mcp-bridge", "hive-mcp");
        mcp::one_turn(&program, &socket).await?;
    }
    Ok((servers::children_cpu_micros(own) - before) / f64::from(runs) / 1000.0)
}
