//! Compaction: because it must be, because it is time, and because the operator wants it.

use hive_core::turn::ToolUse;

use super::*;

fn compact(id: u64) -> Input {
    command(id, Order::CompactSession)
}

#[test]
fn a_prompt_that_is_too_long_is_tried_once_more_after_a_compaction() {
    let mut rig = Rig::running();
    rig.overflow();
    let launch = rig.launch();
    assert_eq!((launch.turn_id, launch.step), (7, Step::Compact));
    assert_eq!((launch.continues, launch.made_room), (true, false));
    rig.compacted(Ok(10));
    let launch = rig.launch();
    assert_eq!((launch.turn_id, launch.step), (7, Step::Work));
    assert_eq!((launch.continues, launch.made_room), (true, true));
    rig.succeed(20);
    let ending = rig.ending();
    assert_eq!(
        (ending.outcome, ending.compacted, ending.context_tokens),
        (Some(Outcome::Ok), true, 20)
    );
}

#[test]
fn the_state_shown_is_compacting_while_it_does() {
    let mut rig = Rig::running();
    rig.overflow();
    assert!(rig.drain().contains(&Output::Report(HarnessState::Compacting, None)));
    rig.compacted(Ok(10));
    assert!(rig.drain().contains(&Output::Report(HarnessState::Thinking, None)));
}

#[test]
fn a_compaction_that_fails_ends_the_turn_unavailable_and_says_what_helps() {
    let mut rig = Rig::running();
    rig.overflow();
    rig.launch();
    rig.compacted(Err("Compaction failed"));
    let ending = rig.ending();
    assert_eq!(ending.outcome, Some(Outcome::Unavailable));
    assert!(
        ending.error.contains("Compaction failed")
            && ending.error.contains("hivectl turn new-session bob"),
        "{ending:?}"
    );
}

#[test]
fn room_is_made_once_and_what_does_not_fit_then_is_the_messages_fault() {
    let mut rig = Rig::running();
    rig.make_room();
    rig.overflow();
    rig.assert_ending(Outcome::Failed, "does not fit");
}

#[test]
fn in_a_new_conversation_there_is_nothing_to_compact() {
    let mut rig = Rig::waiting();
    rig.feed(command(30, Order::StartNewSession));
    assert!(!rig.begin(7).continues);
    rig.overflow();
    assert_eq!(rig.ending().outcome, Some(Outcome::Failed));
}

#[test]
fn a_conversation_with_nothing_else_in_it_cannot_be_made_smaller() {
    let mut rig = Rig::running();
    rig.overflow();
    rig.launch();
    rig.compacted(Err("Not enough messages to compact."));
    rig.assert_ending(Outcome::Failed, "does not fit");
}

#[test]
fn an_outage_during_a_compaction_is_the_outcome_of_the_turn() {
    for (error, outcome) in [
        (
            "Error during compaction: API Error: 529 Overloaded. check (127.0.0.1:4290)",
            Outcome::Unavailable,
        ),
        ("Error during compaction: Failed to authenticate. API Error: 401 x", Outcome::AuthFailed),
        ("Error during compaction: You've hit your 5-hour limit", Outcome::RateLimited),
    ] {
        let mut rig = Rig::running();
        rig.overflow();
        rig.launch();
        rig.compacted(Err(error));
        if outcome == Outcome::AuthFailed {
            // Once more, at once.
            assert_eq!(rig.launch().step, Step::Compact);
            rig.compacted(Err(error));
        }
        assert_eq!(rig.ending().outcome, Some(outcome), "{error}");
    }
}

#[test]
fn a_full_conversation_is_compacted_after_its_turn_with_notes_before() {
    let mut rig = Rig::running();
    rig.succeed(750);
    rig.settle_into(Kind::Checkpoint);
    assert_eq!(rig.open(8).step, Step::Checkpoint);
    rig.succeed(760);
    rig.settle_into(Kind::Compact);
    assert_eq!(rig.open(9).step, Step::Compact);
    rig.compacted(Ok(10));
    let ending = rig.ending();
    assert_eq!(
        (ending.turn_id, ending.outcome, ending.compacted, ending.context_tokens),
        (9, Some(Outcome::Ok), true, 10)
    );
    rig.feed(Input::Ended(EndTurnAnswer::default()));
    assert_eq!(rig.drain(), [IDLE, Output::Begin]);
}

