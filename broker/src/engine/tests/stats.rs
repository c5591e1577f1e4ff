//! Statistics: what turns called, and sums of the turns that ended in a window.

use std::time::Instant;

use hive_core::caller::Caller;
use hive_core::limits::{STATS_SLICES, STATS_TOOLS_MAX, STATS_WINDOW_MAX};
use hive_core::turn::{ToolUse, Usage};

use super::questions::plain;
use super::*;
use crate::engine::turn::problem::Problem;
use crate::engine::turn::stats::{Open, Stats, TurnStats, Waker};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

fn tools(called: &[(&str, u32)]) -> Vec<ToolUse> {
    called.iter().map(|(name, count)| ToolUse { name: (*name).to_owned(), count: *count }).collect()
}

async fn stats(
    hive: &Hive,
    who: &str,
    agent: &str,
    window: Duration,
) -> Result<TurnStats, Refusal> {
    hive.engine().turn_stats(caller(who), agent.to_owned(), window).await
}

async fn total(hive: &Hive, agent: &str, window: Duration) -> Stats {
    stats(hive, "operator", agent, window).await.expect("summed up").total
}

/// Ends a turn after `seconds` seconds.
async fn lasting(hive: &Hive, run: &Run, seconds: u64, end: Ended) {
    hive.pass(seconds);
    hive.try_end(run, end).await.expect("it ends");
}

async fn open(hive: &Hive, harness: &Harness, kind: Kind, seconds: u64, outcome: Outcome) {
    let run = hive.open(harness, kind).await.expect("opened");
    lasting(hive, &run, seconds, ended(outcome)).await;
}

#[tokio::test]
async fn counts_of_tools_that_no_turn_has_are_refused() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let run = hive.open(&bob, Kind::Continue).await.expect("opened");
    let many: Vec<ToolUse> =
        (0..65).map(|number| ToolUse { name: format!("tool-{number}"), count: 1 }).collect();
    let long = "x".repeat(129);
    let bad = [
        tools(&[("", 1)]),
        tools(&[(&long, 1)]),
        tools(&[("a\tb", 1)]),
        tools(&[("a", 0)]),
        tools(&[("a", 1), ("b", 1), ("a", 2)]),
        many,
    ];
    for tool_uses in bad {
        let end =
            hive.try_end(&run, Ended { tool_uses: tool_uses.clone(), ..ended(Outcome::Ok) }).await;
        assert_eq!(reason(end), Reason::FieldInvalid, "{tool_uses:?}");
    }
    let most: Vec<ToolUse> = (0..64)
        .map(|number| ToolUse { name: format!("{number:ä>128}"), count: u32::MAX })
        .collect();
    hive.try_end(&run, Ended { tool_uses: most, ..ended(Outcome::Ok) })
        .await
        .expect("as much as there may be");
    assert_eq!(total(&hive, "bob", DAY).await.tools.len(), STATS_TOOLS_MAX);
}

#[tokio::test]
async fn an_end_that_is_said_twice_counts_its_tools_once() {
    let mut hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let run = hive.open(&bob, Kind::Continue).await.expect("opened");
    let end = || Ended { tool_uses: tools(&[("Bash", 2), ("Read", 3)]), ..ended(Outcome::Ok) };
    let key = |id| request("EndTurn", id, 1);
    let first = end_turn(hive.engine(), &run, key("e1"), end()).await.expect("it ends");
    hive.crash().await;
    // Again with its request id, and again with another one by a harness that forgot.
    for id in ["e1", "e2"] {
        let again = end_turn(hive.engine(), &run, key(id), end()).await.expect("answered again");
        assert_eq!(again.settled, first.settled);
    }
    assert_eq!(total(&hive, "", DAY).await.tools, tools(&[("Read", 3), ("Bash", 2)]));
}

#[tokio::test]
async fn a_commit_that_fails_leaves_no_tools_behind() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let run = hive.open(&bob, Kind::Continue).await.expect("opened");
    let end = Ended { tool_uses: tools(&[("Bash", 2)]), ..ended(Outcome::Ok) };
    let key = || request("EndTurn", "e1", 1);
    let (engine, ending, first) = (Arc::clone(hive.engine()), run.clone(), end.clone());
    let voided = hive.voided(async move { end_turn(&engine, &ending, key(), first).await }).await;
    assert_eq!(reason(voided), Reason::StorageUnavailable);
    assert!(total(&hive, "", DAY).await.tools.is_empty());
    end_turn(hive.engine(), &run, key(), end).await.expect("it ends");
    assert_eq!(total(&hive, "", DAY).await.tools, tools(&[("Bash", 2)]));
}

