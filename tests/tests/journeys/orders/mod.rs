//! Commands that the operator gives by `hivectl`, followed to the end by `--wait`: exit code,
//! output, and result.

mod cancel;
mod compact;
mod model;
mod restart;
mod session;
mod show;
mod stats;

use hive_proto::v1::{Turn, TurnKind, TurnOutcome};
use hive_tests::rig::{Client, Rig, Said};

/// Sends a command and waits until it is carried out.
async fn done(rig: &Rig, args: &[&str]) {
    let said = waited(rig, args).await;
    let carried_out = said.stdout.starts_with("bob has done it (command ");
    assert!(said.code == 0 && carried_out, "{args:?}: {said:?}");
}

/// Sends a command and waits for its end.
async fn waited(rig: &Rig, args: &[&str]) -> Said {
    rig.hivectl(&[&["turn"], args, &["--wait"]].concat()).await
}

/// Bob's turns: of which kind, and how they ended.
async fn kinds(operator: &Client) -> Vec<(TurnKind, TurnOutcome)> {
    let turns = operator.turns("bob").await;
    turns.iter().map(|turn: &Turn| (turn.kind(), turn.outcome())).collect()
}
