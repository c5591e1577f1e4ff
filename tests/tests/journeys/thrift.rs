//! No unwanted turn is paid for: a message is one turn however it races, a storm is one turn more,
//! an idle fleet starts no claude. An agent continues by itself only on request and without mail.

use std::collections::BTreeMap;

use hive_proto::v1::wake_service_client::WakeServiceClient;
use hive_proto::v1::{
    DeliveryState, EventKind, HarnessState, Turn, TurnKind, TurnOutcome, WakeRequest,
};
use hive_tests::rig::{Client, HarnessOptions, Mode, QUICK_LIMITS, Rig, request};
use hive_tests::scripted::script::Step;
use serde_json::json;

use crate::steps::{acked, env, large, rule, text, tool, touch, usage, wait_for};

/// Number of runs of a race.
const ROUNDS: usize = 18;
/// Number of wakes in a storm.
const STORM: usize = 200;

both!(
    mail_at_the_end_of_a_turn_is_one_turn,
    mail_at_the_end_of_a_turn_that_wants_to_go_on,
    a_storm_is_one_turn_more,
    an_idle_fleet_starts_no_claude,
    a_requested_turn_outlives_a_compaction,
    mail_at_a_compaction_replaces_the_requested_turn
);

fn request_next_turn() -> Step {
    tool("request_next_turn", json!({}))
}

async fn kinds(operator: &Client) -> Vec<TurnKind> {
    let turns = operator.turns("bob").await;
    assert!(turns.iter().all(|turn| turn.outcome() == TurnOutcome::Ok), "{turns:?}");
    turns.iter().map(Turn::kind).collect()
}

/// In each round a turn is held at its end and let go, and the next message is sent: before it,
/// after it, and most often in between, at another moment each time. How long an end takes is
/// measured in steps of this program, for that is what the moment is counted in.
async fn race(mode: Mode, before_the_end: &[Step]) -> (Rig, Client, Vec<u64>) {
    let mut rig = Rig::duo().await;
    let held = |round: usize| {
        let steps = [
            before_the_end,
            &[touch(&rig, &format!("reached {round}")), wait_for(&rig, &format!("go {round}"))],
        ];
        rule(&format!("Hold {round}."), steps.concat())
    };
    let mut rules: Vec<_> = (0..ROUNDS).map(held).collect();
    rules.push(rule("", Vec::new()));
    mode.start(&mut rig, &rules);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let (mut sent, mut steps_of_an_end) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        sent.push(operator.send("bob", &format!("Hold {round}.")).await);
        rig.appeared(&format!("reached {round}")).await;
        let turn = operator.get_agent("bob").await.open_turn_ids[0];
        let ends = watch.until("the turn ends", |event| {
            event.kind() == EventKind::TurnEnded && event.turn_id == turn
        });
        let go = format!("go {round}");
        let late = match round % 6 {
            0 => {
                let late = operator.send("bob", "Late.").await;
                rig.touch(&go);
                ends.await;
                late
            }
            1 => {
                rig.touch(&go);
                steps_of_an_end = steps_of(ends).await;
                operator.send("bob", "Late.").await
            }
            place => {
                rig.touch(&go);
                let moment = steps_of_an_end * (4 * (round / 6) + place - 1) / (ROUNDS * 2 / 3);
                let late = async {
                    for _ in 0..moment {
                        tokio::task::yield_now().await;
                    }
                    operator.send("bob", "Late.").await
                };
                tokio::join!(ends, late).1
            }
        };
        sent.push(late);
        acked(&rig, "bob", late).await;
    }
    operator.does("bob", HarnessState::Idle).await;
    for message in &sent {
        let delivery = operator.delivery("bob", *message).await;
        assert_eq!((delivery.state(), delivery.attempt), (DeliveryState::Acked, 1));
    }
    (rig, operator, sent)
}

/// Returns the number of steps that this program can take before the future is ready.
async fn steps_of<T>(happens: impl Future<Output = T>) -> usize {
    let mut steps = 0;
    let count = async {
        loop {
            tokio::task::yield_now().await;
            steps += 1;
        }
    };
    tokio::select! {
        _ = happens => {}
        () = count => {}
    }
    steps
}

/// The messages that woke turns, each with how many.
async fn woken(operator: &Client) -> BTreeMap<u64, usize> {
    let mut woken = BTreeMap::new();
    for turn in operator.turns("bob").await {
        *woken.entry(turn.message_id).or_default() += 1;
    }
    woken
}

async fn mail_at_the_end_of_a_turn_is_one_turn(mode: Mode) {
    let (rig, operator, sent) = race(mode, &[]).await;
    assert_eq!(woken(&operator).await, sent.iter().map(|message| (*message, 1)).collect());
    let expected = if mode == Mode::Resident { 1 } else { sent.len() };
    assert_eq!(rig.turn_starts("bob").len(), expected);
    rig.end().await;
}