#[test]
fn failing_notes_do_not_keep_it_from_being_compacted_but_a_cancel_does() {
    let checkpoint = || {
        let mut rig = Rig::running();
        rig.work(800);
        rig.open(8);
        rig
    };
    let mut rig = checkpoint();
    rig.exit(3);
    rig.settle_as(Outcome::Unavailable);
    assert_eq!(rig.drain(), [Output::Open(Kind::Compact)]);

    let mut rig = checkpoint();
    rig.feed(command(30, cancel_turn(8)));
    rig.exit(0);
    rig.settle_as(Outcome::Cancelled);
    assert!(rig.drain().contains(&Output::Begin));

    // A limit that is hit has to be waited out first.
    let mut rig = checkpoint();
    rig.fail("rate_limit", 429);
    assert_eq!(rig.ending().outcome, Some(Outcome::RateLimited));
    rig.feed(parked(Outcome::RateLimited, Some(60), rig.now));
    assert!(rig.drain().contains(&Output::Begin));
}

#[test]
fn a_compaction_that_failed_is_not_tried_again_after_each_turn() {
    let mut rig = Rig::running();
    rig.work(800);
    rig.open(8);
    rig.work(801);
    rig.open(9);
    rig.compacted(Err("Compaction failed"));
    rig.settle_as(Outcome::Failed);
    rig.drain();
    rig.begin(10);
    rig.succeed(820);
    rig.settle();
    assert!(rig.drain().contains(&Output::Begin));
    rig.begin(11);
    rig.succeed(860);
    rig.settle_into(Kind::Checkpoint);
}

#[test]
fn the_operators_compaction_runs_at_once_or_after_the_turn_and_is_closed_with_its_result() {
    let mut rig = Rig::waiting();
    rig.feed(compact(30));
    assert_eq!(rig.drain(), [Output::Open(Kind::Compact)]);
    rig.feed(compact(31));
    rig.open(8);
    rig.compacted(Ok(10));
    rig.settle();
    let expected =
        [Output::Ack(30, String::new()), Output::Ack(31, String::new()), IDLE, Output::Begin];
    assert_eq!(rig.drain(), expected);

    let mut rig = Rig::running();
    rig.feed(compact(30));
    assert_eq!(rig.drain(), []);
    rig.succeed(1);
    rig.settle_into(Kind::Compact);
    rig.open(8);
    rig.compacted(Err("Compaction failed"));
    rig.settle_as(Outcome::Failed);
    assert_eq!(
        rig.drain()[0],
        Output::Ack(30, "the conversation was not compacted: Compaction failed".into())
    );
}

