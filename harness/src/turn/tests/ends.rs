//! Ends of turns.

use super::*;

#[test]
fn a_turn_that_goes_well_is_ended_ok_and_the_next_is_waited_for() {
    let mut rig = Rig::running();
    rig.line(r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"mcp__hive__recv"}],"usage":{"input_tokens":5}}}"#);
    rig.line(
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}"#,
    );
    rig.finish();
    let ending = rig.ending();
    assert_eq!((ending.turn_id, ending.outcome, ending.error.as_str()), (7, Some(Outcome::Ok), ""));
    assert_eq!(
        (ending.returned_tool_use_ids, ending.model.as_str(), ending.context_tokens),
        (vec!["t1".to_owned()], "claude-x", 5)
    );
    rig.feed(Input::Ended(EndTurnAnswer::default()));
    assert_eq!(rig.drain(), [IDLE, Output::Begin]);
}

#[test]
fn a_turn_with_more_calls_than_fit_can_still_be_ended() {
    let mut rig = Rig::running();
    for letter in ["a", "b", "c", "d", "e"] {
        let id = letter.repeat(100_000);
        rig.line(&format!(
            r#"{{"type":"assistant","message":{{"id":"m{letter}","content":[{{"type":"tool_use","id":"{id}","name":"Bash"}}],"usage":{{"input_tokens":5}}}}}}"#
        ));
        rig.line(&format!(r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}"}}]}}}}"#));
    }
    rig.finish();
    let reported: Vec<char> =
        rig.ending().returned_tool_use_ids.iter().filter_map(|id| id.chars().next()).collect();
    assert_eq!(reported, ['a', 'b', 'c'], "as many as there is room for");
}

#[test]
fn a_crash_in_mid_turn_is_failed_with_the_tail_of_the_output() {
    let mut rig = Rig::running();
    rig.feed(Input::Stderr("boom".into()));
    rig.feed(Input::Exited(Exit::Signal(9)));
    let ending = rig.ending();
    assert_eq!(ending.outcome, Some(Outcome::Failed));
    assert!(ending.output_tail.contains("boom") && ending.error.contains("signal 9"), "{ending:?}");
}

#[test]
fn a_rate_limit_parks_until_it_ends() {
    let mut rig = Rig::running();
    rig.line(
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":2000}}"#,
    );
    rig.fail("rate_limit", 429);
    let ending = rig.ending();
    assert_eq!(ending.outcome, Some(Outcome::RateLimited));
    let retry = ending.retry_time.expect("it was reported").0;
    assert!((2_000_000..2_010_000).contains(&retry), "{retry}");
    rig.feed(parked(Outcome::RateLimited, Some(60), rig.now));
    let until = Some(rig.now.wall.after(Duration::from_secs(60)));
    assert_eq!(rig.drain(), [Output::Report(HarnessState::RateLimited, until), Output::Begin]);
    rig.sleep();
    assert_eq!(rig.drain(), [IDLE]);
}

#[test]
fn a_rate_limit_without_an_end_leaves_the_rest_to_the_broker_or_the_setting() {
    let mut rig = Rig::running();
    rig.fail("rate_limit", 429);
    assert_eq!(rig.ending().retry_time, None);
    let mut rig = Rig::running();
    rig.configure(|settings| {
        settings.spans.rate_limit_sleep = Some(Duration::from_secs(30));
    });
    rig.fail("rate_limit", 429);
    let retry = rig.ending().retry_time.expect("set").since(rig.now.wall);
    assert!((30..41).contains(&retry.as_secs()), "{retry:?}");
}

#[test]
fn a_failed_login_is_tried_once_more_and_may_work() {
    let mut rig = Rig::running();
    rig.fail("authentication_failed", 401);
    let launch = rig.launch();
    assert!(launch.retry && launch.continues && launch.turn_id == 7);
    rig.line(GOOD_INIT);
    rig.finish();
    assert_eq!(rig.ending().outcome, Some(Outcome::Ok));
}

#[test]
fn a_login_that_fails_twice_is_waited_for() {
    let mut rig = Rig::running();
    rig.fail_login_twice();
    let outputs = rig.drain();
    assert!(
        matches!(&outputs[..], [Output::WatchLogin, Output::End(ending)] if ending.outcome == Some(Outcome::AuthFailed)),
        "{outputs:?}"
    );
    rig.feed(parked(Outcome::AuthFailed, None, rig.now));
    assert_eq!(rig.drain(), [NEEDS_LOGIN, Output::Begin]);
    rig.feed(Input::LoggedIn);
    // The report is what ends the park.
    assert_eq!(rig.drain(), [IDLE]);
    assert_eq!(rig.begin(8).turn_id, 8);
}

#[test]
fn a_login_that_comes_before_the_answer_is_not_missed() {
    let mut rig = Rig::running();
    rig.fail_login_twice();
    rig.drain();
    rig.feed(Input::LoggedIn);
    rig.feed(parked(Outcome::AuthFailed, None, rig.now));
    assert_eq!(rig.drain(), [IDLE, Output::Begin]);
}

#[test]
fn an_unavailable_api_parks() {
    let mut rig = Rig::running();
    rig.fail("server_error", 529);
    assert_eq!(rig.ending().outcome, Some(Outcome::Unavailable));
    rig.feed(parked(Outcome::Unavailable, Some(10), rig.now));
    rig.assert_unavailable();
}

#[test]
fn a_silent_turn_is_interrupted_then_terminated_then_killed() {
    let mut rig = Rig::running();
    // A tool's heartbeats are no progress.
    rig.pass(Duration::from_secs(60));
    rig.line(r#"{"type":"tool_progress","heartbeat":true}"#);
    rig.pass(Duration::from_secs(39));
    assert_eq!(rig.drain(), []);
    for signal in [Signal::Interrupt, Signal::Terminate, Signal::Kill] {
        rig.sleep();
        assert_eq!(rig.drain(), [Output::Signal(signal)]);
    }
    assert_eq!(rig.machine.deadline(), None);
    rig.feed(Input::Exited(Exit::Signal(9)));
    rig.assert_ending(Outcome::Unavailable, "HIVE_TURN_IDLE_TIMEOUT_SECS");
}

#[test]
fn a_turn_that_is_busy_for_too_long_is_ended() {
    let mut rig = Rig::running();
    for _ in 0..19 {
        rig.pass(Duration::from_secs(50));
        rig.line(r#"{"type":"other"}"#);
    }
    assert_eq!(rig.drain(), []);
    rig.pass(Duration::from_secs(50));
    assert_eq!(rig.drain(), [Output::Signal(Signal::Interrupt)]);
    rig.exit(0);
    rig.assert_ending(Outcome::Failed, "1000 s");
}

#[test]
fn a_turn_without_its_fences_is_killed_before_it_does_harm() {
    let inits = [
        r#"{"type":"system","subtype":"init","tools":["Bash"],"mcp_servers":[{"name":"hive","status":"connected"}]}"#,
        r#"{"type":"system","subtype":"init","tools":[],"mcp_servers":[{"name":"hive","status":"failed"}]}"#,
        r#"{"type":"assistant","message":{"id":"m","content":[]}}"#,
    ];
    for line in inits {
        let mut rig = Rig::waiting();
        rig.begin(7);
        rig.line(line);
        assert_eq!(rig.drain(), [Output::Signal(Signal::Kill)], "{line}");
        rig.line(DONE);
        rig.feed(Input::Exited(Exit::Signal(9)));
        assert_eq!(rig.ending().outcome, Some(Outcome::Unavailable), "{line}");
    }
}

#[test]
fn a_claude_that_does_not_start_is_unavailable_and_probed_again() {
    let mut rig = Rig::waiting();
    rig.begin(7);
    rig.feed(Input::NotStarted("no such file".into()));
    let ending = rig.ending();
    assert_eq!(
        (ending.outcome, ending.error.as_str()),
        (Some(Outcome::Unavailable), "no such file")
    );
    rig.feed(Input::Ended(EndTurnAnswer::default()));
    rig.drain();
    rig.feed(begun(8));
    assert_eq!(rig.drain(), [Output::Probe]);
}

#[test]
fn an_agent_without_a_cli_reports_it_and_does_not_spin() {
    let by_default = pauses_without_a_cli(Backoff::default());
    assert_eq!(by_default, [20, 40, 80]);
    let of_the_hive =
        pauses_without_a_cli(Backoff { base: Duration::from_secs(1), max: Duration::from_secs(3) });
    assert_eq!(of_the_hive, [2, 3, 3]);
}

/// Returns the pauses between probes for a missing CLI, in seconds; the last probe finds it.
fn pauses_without_a_cli(park_backoff: Backoff) -> Vec<u64> {
    let mut rig = Rig::new();
    rig.feed(Input::Attached(Box::new(Attachment { park_backoff, ..facts() })));
    rig.drain();
    rig.feed(Input::Probed(Err("claude is not installed".into())));
    rig.assert_unavailable();
    // A turn begins anyway, so that the broker learns the cause and parks the agent.
    rig.feed(begun(7));
    assert_eq!(rig.drain(), [Output::Probe]);
    rig.feed(Input::Probed(Err("claude is not installed".into())));
    let ending = rig.ending();
    assert_eq!(
        (ending.outcome, ending.error.as_str()),
        (Some(Outcome::Unavailable), "claude is not installed")
    );
    rig.feed(parked(Outcome::Unavailable, Some(3600), rig.now));
    rig.drain();
    // In the background it is looked at again, later each time, until it is there.
    let mut rests = Vec::new();
    for _ in 0..3 {
        let before = rig.now.boot;
        rig.sleep();
        rests.push(rig.now.boot.since(before).as_secs());
        assert_eq!(rig.drain(), [Output::Probe]);
        rig.feed(Input::Probed(Err("claude is not installed".into())));
    }
    rig.sleep();
    rig.drain();
    rig.feed(found(true));
    assert_eq!(rig.begin(8).turn_id, 8);
    rests
}

#[test]
fn a_broken_server_of_the_agent_ends_no_turn_and_is_reported_once() {
    let without =
        GOOD_INIT.replace(r#""extra","status":"connected""#, r#""extra","status":"failed""#);
    let mut rig = Rig::waiting();
    for turn_id in [7, 8] {
        rig.begin(turn_id);
        rig.line(&without);
        let reported: Vec<_> = rig
            .drain()
            .into_iter()
            .filter(|output| matches!(output, Output::Problem(..)))
            .collect();
        if turn_id == 7 {
            assert!(
                matches!(&reported[..], [Output::Problem(subject, text)] if subject == "mcp:extra" && text.contains("failed"))
            );
        } else {
            assert_eq!(reported, []);
        }
        rig.finish();
        rig.settle();
        rig.drain();
    }
}
