//! The shown state of an agent, compared with what it does: step by step, while its conversation is
//! compacted or replaced, and while it rests.

use hive_proto::v1::HarnessState::{Compacting, Idle, NeedsLogin, RateLimited, Thinking};
use hive_proto::v1::TurnKind::{Checkpoint, Compact, Mail};
use hive_proto::v1::{HarnessState, TurnKind, TurnOutcome};
use hive_tests::rig::{Client, Mode, Rig};
use hive_tests::scripted::failure::Failure;
use hive_tests::scripted::script::{Rule, Step};

use crate::steps::{acked, answer, handled, large, rule, text, touch, unread, usage, wait_for};

/// The first second of the year 2100.
const YEAR_2100: i64 = 4_102_444_800;

both!(
    a_full_conversation_is_compacted_after_the_turn,
    one_that_is_too_long_is_compacted_within_the_turn,
    a_compaction_that_does_not_help_is_not_repeated,
    a_cold_one_is_replaced_and_the_old_one_is_named,
    a_cold_one_is_replaced_after_its_notes,
    a_rate_limit_and_a_missing_login
);

/// Stops in each step until the journey has looked.
fn stop(rig: &Rig, name: &str) -> Vec<Step> {
    vec![touch(rig, &format!("{name} reached")), wait_for(rig, &format!("{name} go"))]
}

/// Waits until bob reaches this step and is shown in this state; then lets him continue.
async fn shown(rig: &Rig, operator: &Client, name: &str, state: HarnessState) {
    rig.appeared(&format!("{name} reached")).await;
    let agent = operator.does("bob", state).await;
    assert_eq!(agent.open_turn_ids.len(), 1, "{name}");
    assert!(agent.park.is_none(), "{name}: {agent:?}");
    rig.touch(&format!("{name} go"));
}

/// Returns the states that bob's harness reported, in order. A turn that the broker opened is
/// reported again, for the broker has shown it by itself.
fn reported(rig: &Rig) -> Vec<String> {
    let log = rig.read("bob.log");
    let word = |line: &str| {
        line.split_once("status state=\"HARNESS_STATE_")
            .map(|(_, rest)| rest.trim_end_matches('"').to_owned())
    };
    let mut words: Vec<String> = log.lines().filter_map(word).collect();
    words.dedup();
    words
}

async fn ran(operator: &Client) -> Vec<(TurnKind, bool)> {
    let turns = operator.turns("bob").await;
    assert!(turns.iter().all(|turn| turn.outcome() == TurnOutcome::Ok), "{turns:?}");
    turns.iter().map(|turn| (turn.kind(), turn.compacted)).collect()
}

async fn a_full_conversation_is_compacted_after_the_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let rules = [
        rule(
            "Hive asks for your notes",
            [stop(&rig, "notes"), vec![text("Written down.")]].concat(),
        ),
        rule("/compact", stop(&rig, "compact")),
        rule("Letter 1", [stop(&rig, "first"), vec![large(), text("Done.")]].concat()),
        rule("", [vec![usage(10)], stop(&rig, "second")].concat()),
    ];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    operator.does("bob", Idle).await;
    operator.send("bob", "Letter 1.").await;
    let steps = [("first", Thinking), ("notes", Thinking), ("compact", Compacting)];
    for (name, state) in steps {
        shown(&rig, &operator, name, state).await;
    }
    let agent = operator.does("bob", Idle).await;
    assert_eq!(
        (agent.context_tokens, agent.context_window_tokens, agent.open_turn_ids.len()),
        (500, 1_000_000, 0)
    );
    let second = operator.send("bob", "Letter 2.").await;
    shown(&rig, &operator, "second", Thinking).await;
    acked(&rig, "bob", second).await;
    operator.does("bob", Idle).await;
    assert_eq!(
        ran(&operator).await,
        [(Mail, false), (Checkpoint, false), (Compact, true), (Mail, false)]
    );
    assert_eq!(
        reported(&rig),
        ["STARTING", "IDLE", "THINKING", "COMPACTING", "IDLE", "THINKING", "IDLE"]
    );
    rig.end().await;
}

/// The model refuses the second letter once, for its length.
async fn one_that_is_too_long_is_compacted_within_the_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let refuse = [stop(&rig, "first"), vec![Step::Fail { fail: Failure::PromptTooLong }]].concat();
    let rules = [
        rule("/compact", stop(&rig, "compact")),
        rule(
            "Letter 2",
            [
                vec![Step::First { first: rig.path("refused"), steps: refuse }],
                stop(&rig, "again"),
                vec![answer("operator", "It fits."), text("Done.")],
            ]
            .concat(),
        ),
        rule("", vec![text("Done.")]),
    ];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    operator.does("bob", Idle).await;
    let second = operator.send("bob", "Letter 2.").await;
    for (name, state) in [("first", Thinking), ("compact", Compacting), ("again", Thinking)] {
        shown(&rig, &operator, name, state).await;
    }
    acked(&rig, "bob", second).await;
    operator.does("bob", Idle).await;
    assert_eq!(ran(&operator).await, [(Mail, false), (Mail, true)]);
    assert_eq!(operator.turns("bob").await[1].attempt, 1);
    assert_eq!(unread(&operator, "operator").await, [("It fits.".to_owned(), second)]);
    assert_eq!(
        reported(&rig),
        ["STARTING", "IDLE", "THINKING", "IDLE", "THINKING", "COMPACTING", "THINKING", "IDLE"]
    );
    // After the compaction the prompt has the whole message again, for the model has lost it.
    let whole = rig.prompts("bob").iter().filter(|prompt| prompt.contains("| Letter 2.")).count();
    assert_eq!(whole, 2, "{:?}", rig.prompts("bob"));
    rig.end().await;
}

