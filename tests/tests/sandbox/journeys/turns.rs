//! Turns of a sandboxed agent: its bridge is killed in one, a resident claude runs several, a
//! claude is killed from the host.

use hive_proto::v1::{DeliveryState, TurnOutcome};
use hive_tests::api::{Gate, Reply, Script};
use hive_tests::claude;
use hive_tests::rig::gone;
use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::hive::Hive;
use super::installed::Installed;

native!(
    a_bridge_that_dies_in_a_turn_loses_no_mail,
    a_resident_claude_runs_turns_and_its_death_loses_no_mail
);

async fn a_bridge_that_dies_in_a_turn_loses_no_mail(installed: Installed) {
    let mut hive = Hive::start(installed, "", async |_| {}).await;
    let gate = Gate::new();
    let send =
        |body: &str| Reply::tool("mcp__hive__send", json!({ "to": "operator", "body": body }));
    let steps = [send("one"), send("two").held(&gate), send("three"), Reply::text("Done.")];
    hive.api.set_script(Script::new().when("report", steps));
    let message = hive.operator.send("ada", "report").await;
    hive.api.wait_for_requests(2).await;
    let bridge = hive.rig().bridge("ada");
    kill_process(bridge, Signal::KILL).expect("it runs");
    gone(bridge).await;
    gate.open();
    let turn = hive.turn_of("ada").await;
    assert_eq!(
        (turn.outcome(), turn.message_id, turn.attempt),
        (TurnOutcome::Ok, message, 1),
        "{turn:?}"
    );
    // The call that finds no bridge may fail; the next one has another bridge, whose connection the
    // broker accepts.
    let answers = hive.answers(message);
    assert!(!answers[0].1 && !answers[2].1, "{answers:?}");
    let sent: Vec<String> =
        hive.operator.messages().await.into_iter().map(|message| message.body).collect();
    for (body, (words, failed)) in ["one", "two", "three"].into_iter().zip(&answers) {
        assert_eq!(
            sent.iter().filter(|sent| *sent == body).count(),
            usize::from(!failed),
            "{body}: {words}: {sent:?}"
        );
    }
    assert_eq!(hive.operator.delivery("ada", message).await.state(), DeliveryState::Acked);
    hive.end().await;
}

async fn a_resident_claude_runs_turns_and_its_death_loses_no_mail(installed: Installed) {
    let mut hive = Hive::start(installed, "process = \"resident\"", async |_| {}).await;
    let said = hive.run("echo the first").await;
    assert!(said.contains("the first"), "{said}");
    // The file of a version is what `claude` leads to.
    let claude = hive.rig().the_one("ada", claude::VERSION);
    let said = hive.run("echo the second").await;
    assert!(said.contains("the second"), "{said}");
    assert_eq!(hive.rig().the_one("ada", claude::VERSION), claude, "one process ran both turns");

    hive.api.set_script(
        Script::new().when("attempt 2", [Reply::text("Done.")]).when("wait", [Reply::hang()]),
    );
    let count = hive.api.recorded().len();
    let message = hive.operator.send("ada", "wait for it").await;
    hive.api.wait_for_requests(count + 1).await;
    kill_process(claude, Signal::KILL).expect("it runs");
    gone(claude).await;
    assert_eq!(hive.turn_of("ada").await.outcome(), TurnOutcome::Failed);
    let turn = hive.turn_of("ada").await;
    assert_eq!(
        (turn.outcome(), turn.message_id, turn.attempt),
        (TurnOutcome::Ok, message, 2),
        "{turn:?}"
    );
    hive.end().await;
}
