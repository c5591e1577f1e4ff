//! Weather: what keeps an agent from running turns uses no attempt, makes it rest, and loses
//! nothing.

use hive_proto::v1::{
    Agent, DeliveryState, EventKind, Park, RedeliveryCause, SystemKind, Turn, TurnOutcome,
};
use hive_tests::binary;
use hive_tests::rig::{Client, HarnessOptions, Rig, Watch};
use hive_tests::scripted::script::Step;
use serde_json::json;

use crate::steps::{acked, answer, api_error, ended, lives, rule, standing, text, unread};

/// The bounds of the rig: the first rest, and the longest.
const PARK_MS: [i64; 2] = [30, 60];

pub(crate) fn millis(time: Option<prost_types::Timestamp>) -> i64 {
    let time = time.expect("a time");
    time.seconds * 1000 + i64::from(time.nanos) / 1_000_000
}

fn park(agent: Agent) -> Park {
    agent.park.expect("the agent is parked")
}

/// Each turn but the first begins after the rest that follows the one before.
fn rested(turns: &[Turn]) {
    for (number, pair) in turns.windows(2).enumerate() {
        let rest = millis(pair[1].start_time) - millis(pair[0].end_time);
        // The clocks show whole milliseconds.
        assert!(rest + 1 >= PARK_MS[number.min(1)], "after {} failures only {rest} ms", number + 1);
    }
}

async fn notices(operator: &Client) -> Vec<String> {
    let notices = operator.notices("operator", SystemKind::Unavailable).await;
    notices.into_iter().map(|message| message.body).collect()
}

async fn failures(rig: &Rig, watch: &mut Watch, count: u32) {
    for _ in 0..count {
        ended(rig, watch, "bob", TurnOutcome::Unavailable).await;
    }
}

/// Many more failures than a message has attempts.
#[tokio::test]
async fn an_unavailable_api_uses_no_attempt_however_long_it_lasts() {
    let mut rig = Rig::duo().await;
    rig.start_harness("bob", &[rule("", vec![api_error(529)])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Are you there?").await;
    failures(&rig, &mut watch, 12).await;
    let (_, attempt, cause) = standing(&operator, "bob", asked).await;
    assert_eq!((attempt, cause), (1, RedeliveryCause::Unavailable));
    rig.rewrite_script("bob", &[rule("", vec![answer("operator", "I am."), text("Done.")])]);
    acked(&rig, "bob", asked).await;

    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Acked, 1, RedeliveryCause::Unavailable)
    );
    let turns = operator.turns("bob").await;
    let (last, failed) = turns.split_last().expect("turns");
    assert!(
        failed.len() >= 12 && failed.iter().all(|turn| turn.outcome() == TurnOutcome::Unavailable),
        "{failed:?}"
    );
    assert!(turns.iter().all(|turn| turn.attempt == 1 && turn.message_id == asked), "{turns:?}");
    assert_eq!(last.outcome(), TurnOutcome::Ok);
    rested(&turns);
    // Once, however often it failed.
    assert_eq!(notices(&operator).await, ["bob works again."]);
    assert_eq!(unread(&operator, "operator").await.first(), Some(&("I am.".to_owned(), asked)));
    assert!(operator.get_agent("bob").await.park.is_none());
    // The text is in the conversation once, not once an attempt.
    let whole =
        rig.prompts("bob").iter().filter(|prompt| prompt.contains("| Are you there?")).count();
    assert_eq!(whole, 1);
    rig.end().await;
}

/// A missing claude is an outage too, and is found when it is installed.
#[tokio::test]
async fn a_missing_claude_is_waited_for() {
    let mut rig = Rig::duo().await;
    let claude = rig.path("claude");
    let rules = vec![rule("", vec![answer("operator", "Here."), text("Done.")])];
    rig.start_harness_with(
        "bob",
        &HarnessOptions { claude: claude.clone(), rules, ..HarnessOptions::default() },
    );
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Are you there?").await;
    failures(&rig, &mut watch, 7).await;
    let told = notices(&operator).await;
    assert!(
        matches!(&told[..], [one] if one.contains("claude cannot be started as") && one.contains("install Claude Code")),
        "{told:?}"
    );
    std::os::unix::fs::symlink(binary::find("hive-scripted", "scripted-claude"), &claude)
        .expect("claude is installed");
    acked(&rig, "bob", asked).await;
    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Acked, 1, RedeliveryCause::Unavailable)
    );
    rested(&operator.turns("bob").await);
    assert_eq!(notices(&operator).await, ["bob works again."]);
    rig.end().await;
}

#[tokio::test]
async fn a_rate_limit_is_slept_out_until_it_ends() {
    let mut rig = Rig::duo().await;
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    let resets_at = i64::try_from(now).expect("before the end of time") + 1;
    let limit = json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": resets_at}});
    let limited = rule("", vec![Step::Raw { raw: limit.to_string() }, api_error(429)]);
    rig.start_harness(
        "bob",
        &[rule("rate limit", vec![answer("operator", "Now."), text("Done.")]), limited],
    );
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Are you there?").await;
    watch.kind("bob", EventKind::AgentParked).await;
    let parked = park(operator.get_agent("bob").await);
    let until = millis(parked.until_time);
    assert_eq!(parked.cause(), TurnOutcome::RateLimited);
    // Up to ten seconds later, so that agents of one account do not come back at one moment.
    assert!((resets_at * 1000..resets_at * 1000 + 10_000).contains(&until), "{until}");
    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Ready, 1, RedeliveryCause::RateLimited)
    );
    acked(&rig, "bob", asked).await;

    let turns = operator.turns("bob").await;
    assert_eq!(lives(&turns), [(TurnOutcome::RateLimited, 1), (TurnOutcome::Ok, 1)]);
    assert!(
        millis(turns[1].start_time) >= until,
        "{} is before {until}",
        millis(turns[1].start_time)
    );
    assert!(notices(&operator).await.is_empty(), "there is nothing to do");
    rig.end().await;
}

#[tokio::test]
async fn a_missing_login_is_waited_for_and_costs_no_call() {
    let mut rig = Rig::duo().await;
    rig.start_harness(
        "bob",
        &[
            rule("no valid login", vec![answer("operator", "Now."), text("Done.")]),
            rule("More", vec![text("Done.")]),
            rule("", vec![api_error(401)]),
        ],
    );
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Are you there?").await;
    watch.kind("bob", EventKind::AgentParked).await;
    let parked = park(operator.get_agent("bob").await);
    assert_eq!((parked.cause(), parked.until_time), (TurnOutcome::AuthFailed, None));
    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Ready, 1, RedeliveryCause::AuthFailed)
    );
    assert_eq!(
        notices(&operator).await,
        [
            "bob cannot run turns now (auth failed):\n\n> API Error: 401\n\nLog in with `hivectl login bob`."
        ]
    );
    // New mail waits with it.
    let more = operator.send("bob", "More.").await;
    assert_eq!(rig.prompts("bob").len(), 2, "tried once more at once, and then no more");

    std::fs::write(rig.path("agents/bob/home/.claude/.credentials.json"), b"{}").expect("a login");
    acked(&rig, "bob", asked).await;
    acked(&rig, "bob", more).await;
    let turns = operator.turns("bob").await;
    assert_eq!(
        lives(&turns),
        [(TurnOutcome::AuthFailed, 1), (TurnOutcome::Ok, 1), (TurnOutcome::Ok, 1)]
    );
    assert!(operator.get_agent("bob").await.park.is_none());
    rig.end().await;
}
