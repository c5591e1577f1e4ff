//! Status: one short line that an agent says of itself.

use hive_core::event::HarnessStateChanged;

use super::*;
use crate::engine::error::AgentError;

async fn say(hive: &Hive, text: &str) -> Result<(), Refusal> {
    hive.engine()
        .set_status_text(actor("bob"), hive.request("SetStatusText"), text.to_owned())
        .await
}

#[tokio::test]
async fn a_status_is_shown_with_its_time_and_can_be_cleared() {
    let hive = Hive::new(&["bob"]).await;
    let show = async || hive.agent("bob").await;
    hive.pass(10);
    say(&hive, "reading").await.expect("set");
    let now = hive.now().wall;
    hive.pass(10);
    assert_eq!(
        (show().await.status_text.as_str(), show().await.status_time),
        ("reading", Some(now))
    );
    say(&hive, "").await.expect("cleared");
    assert_eq!((show().await.status_text.as_str(), show().await.status_time), ("", None));
    assert_eq!(hive.count_events(EventKind::StatusChanged).await, 2);
}

#[tokio::test]
async fn a_status_is_one_short_line() {
    let hive = Hive::new(&["bob"]).await;
    say(&hive, &"ä".repeat(200)).await.expect("characters count, not bytes");
    let refusal = say(&hive, &"x".repeat(201)).await.expect_err("too long");
    assert!(matches!(refusal, Refusal::Agent(AgentError::StatusTooLong { chars: 201, max: 200 })));
    for text in ["two\nlines", "\u{1b}[31mred", "nul\0"] {
        assert_eq!(reason(say(&hive, text).await), Reason::FieldInvalid, "{text:?}");
    }
    let operator = hive
        .engine()
        .set_status_text(actor("operator"), hive.request("SetStatusText"), "hi".to_owned())
        .await;
    assert_eq!(reason(operator), Reason::NotAnAgent);
}

#[tokio::test]
async fn an_attached_harness_is_not_offline() {
    let hive = Hive::new(&["bob"]).await;
    let harness = hive.attach("bob").await;
    let report = async |state| hive.report(&harness, state).await;
    assert_eq!(reason(report(HarnessState::Offline).await), Reason::FieldInvalid);
    report(HarnessState::Compacting).await.expect("noted");
    assert_eq!(hive.agent("bob").await.state, HarnessState::Compacting);
    for state in [HarnessState::Compacting, HarnessState::Idle, HarnessState::Idle] {
        report(state).await.expect("noted");
    }
    let mut changes = hive.events().await;
    changes.retain(|event| event.kind() == EventKind::HarnessStateChanged);
    let states = [HarnessState::Compacting, HarnessState::Idle];
    let changed = states.map(|state| HarnessStateChanged { state }.into());
    assert_eq!(changes.iter().map(|event| event.facts).collect::<Vec<_>>(), changed);
    let stale =
        hive.engine().report_harness(caller("bob"), "old".to_owned(), HarnessState::Idle).await;
    assert_eq!(reason(stale), Reason::SessionLost);
}
