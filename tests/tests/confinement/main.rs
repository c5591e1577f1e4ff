//! Confinement: an agent under bubblewrap, as `hivectl up` starts it, reaches its own socket and
//! nothing else of the hive. What it reaches of the host is in `tests/tests/sandbox`.
//!
//! A shell script stands in claude's place. It tries what a curious or hostile shell tool would,
//! and writes into its own state directory what it could do; the test reads that from outside.

mod hive;
mod probe;

use hive_proto::v1::{EventKind, Isolation, TurnOutcome};
use hive_tests::cases;

use crate::hive::Hive;

cases! {
    a_sandboxed_agent_reaches_its_own_socket_and_nothing_else_of_the_hive => reaches_its_own_socket_only("sandbox", Isolation::Sandbox),
    an_agent_with_shared_files_reaches_its_own_socket_and_nothing_else_of_the_hive => reaches_its_own_socket_only("shared_files", Isolation::Partly),
}

async fn reaches_its_own_socket_only(level: &str, isolation: Isolation) {
    let Some(hive) = Hive::at(level).await else { return };
    let mut watch = hive.rig.watch().await;
    let operator = hive.rig.operator().await;
    for agent in ["ada", "bob"] {
        operator.send(agent, "look around").await;
        let ended = watch.kind(agent, EventKind::TurnEnded).await;
        assert_eq!(
            operator.turn(ended.turn_id).await.outcome(),
            TurnOutcome::Ok,
            "{}",
            hive.rig.logs()
        );
        let could = hive.could(agent);
        // The permitted attempts: it wrote to its own directories, asked its broker, and put mail
        // into its own inbox.
        let own =
            ["apart", "ask-own-socket", "wake-own-socket", "write-own-home", "write-own-state"];
        assert_eq!(could, own, "what {agent} could do");
    }
    // Its writes to other places had no effect.
    for path in ["state/planted", "agents/ada/state/planted", "agents/bob/state/planted"] {
        assert!(!hive.rig.path(path).exists(), "{path}");
    }
    let messages = operator.messages().await;
    let wakes: Vec<_> = messages.iter().filter(|message| message.body == "by the probe").collect();
    let of: Vec<&str> =
        wakes.iter().flat_map(|message| &message.recipients).map(String::as_str).collect();
    assert_eq!(of, ["ada", "bob"], "each woke only itself");
    assert!(messages.iter().all(|message| message.body != "forged"), "no agent spoke as another");

    for agent in ["ada", "bob"] {
        assert_eq!(operator.get_agent(agent).await.isolation(), isolation);
    }
    let status = hive.rig.hivectl(&["status"]).await;
    assert!(!status.stdout.contains("NOT ISOLATED"), "{status:?}");
    hive.end().await;
}

#[tokio::test]
async fn without_confinement_every_status_view_says_so() {
    let hive = Hive::up("sandbox", &["--no-isolation"]).await;
    let mut watch = hive.rig.watch().await;
    let operator = hive.rig.operator().await;
    operator.send("ada", "look around").await;
    watch.kind("ada", EventKind::TurnEnded).await;
    assert_eq!(operator.get_agent("ada").await.isolation(), Isolation::None);
    let status = hive.rig.hivectl(&["status"]).await;
    assert_eq!(status.code, 8, "{status:?}");
    assert!(status.stdout.matches("ISOLATED").count() == 1, "{status:?}");
    assert!(hive.said().contains("NOT ISOLATED: --no-isolation was given. "), "{}", hive.said());
    // The probe does find what there is to find: that it finds nothing when confined is no
    // blindness.
    let could = hive.could("ada");
    for what in [
        "ask-operator-socket",
        "ask-peer-socket",
        "read-database",
        "list-peer-state",
        "see-broker-process",
        "database-by-proc",
    ] {
        assert!(could.contains(&what.to_owned()), "{what} is not in {could:?}");
    }
    hive.end().await;
}