#[test]
fn nothing_to_compact_is_a_failure() {
    let mut rig = Rig::waiting();
    rig.compact_by_order();
    rig.line(GOOD_INIT);
    rig.line(r#"{"type":"result","subtype":"success","is_error":false,"result":"","num_turns":0,"local_command":"compact"}"#);
    rig.exit(0);
    assert_eq!(rig.ending().outcome, Some(Outcome::Failed));
}

#[test]
fn mail_that_comes_before_the_operators_compaction_is_done_first() {
    let mut rig = Rig::waiting();
    rig.feed(compact(30));
    assert_eq!(rig.drain(), [Output::Open(Kind::Compact)]);
    // The broker had opened a turn already.
    rig.feed(Input::NotOpened);
    assert_eq!(rig.drain(), [Output::Begin]);
    rig.begin(7);
    rig.succeed(1);
    rig.settle_into(Kind::Compact);
}

#[test]
fn another_turn_that_was_asked_for_comes_after_the_compaction() {
    let mut rig = Rig::running();
    rig.succeed(800);
    rig.ending();
    rig.feed(Input::Ended(EndTurnAnswer { next_turn_requested: true, ..EndTurnAnswer::default() }));
    assert_eq!(rig.drain(), [Output::Open(Kind::Checkpoint)]);
    rig.open(8);
    rig.work(801);
    rig.open(9);
    rig.compacted(Ok(1));
    rig.settle_into(Kind::Continue);
}

#[test]
fn the_usage_of_a_turn_is_the_sum_over_its_runs() {
    let mut rig = Rig::running();
    rig.line(r#"{"type":"assistant","message":{"id":"a","content":[{"type":"tool_use","id":"t","name":"Read"}],"usage":{"input_tokens":7}}}"#);
    rig.line(r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t"}]}}"#);
    rig.make_room();
    rig.line(r#"{"type":"assistant","message":{"id":"b","content":[{"type":"tool_use","id":"u","name":"Read"}],"usage":{"input_tokens":5}}}"#);
    rig.finish();
    let ending = rig.ending();
    assert_eq!(
        (ending.usage.input_tokens, ending.usage.inference_count, ending.usage.tool_call_count),
        (12, 2, 2)
    );
    assert_eq!(ending.tool_uses, [ToolUse { name: "Read".to_owned(), count: 2 }]);
    // The refused prompt contained the result, and the prompt after the compaction did not.
    assert!(ending.returned_tool_use_ids.is_empty(), "{ending:?}");
}

#[test]
fn usage_before_a_failed_start_counts_too() {
    let mut rig = Rig::running();
    rig.line(
        r#"{"type":"assistant","message":{"id":"a","content":[],"usage":{"input_tokens":7}}}"#,
    );
    rig.make_room();
    rig.feed(Input::NotStarted("no such file".into()));
    let ending = rig.ending();
    assert_eq!(
        (ending.outcome, ending.compacted, ending.usage.input_tokens),
        (Some(Outcome::Unavailable), true, 7)
    );
}

#[test]
fn the_tools_of_all_runs_together_are_as_many_as_the_broker_takes() {
    let mut rig = Rig::running();
    let call = |rig: &mut Rig, prefix: &str| {
        for number in 0..40 {
            rig.line(&format!(
                r#"{{"type":"assistant","message":{{"id":"{prefix}{number}","content":[{{"type":"tool_use","id":"{prefix}{number}","name":"{prefix}{number}"}}]}}}}"#
            ));
        }
    };
    rig.line(r#"{"type":"assistant","message":{"id":"x","content":[{"type":"tool_use","id":"x","name":""},{"type":"tool_use","id":"y","name":"a\u001bb"}]}}"#);
    call(&mut rig, "A");
    rig.make_room();
    call(&mut rig, "B");
    rig.finish();
    let tools = rig.ending().tool_uses;
    assert_eq!(tools.len(), 64);
    assert!(tools.iter().all(|tool| tool.name.starts_with(['A', 'B'])), "{tools:?}");
}

#[test]
fn a_cancel_while_room_is_made_cancels_the_turn() {
    for result in [Ok(10), Err("Compaction canceled.")] {
        let mut rig = Rig::running();
        rig.overflow();
        rig.launch();
        rig.feed(command(30, cancel_turn(7)));
        assert_eq!(rig.drain(), [Output::Signal(Signal::Interrupt)]);
        rig.compacted(result);
        assert_eq!(rig.ending().outcome, Some(Outcome::Cancelled), "{result:?}");
        rig.feed(Input::Ended(EndTurnAnswer::default()));
        assert!(rig.drain().contains(&Output::Ack(30, String::new())));
    }
}

#[test]
fn an_order_that_a_restart_cut_off_stays_open_for_the_next_harness() {
    let mut rig = Rig::waiting();
    rig.compact_by_order();
    rig.feed(command(31, Order::RestartHarness));
    rig.drain();
    rig.compacted(Err("Compaction canceled."));
    rig.settle_as(Outcome::Drained);
    assert!(!rig.drain().iter().any(|output| matches!(output, Output::Ack(30, _))));
}

#[test]
fn notes_that_do_not_fit_any_more_do_not_put_off_the_compaction() {
    let mut rig = Rig::running();
    rig.work(900);
    rig.open(8);
    rig.overflow();
    // FAILED upkeep parks nothing.
    rig.settle_as(Outcome::Failed);
    assert_eq!(rig.drain(), [Output::Open(Kind::Compact)]);
}

#[test]
fn a_conversation_that_will_be_replaced_is_not_compacted() {
    let mut rig = Rig::running();
    rig.feed(command(30, Order::StartNewSession));
    rig.succeed(900);
    rig.settle();
    assert!(rig.drain().contains(&Output::Begin));
}

#[test]
fn a_shutdown_drains_the_turn_that_came_before_the_compaction() {
    let mut rig = Rig::waiting();
    rig.feed(compact(30));
    rig.drain();
    rig.feed(Input::Drain);
    rig.feed(Input::NotOpened);
    assert_eq!(rig.drain(), [Output::Leave]);
    rig.feed(Input::Left(vec![7]));
    rig.assert_ended(7, Outcome::Drained);
}

#[test]
fn an_error_that_is_too_long_for_the_broker_is_cut() {
    let mut rig = Rig::waiting();
    rig.compact_by_order();
    rig.compacted(Err(&"x".repeat(5000)));
    rig.drain_and_settle();
    let outputs = rig.drain();
    let error = outputs
        .iter()
        .find_map(|output| if let Output::Ack(30, error) = output { Some(error) } else { None });
    assert!(error.expect("it is closed").len() <= hive_core::limits::ERROR_BYTES_MAX);
}

#[test]
fn a_shutdown_does_not_wait_for_upkeep() {
    let mut rig = Rig::running();
    rig.feed(Input::Drain);
    rig.overflow();
    rig.settle_as(Outcome::Drained);
    assert_eq!(rig.drain(), [Output::Exit(Leaving::Drained)]);

    let mut rig = Rig::running();
    rig.feed(Input::Drain);
    rig.succeed(900);
    rig.settle();
    assert_eq!(rig.drain(), [Output::Exit(Leaving::Drained)]);
}