#[tokio::test]
async fn turns_are_summed_up_for_each_agent_and_for_all() {
    let hive = Hive::new(&["alice", "bob", "idle"]).await;
    let (alice, bob) = (hive.attach("alice").await, hive.attach("bob").await);
    let usage = Usage {
        input_tokens: 1,
        cache_read_tokens: 2,
        cache_creation_tokens: 3,
        output_tokens: 4,
        cost_micro_usd: 5,
        inference_count: 6,
        tool_call_count: 7,
    };
    for (harness, seconds, outcome) in
        [(&alice, 1, Outcome::Ok), (&bob, 2, Outcome::Ok), (&bob, 10, Outcome::Failed)]
    {
        let run = hive.open(harness, Kind::Continue).await.expect("opened");
        let end = Ended {
            usage,
            compacted: outcome == Outcome::Failed,
            tool_uses: tools(&[("Bash", 1), (&harness.agent, 2)]),
            ..ended(outcome)
        };
        lasting(&hive, &run, seconds, end).await;
    }
    hive.open(&alice, Kind::Continue).await.expect("one that runs is not counted");
    let TurnStats { window, total, agents, .. } =
        stats(&hive, "operator", "", HOUR).await.expect("summed up");
    assert_eq!((window.end, window.end.since(window.start)), (hive.now().wall, HOUR));
    assert_eq!((total.turns, total.compactions), (3, 1));
    assert_eq!(total.kinds, [(Kind::Continue, 3)]);
    assert_eq!(total.outcomes, [(Outcome::Ok, 2), (Outcome::Failed, 1)]);
    let thrice = Usage {
        input_tokens: 3,
        cache_read_tokens: 6,
        cache_creation_tokens: 9,
        output_tokens: 12,
        cost_micro_usd: 15,
        inference_count: 18,
        tool_call_count: 21,
    };
    assert_eq!(total.usage, thrice);
    assert_eq!(
        (total.duration_p50, total.duration_p95),
        (Some(Duration::from_secs(2)), Some(Duration::from_secs(10)))
    );
    assert_eq!(total.tools, tools(&[("bob", 4), ("Bash", 3), ("alice", 2)]));
    let of: Vec<_> = agents
        .iter()
        .map(|(name, stats)| (name.as_str(), stats.turns, stats.usage.cost_micro_usd))
        .collect();
    assert_eq!(of, [("alice", 1, 5), ("bob", 2, 10)], "by name, and only who had one");
    assert!(agents.iter().all(|(_, stats)| stats.tools.is_empty() && stats.slices.is_empty()));
    // Of one alone.
    let TurnStats { total, agents, .. } =
        stats(&hive, "operator", "bob", HOUR).await.expect("summed up");
    assert_eq!((total.turns, agents.len()), (2, 0));
    assert_eq!(total.tools, tools(&[("bob", 4), ("Bash", 2)]));
    let none = stats(&hive, "operator", "idle", HOUR).await.expect("summed up").total;
    assert_eq!(
        (none.turns, none.duration_p50, none.duration_p95, none.slices.len()),
        (0, None, None, STATS_SLICES)
    );
}

#[tokio::test]
async fn an_agent_sees_its_own_sums_and_no_others() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let bob = hive.attach("bob").await;
    open(&hive, &bob, Kind::Continue, 1, Outcome::Ok).await;
    for agent in ["", "bob"] {
        let own = stats(&hive, "bob", agent, HOUR).await.expect("its own");
        assert_eq!((own.total.turns, own.agents.len()), (1, 0));
    }
    assert_eq!(stats(&hive, "alice", "", HOUR).await.expect("her own").total.turns, 0);
    for agent in ["bob", "nobody", "operator"] {
        assert_eq!(
            stats(&hive, "alice", agent, HOUR).await.expect_err(agent).reason(),
            Reason::NotYours
        );
    }
    assert_eq!(reason(stats(&hive, "operator", "nobody", HOUR).await), Reason::AgentNotFound);
    for window in
        [Duration::ZERO, Duration::from_millis(999), STATS_WINDOW_MAX + Duration::from_millis(1)]
    {
        assert_eq!(reason(stats(&hive, "bob", "", window).await), Reason::FieldInvalid);
    }
    stats(&hive, "bob", "", STATS_WINDOW_MAX).await.expect("the longest");
    stats(&hive, "bob", "", Duration::from_secs(1)).await.expect("the shortest");
    // The turns of a retired agent still count.
    hive.retire("bob").await;
    assert_eq!(total(&hive, "bob", HOUR).await.turns, 1);
}