/// Mail that arrives in time takes the place of the requested turn; later mail is handled after
/// that turn.
async fn mail_at_the_end_of_a_turn_that_wants_to_go_on(mode: Mode) {
    let (rig, operator, sent) = race(mode, &[request_next_turn()]).await;
    let mut woken = woken(&operator).await;
    let continued = woken.remove(&0).unwrap_or(0);
    assert_eq!(woken, sent.iter().map(|message| (*message, 1)).collect());
    // Mail sent after the end of the turn found the next turn begun; earlier mail replaced
    // that turn.
    assert!((ROUNDS / 6..=ROUNDS * 5 / 6).contains(&continued), "{continued}");
    let turns = operator.turns("bob").await;
    for pair in turns.windows(2).filter(|pair| pair[1].kind() == TurnKind::Continue) {
        assert!(
            sent.iter().step_by(2).any(|asked| *asked == pair[0].message_id),
            "only after the turn that asked: {pair:?}"
        );
    }
    rig.end().await;
}

async fn a_storm_is_one_turn_more(mode: Mode) {
    let config = format!("{}{QUICK_LIMITS}", hive_tests::rig::DUO);
    let mut rig = Rig::new(
        &config.replace("[broker.limits]", "[broker.limits]\nsends_per_minute_max = 100000"),
    );
    rig.start_broker().await;
    let stops = vec![touch(&rig, "reached"), wait_for(&rig, "go")];
    mode.start(&mut rig, &[rule("Hold", stops), rule("", Vec::new())]);
    let operator = rig.operator().await;
    let first = operator.send("bob", "Hold.").await;
    rig.appeared("reached").await;
    let beside = rig.agent("bob").await;
    let mut last = 0;
    for number in 0..STORM {
        let request = WakeRequest {
            coalescing_key: "build".to_owned(),
            ..request::wake("ci", format!("build {number} is red"))
        };
        let woken = WakeServiceClient::new(beside.channel()).wake(request).await;
        last = woken.expect("the wake is accepted").into_inner().message_id;
    }
    assert_eq!(operator.get_agent("bob").await.ready_count, 1);
    rig.touch("go");
    acked(&rig, "bob", last).await;
    operator.does("bob", HarnessState::Idle).await;
    assert_eq!(woken(&operator).await, BTreeMap::from([(first, 1), (last, 1)]));
    let superseded = operator
        .all_deliveries("bob")
        .await
        .iter()
        .filter(|one| one.state() == DeliveryState::Superseded)
        .count();
    assert_eq!(superseded, STORM - 1);
    let told = rig.prompts("bob").concat();
    assert_eq!(told.matches("is red").count(), 1, "{told}");
    rig.end().await;
}

/// Agents come, their harnesses and their broker are restarted, and no message is sent.
async fn an_idle_fleet_starts_no_claude(mode: Mode) {
    const FLEET: [&str; 4] = ["ada", "bob", "cyd", "dan"];
    let agents: String = FLEET.iter().map(|name| format!("[agents.{name}]\n")).collect();
    let mut rig = Rig::new(&format!("[hive]\nname = \"test\"\n{agents}{QUICK_LIMITS}"));
    rig.start_broker().await;
    let mut watch = rig.watch().await;
    let mut options: Vec<HarnessOptions> =
        FLEET.iter().map(|name| mode.options(&rig, name, &[])).collect();
    for one in &mut options {
        one.env.extend(env(&[("HIVE_CACHE_TTL_SECS", "0"), ("HIVE_RESIDENT_IDLE_SECS", "1")]));
    }
    for _ in 0..2 {
        for (name, options) in FLEET.iter().zip(&options) {
            rig.start_harness_with(name, options);
        }
        watch.kinds(EventKind::HarnessAttached, FLEET.len()).await;
        rig.crash_broker().await;
        let operator = rig.operator().await;
        for name in FLEET {
            operator.does(name, HarnessState::Idle).await;
        }
        for name in FLEET {
            rig.stop_harness(name).await;
        }
    }
    let operator = rig.operator().await;
    for name in FLEET {
        assert_eq!(rig.turn_starts(name), [""; 0]);
        assert_eq!(operator.turns(name).await, []);
    }
    rig.end().await;
}

async fn a_requested_turn_outlives_a_compaction(mode: Mode) {
    let mut rig = Rig::duo().await;
    let rules = [
        rule("Hive asks for your notes", vec![text("It is written down.")]),
        rule("Message from self", vec![touch(&rig, "went on")]),
        rule("", vec![request_next_turn(), large(), text("More to do.")]),
    ];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    operator.send("bob", "Letter 1.").await;
    rig.appeared("went on").await;
    operator.does("bob", HarnessState::Idle).await;
    use TurnKind::{Checkpoint, Compact, Continue, Mail};
    assert_eq!(kinds(&operator).await, [Mail, Checkpoint, Compact, Continue]);
    rig.end().await;
}

async fn mail_at_a_compaction_replaces_the_requested_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let rules = [
        rule("Hive asks for your notes", vec![text("It is written down.")]),
        rule("/compact", vec![touch(&rig, "reached"), wait_for(&rig, "go")]),
        rule("Letter 1", vec![request_next_turn(), large(), text("More to do.")]),
        rule("", vec![usage(10), text("Done.")]),
    ];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    operator.send("bob", "Letter 1.").await;
    rig.appeared("reached").await;
    let second = operator.send("bob", "Letter 2.").await;
    rig.touch("go");
    acked(&rig, "bob", second).await;
    operator.does("bob", HarnessState::Idle).await;
    use TurnKind::{Checkpoint, Compact, Mail};
    assert_eq!(kinds(&operator).await, [Mail, Checkpoint, Compact, Mail]);
    rig.end().await;
}
