//! An update of claude while the hive runs: what agents go on with, and that a restart takes the
//! new one.

use hive_proto::v1::TurnOutcome;
use hive_tests::api::{Reply, Script};

use super::hive::Hive;
use super::installed::Installed;

every!(an_agent_uses_an_update_of_claude_when_it_is_restarted);

async fn an_agent_uses_an_update_of_claude_when_it_is_restarted(installed: Installed) {
    let mut hive = Hive::start(installed, "", async |_| {}).await;
    hive.run("echo before").await;
    installed.update(hive.rig());
    hive.api.set_script(Script::new().when("", [Reply::text("Done.")]));
    let message = hive.operator.send("ada", "hello").await;
    let turn = hive.turn_of("ada").await;
    assert_eq!(turn.message_id, message, "{turn:?}");
    match installed {
        // The file of before is mounted, so it is there as long as the sandbox.
        Installed::Native | Installed::Npm => {
            assert_eq!(turn.outcome(), TurnOutcome::Ok, "{turn:?}");
        }
        // The directory of before is mounted, and nothing is left in it.
        Installed::Script => {
            assert_eq!(turn.outcome(), TurnOutcome::Unavailable, "{turn:?}");
            assert!(turn.error.contains("No such file or directory"), "{turn:?}");
        }
    }
    let said = hive.rig().hivectl(&["agent", "restart", "ada", "--wait"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    hive.run("echo restarted").await;
    let delivery = hive.operator.delivery("ada", message).await;
    assert_eq!(delivery.state(), hive_proto::v1::DeliveryState::Acked, "{delivery:?}");
    hive.end().await;
}