#[tokio::test]
async fn a_window_has_a_beginning_an_end_and_slices() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    hive.pass(86_400);
    // One turn in each hour, at its very end.
    for hour in 0..24 {
        let run = hive.open(&bob, Kind::Continue).await.expect("opened");
        let outcome = if hour % 2 == 0 { Outcome::Ok } else { Outcome::Cancelled };
        let usage = Usage { output_tokens: hour, cost_micro_usd: 100 * hour, ..Usage::default() };
        lasting(&hive, &run, 3600, Ended { usage, ..ended(outcome) }).await;
    }
    let day = stats(&hive, "operator", "bob", DAY).await.expect("summed up");
    assert_eq!(day.total.turns, 24);
    for (hour, slice) in (0u64..).zip(&day.total.slices) {
        assert_eq!(slice.start, day.window.start.after(HOUR * u32::try_from(hour).expect("small")));
        assert_eq!((slice.turns, slice.not_ok), (1, hour % 2), "slice {hour}");
        assert_eq!((slice.output_tokens, slice.cost_micro_usd), (hour, 100 * hour));
    }
    assert_eq!(
        total(&hive, "bob", DAY - Duration::from_millis(1)).await.turns,
        23 + 1,
        "what ended after its start"
    );
    assert_eq!(
        total(&hive, "bob", 23 * HOUR).await.turns,
        23,
        "what ended at its start is of the window before"
    );
    hive.pass(3600);
    assert_eq!(total(&hive, "bob", DAY).await.turns, 23);
}

#[tokio::test]
async fn a_wall_clock_that_is_set_makes_no_nonsense() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let run = hive.open(&bob, Kind::Continue).await.expect("opened");
    let begun = hive.now().wall;
    hive.clock.set_wall(begun.before(HOUR));
    hive.end(&run, Outcome::Ok).await;
    let sum = total(&hive, "bob", DAY).await;
    assert_eq!((sum.turns, sum.duration_p50), (1, Some(Duration::ZERO)));
    // A turn whose end is in the future by the changed clock is outside of the window.
    hive.clock.set_wall(begun.before(2 * HOUR));
    assert_eq!(total(&hive, "bob", DAY).await.turns, 0);
}

#[tokio::test]
async fn triggers_of_turns_are_listed_by_frequency() {
    let hive = Hive::new(&["alice"]).await;
    hive.create("bob", Some("alice"), Default::default()).await;
    hive.create("kid", Some("bob"), Default::default()).await;
    let bob = hive.attach("bob").await;
    let wake = async |label: &str| {
        let wake = Wake {
            label: Label::parse(label).expect("a label"),
            body: "built".to_owned(),
            coalescing_key: None,
            session_token: None,
        };
        hive.engine().wake(actor("bob"), hive.request("Wake"), wake).await.expect("accepted");
        hive.turn(&bob, Outcome::Ok).await;
    };
    for label in ["ci", "cron", "ci", "ci"] {
        wake(label).await;
    }
    for from in ["alice", "operator", "alice"] {
        hive.send(from, "bob", "hello").await;
        hive.turn(&bob, Outcome::Ok).await;
    }
    let kid = hive.attach("kid").await;
    let problem = Problem {
        session_token: kid.token.clone(),
        subject: "plugins".to_owned(),
        text: "gone".to_owned(),
    };
    hive.engine()
        .report_problem(caller("kid"), hive.request("ReportProblem"), problem)
        .await
        .expect("told");
    hive.turn(&bob, Outcome::Ok).await;
    for kind in [Kind::Continue, Kind::Compact, Kind::Checkpoint, Kind::Checkpoint] {
        open(&hive, &bob, kind, 1, Outcome::Ok).await;
    }
    let sum = total(&hive, "bob", DAY).await;
    let label = |label: &str| Waker::External(label.to_owned());
    let wakes = [
        (label("ci"), 3),
        (Waker::Agent, 2),
        (Waker::Turn(Kind::Checkpoint), 2),
        (Waker::Operator, 1),
        (Waker::System(SystemKind::Problem), 1),
        (label("cron"), 1),
        (Waker::Turn(Kind::Continue), 1),
        (Waker::Turn(Kind::Compact), 1),
    ];
    assert_eq!(sum.wakes, wakes);
    assert_eq!(sum.wakes.iter().map(|(_, count)| count).sum::<u64>(), sum.turns);
    assert_eq!(
        sum.kinds,
        [(Kind::Mail, 8), (Kind::Checkpoint, 2), (Kind::Continue, 1), (Kind::Compact, 1)]
    );
}