/// A failed compaction is not repeated after each turn, and the turns themselves succeed.
async fn a_compaction_that_does_not_help_is_not_repeated(mode: Mode) {
    let mut rig = Rig::duo().await;
    let words = "Compaction failed · conversation could not be reduced below the context limit";
    let rules = [
        rule("Hive asks for your notes", vec![usage(800_000), text("Written down.")]),
        rule("/compact", vec![Step::CompactError { compact_error: words.to_owned() }]),
        rule("", vec![usage(800_000), text("Done.")]),
    ];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    for number in 1..=3 {
        handled(&rig, &operator, "bob", &format!("Letter {number}.")).await;
        operator.does("bob", Idle).await;
    }
    let kinds: Vec<(TurnKind, TurnOutcome)> =
        operator.turns("bob").await.iter().map(|turn| (turn.kind(), turn.outcome())).collect();
    use TurnOutcome::{Failed, Ok};
    assert_eq!(kinds, [(Mail, Ok), (Checkpoint, Ok), (Compact, Failed), (Mail, Ok), (Mail, Ok)]);
    for inbox in ["ada", "operator"] {
        assert_eq!(operator.all_deliveries(inbox).await, []);
    }
    rig.end().await;
}

/// The cache is cold at once here, and a small conversation is large.
const COLD: [(&str, &str); 2] =
    [("HIVE_CACHE_TTL_SECS", "0"), ("HIVE_AUTO_RESET_WATERMARK_TOKENS", "5000")];

fn cold_rules() -> Vec<Rule> {
    vec![
        rule("Hive asks for your notes", vec![text("Written down.")]),
        rule("Letter 1", vec![usage(6000), text("Done.")]),
        rule("", vec![usage(10), text("Done.")]),
    ]
}

async fn letters(rig: &Rig, operator: &Client, count: usize) {
    for number in 1..=count {
        handled(rig, operator, "bob", &format!("Letter {number}.")).await;
        operator.does("bob", Idle).await;
    }
}

async fn a_cold_one_is_replaced_and_the_old_one_is_named(mode: Mode) {
    let mut rig = Rig::duo().await;
    mode.start_with(&mut rig, &cold_rules(), &COLD);
    let operator = rig.operator().await;
    letters(&rig, &operator, 3).await;
    assert_eq!(ran(&operator).await, [(Mail, false); 3]);
    assert_eq!(rig.conversations("bob"), [1, 2]);
    let prompts = rig.prompts("bob");
    let told: Vec<bool> =
        prompts.iter().map(|prompt| prompt.contains("A new conversation starts here")).collect();
    assert_eq!(told, [false, true, false], "{prompts:?}");
    let (_, rest) = prompts[1]
        .split_once("a JSON document a line, is in ")
        .expect("the old conversation is named");
    let path = rest.split_once(": search it").map(|(path, _)| path).expect("a path");
    let old = std::fs::read_to_string(path).expect("the agent can read it");
    assert!(old.contains("Letter 1.") && !old.contains("Letter 2."), "{path}");
    rig.end().await;
}

async fn a_cold_one_is_replaced_after_its_notes(mode: Mode) {
    let mut rig = Rig::duo().await;
    let checkpoint = [COLD.as_slice(), &[("HIVE_AUTO_RESET_CHECKPOINT", "1")]].concat();
    mode.start_with(&mut rig, &cold_rules(), &checkpoint);
    let operator = rig.operator().await;
    letters(&rig, &operator, 2).await;
    assert_eq!(ran(&operator).await, [(Mail, false); 2], "the notes are a part of the turn");
    assert_eq!(rig.conversations("bob"), [2, 1]);
    assert!(rig.prompts("bob")[1].contains("Hive asks for your notes"), "{:?}", rig.prompts("bob"));
    rig.end().await;
}

async fn a_rate_limit_and_a_missing_login(mode: Mode) {
    let mut rig = Rig::duo().await;
    let limited = vec![Step::Fail { fail: Failure::UsageLimit(YEAR_2100) }];
    mode.start(&mut rig, &[rule("", limited)]);
    let operator = rig.operator().await;
    operator.send("bob", "Letter 1.").await;
    let agent = operator.does("bob", RateLimited).await;
    let park = agent.park.expect("it is parked");
    assert_eq!(park.cause(), TurnOutcome::RateLimited);
    let until = park.until_time.expect("it is known when").seconds;
    assert!((YEAR_2100..YEAR_2100 + 11).contains(&until), "{until}");
    assert_eq!(agent.open_turn_ids, [0; 0]);
    assert!(operator.all_deliveries("operator").await.is_empty(), "there is nothing to do");

    // Nothing is tried until then, not even by another harness.
    rig.stop_harness("bob").await;
    let mut watch = rig.watch_from_now().await;
    mode.start(&mut rig, &[rule("", vec![Step::Fail { fail: Failure::NotLoggedIn }])]);
    watch.kind("bob", hive_proto::v1::EventKind::HarnessAttached).await;
    rig.harness("bob").says("RATE_LIMITED").await;
    assert_eq!(operator.turns("bob").await.len(), 1);
    // For ada the login is missing.
    let options =
        mode.options(&rig, "ada", &[rule("", vec![Step::Fail { fail: Failure::NotLoggedIn }])]);
    rig.start_harness_with("ada", &options);
    operator.send("ada", "Letter 1.").await;
    let agent = operator.does("ada", NeedsLogin).await;
    let park = agent.park.expect("it is parked");
    assert_eq!((park.cause(), park.until_time), (TurnOutcome::AuthFailed, None));
    assert_eq!(rig.turn_starts("ada").len(), 2, "tried once more at once, and then no more");
    rig.end().await;
}
