//! Upkeep: turns that tend the conversation itself. They may fail without any trouble of their own,
//! and one that ran shows that turns run.

use super::*;

async fn is_parked(hive: &Hive) -> bool {
    hive.agent("bob").await.park.is_some()
}

/// Ends a turn with these sizes.
async fn end_with(hive: &Hive, run: &Run, outcome: Outcome, compacted: bool, tokens: u64) {
    let end = Ended {
        compacted,
        context_tokens: tokens,
        context_window_tokens: 200_000,
        ..ended(outcome)
    };
    hive.try_end(run, end).await.expect("it ends");
}

#[tokio::test]
async fn a_conversation_is_compacted_also_while_its_agent_is_parked() {
    for outcome in [Outcome::Unavailable, Outcome::RateLimited, Outcome::AuthFailed] {
        let (hive, harness) = waiting_hive().await;
        hive.turn(&harness, outcome).await;
        for kind in [Kind::Continue, Kind::Checkpoint] {
            assert_eq!(reason(hive.open(&harness, kind).await), Reason::AgentParked, "{kind:?}");
        }
        let run = hive.open(&harness, Kind::Compact).await.expect("the operator may at any time");
        end_with(&hive, &run, Outcome::Ok, true, 20_000).await;
        assert!(!is_parked(&hive).await, "{outcome:?}: a model that compacts answers");
        hive.turn(&harness, Outcome::Ok).await;
    }
}

#[tokio::test]
async fn a_compaction_that_did_nothing_ends_no_park() {
    let (hive, harness) = waiting_hive().await;
    hive.turn(&harness, Outcome::Unavailable).await;
    for outcome in [Outcome::Ok, Outcome::Failed, Outcome::Cancelled, Outcome::Drained] {
        let run = hive.open(&harness, Kind::Compact).await.expect("opened");
        hive.end(&run, outcome).await;
        assert!(is_parked(&hive).await, "{outcome:?}");
        assert_eq!(hive.row("bob").await.failures_in_a_row, 1, "{outcome:?}");
    }
}

#[tokio::test]
async fn a_failed_upkeep_notifies_no_agent_and_counts_for_nothing() {
    let (hive, harness) = waiting_hive().await;
    for kind in [Kind::Checkpoint, Kind::Compact] {
        for _ in 0..5 {
            let run = hive.open(&harness, kind).await.expect("opened");
            let answer = hive.try_end(&run, ended(Outcome::Failed)).await.expect("it ends");
            assert_eq!(answer.park, None, "{kind:?}");
        }
    }
    assert!(hive.notices("operator").await.is_empty());
    assert_eq!(hive.row("bob").await.failures_in_a_row, 0);
    // A failed turn of any other kind is reported.
    let run = hive.open(&harness, Kind::Continue).await.expect("opened");
    hive.end(&run, Outcome::Failed).await;
    assert_eq!(
        (hive.notices("operator").await.len(), hive.row("bob").await.failures_in_a_row),
        (1, 1)
    );
}

#[tokio::test]
async fn mail_received_in_a_failed_upkeep_is_requeued_as_from_any_turn() {
    let (hive, harness) = waiting_hive().await;
    let run = hive.open(&harness, Kind::Checkpoint).await.expect("opened");
    let taken = hive.recv(&run, "tool-1", 1).await.deliveries;
    let end = Ended { returned_tool_uses: ["tool-1".to_owned()].into(), ..ended(Outcome::Failed) };
    hive.try_end(&run, end).await.expect("it ends");
    assert_eq!(hive.state("bob", taken[0].delivery.message.id).await.1, 1, "one attempt was used");
}

#[tokio::test]
async fn weather_parks_under_upkeep_as_ever() {
    for kind in [Kind::Checkpoint, Kind::Compact] {
        for outcome in [Outcome::Unavailable, Outcome::RateLimited, Outcome::AuthFailed] {
            let (hive, harness) = waiting_hive().await;
            let run = hive.open(&harness, kind).await.expect("opened");
            let answer = hive.try_end(&run, ended(outcome)).await.expect("it ends");
            assert_eq!(answer.park.map(|park| park.cause), Some(outcome), "{kind:?}");
        }
    }
}

#[tokio::test]
async fn a_successful_upkeep_resets_the_count_of_failures() {
    let (hive, harness) = waiting_hive().await;
    hive.turn(&harness, Outcome::Failed).await;
    assert_eq!(hive.row("bob").await.failures_in_a_row, 1);
    let run = hive.open(&harness, Kind::Checkpoint).await.expect("opened");
    hive.end(&run, Outcome::Ok).await;
    assert_eq!(hive.row("bob").await.failures_in_a_row, 0);
}

#[tokio::test]
async fn the_size_of_a_context_is_shown_with_the_time_of_its_measurement() {
    let (hive, harness) = waiting_hive().await;
    let context = async || {
        let bob = hive.agent("bob").await;
        (bob.context_tokens, bob.context_window_tokens, bob.context_time)
    };
    assert_eq!(context().await, (0, 0, None));
    let run = hive.begin(&harness).await;
    hive.pass(10);
    end_with(&hive, &run, Outcome::Ok, false, 150_000).await;
    let measured = hive.now().wall;
    assert_eq!(context().await, (150_000, 200_000, Some(measured)));
    hive.pass(3600);
    // A turn that measured nothing says nothing.
    let run = hive.open(&harness, Kind::Continue).await.expect("opened");
    end_with(&hive, &run, Outcome::Failed, false, 0).await;
    assert_eq!(context().await, (150_000, 200_000, Some(measured)));
    let run = hive.open(&harness, Kind::Compact).await.expect("opened");
    end_with(&hive, &run, Outcome::Ok, true, 30_000).await;
    assert_eq!(context().await, (30_000, 200_000, Some(measured.after(Duration::from_secs(3600)))));
    // An interrupted claude reports the size of its context, but not the window.
    let run = hive.open(&harness, Kind::Continue).await.expect("opened");
    let end = Ended { context_tokens: 40_000, context_window_tokens: 0, ..ended(Outcome::Drained) };
    hive.try_end(&run, end).await.expect("it ends");
    assert_eq!((context().await.0, context().await.1), (40_000, 200_000));
    // The old size is not valid for a compacted context that was not measured.
    let run = hive.open(&harness, Kind::Compact).await.expect("opened");
    let end = Ended { compacted: true, ..ended(Outcome::Ok) };
    hive.try_end(&run, end).await.expect("it ends");
    assert_eq!(context().await, (0, 200_000, None));
}
