//! Journeys of an agent with a heartbeat.

use std::time::Duration;

use crate::support::Stage;
use hive_proto::v1::{self, HarnessState as State, TurnOutcome as Outcome};

/// A table after those of the stage.
const EACH_MINUTE: &str = "[agents.bob.heartbeat]\nevery = \"1m\"\n";

/// Lets the next heartbeat become due; returns the end of its turn.
async fn beat(stage: &Stage) -> v1::EndTurnRequest {
    stage.broker.advance(Duration::from_secs(60));
    let end = stage.end().await;
    // The broker has settled the turn.
    stage.status(State::Idle).await;
    end
}

fn write(stage: &Stage, name: &str, text: &str) {
    std::fs::write(stage.path(name), text).expect("written");
}

#[tokio::test]
async fn a_heartbeat_runs_claude_only_for_what_the_agent_has_noted() {
    let stage = Stage::bounded(EACH_MINUTE);
    let _hive = stage.serve("well", &[]);
    stage.status(State::Idle).await;

    let end = beat(&stage).await;
    assert_eq!((end.outcome(), end.error.as_str()), (Outcome::Ok, ""), "{end:?}");
    assert_eq!(end.usage, Some(v1::TurnUsage::default()));
    write(&stage, "state/HEARTBEAT.md", "# Heartbeat\n\n");
    assert_eq!(beat(&stage).await.outcome(), Outcome::Ok);
    assert!(!stage.path("home/prompt.1").exists(), "claude was started");

    write(&stage, "state/HEARTBEAT.md", "# Heartbeat\n- look after @builds\n");
    assert_eq!(beat(&stage).await.outcome(), Outcome::Ok);
    let prompt = stage.read("home/prompt.1");
    let message = stage.broker.inbox("bob").await[2];
    assert!(
        prompt.starts_with(&format!("Message {message} from Hive itself, your heartbeat:\n| ")),
        "{prompt}"
    );
    assert!(
        prompt.ends_with("\nYour file HEARTBEAT.md, in your own words:\n| # Heartbeat\n| - look after \\@builds\n"),
        "{prompt}"
    );

    std::fs::remove_file(stage.path("state/HEARTBEAT.md")).expect("removed");
    write(&stage, "home/secret", "s3cret");
    std::os::unix::fs::symlink("../home/secret", stage.path("state/HEARTBEAT.md")).expect("linked");
    assert_eq!(beat(&stage).await.outcome(), Outcome::Ok);
    let prompt = stage.read("home/prompt.2");
    assert!(!prompt.contains("s3cret"), "{prompt}");
    assert!(prompt.contains("\n(HEARTBEAT.md was not read: it is a link; "), "{prompt}");
    let turns = stage.broker.operator().await.turns("bob").await;
    assert_eq!(turns.len(), 4, "{turns:?}");
}