/// A hundred thousand turns of the last day, half as many of the time before, and the mail that
/// woke them.
const MANY: &str = "
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
    INSERT INTO message (id, origin_kind, origin_name, to_id, body, accept_time, system_kind)
    SELECT 1000000 + i, 1 + i % 4, 'alice', 2, printf('%.300c', 'x'), 0, iif(i % 4 = 2, 1, NULL) FROM n;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150000)
    INSERT INTO turn (id, agent_id, kind, conversation, session_epoch, process_token, boot_id, message_id, outcome, start_time, end_time,
    error, output_tail, output_tokens) SELECT 2000000 + i, 2 + i % 4, 1, 'main', 1, 'token', 'boot', 1000000 + i, 1 + i % 3,
    ?1 - (150000 - i) * 864 - 1000 * (i % 100), ?1 - (150000 - i) * 864, '', printf('%.200c', 'x'), 1 FROM n;
    INSERT INTO turn_tool (turn_id, name, count) SELECT id, 'Bash', 3 FROM turn WHERE id > 2000000;
    INSERT INTO turn_tool (turn_id, name, count) SELECT id, 'tool-' || (id % 50), 2 FROM turn WHERE id > 2000000";

#[tokio::test]
async fn a_hundred_thousand_turns_are_summed_up_at_once() {
    let hive = Hive::new(&["alice", "bob", "cyd", "dan"]).await;
    let now = hive.now().wall.0;
    let written = hive.engine().store().write(move |tx| {
        for sql in MANY.split(';') {
            let mut insert = tx.connection().prepare(sql)?;
            let parameters: Vec<i64> =
                if insert.parameter_count() == 1 { vec![now] } else { Vec::new() };
            insert.execute(rusqlite::params_from_iter(parameters))?;
        }
        Ok::<_, Refusal>(())
    });
    written.await.expect("written");
    for (agent, turns) in [("", 100_000), ("bob", 25_000)] {
        let began = Instant::now();
        let sum = total(&hive, agent, DAY).await;
        let took = began.elapsed();
        assert_eq!((sum.turns, sum.usage.output_tokens), (turns, turns));
        assert_eq!(
            sum.tools[0],
            ToolUse { name: "Bash".to_owned(), count: u32::try_from(3 * turns).expect("small") }
        );
        assert_eq!(sum.tools.len(), STATS_TOOLS_MAX);
        assert_eq!(sum.slices.iter().map(|slice| slice.turns).sum::<u64>(), turns);
        // Unoptimized and beside other tests; built for use it takes a small part of that.
        assert!(took < Duration::from_secs(20), "{agent:?}: {took:?}");
    }
}

#[tokio::test]
async fn an_agents_name_is_no_authority() {
    let hive = Hive::new(&["bob"]).await;
    let stranger = Caller::Agent(name("nobody"));
    assert_eq!(
        reason(hive.engine().turn_stats(stranger, String::new(), DAY).await),
        Reason::AgentNotFound
    );
}

#[tokio::test]
async fn open_work_is_counted_beside_the_turns() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let open = async |who: &str, of: &str| {
        let Open { questions_asked, questions_owed, reminders_pending } =
            stats(&hive, who, of, HOUR).await.expect("summed up").open;
        (questions_asked, questions_owed, reminders_pending)
    };
    assert_eq!(open("operator", "").await, (0, 0, 0));
    hive.asked("alice", plain("bob", "which?")).await;
    let closed = hive.asked("alice", plain("operator", "may I?")).await;
    hive.asked("operator", plain("bob", "done?")).await;
    hive.withdraw("alice", closed).await.expect("withdrawn");
    let reminder = hive.engine().set_reminder(
        actor("bob"),
        hive.request("CreateReminder"),
        "look".to_owned(),
        Due::In(HOUR),
    );
    reminder.await.expect("set");
    assert_eq!(open("operator", "").await, (2, 0, 1));
    assert_eq!((open("alice", "").await, open("operator", "bob").await), ((1, 0, 0), (0, 2, 1)));
}
