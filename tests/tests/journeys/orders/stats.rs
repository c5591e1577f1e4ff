//! `hivectl stats`: its numbers are those of the turns that were just run.

use hive_proto::v1::{TurnKind, TurnOutcome, TurnUsage};
use hive_tests::rig::{Mode, Rig};
use serde_json::{Value, json};

use super::done;
use crate::steps::{acked, answer, exit, handled, recv, rule, text};

both!(its_numbers_agree_with_the_turns);

async fn read(rig: &Rig, args: &[&str]) -> Value {
    let said = rig.hivectl(&[&["--json", "stats"], args].concat()).await;
    assert_eq!(said.code, 0, "{said:?}");
    serde_json::from_str(&said.stdout).expect("JSON")
}

async fn its_numbers_agree_with_the_turns(mode: Mode) {
    let mut rig = Rig::duo().await;
    let works = vec![answer("operator", "one"), recv(1), answer("operator", "two"), text("Done.")];
    let rules = [
        rule("This is attempt", vec![text("Done.")]),
        rule("Fail", vec![exit(1)]),
        rule("", works),
    ];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    for body in ["Letter 1.", "Fail.", "Letter 2."] {
        handled(&rig, &operator, "bob", body).await;
    }
    let woken = rig.wake("bob", &["--from", "ci", "--body", "Letter 3."], "").await;
    acked(&rig, "bob", woken.stdout.trim().parse().expect("an id")).await;
    done(&rig, &["compact", "bob"]).await;

    let turns = operator.turns("bob").await;
    let count = |fits: &dyn Fn(&hive_proto::v1::Turn) -> bool| {
        turns.iter().filter(|turn| fits(turn)).count()
    };
    let stats = read(&rig, &["bob"]).await;
    let total = &stats["total"];
    assert_eq!(total["turn_count"], turns.len());
    assert_eq!(turns.len(), 6);
    let sorted = |list: &Value| {
        let mut list = list.as_array().cloned().unwrap_or_default();
        list.sort_by_key(Value::to_string);
        list
    };
    let mail = count(&|turn| turn.kind() == TurnKind::Mail);
    assert_eq!(
        sorted(&total["kinds"]),
        [json!({"kind": "compact", "count": 1}), json!({"kind": "mail", "count": mail})]
    );
    let ok = count(&|turn| turn.outcome() == TurnOutcome::Ok);
    assert_eq!((ok, mail), (5, 5));
    assert_eq!(
        sorted(&total["outcomes"]),
        [json!({"outcome": "failed", "count": 1}), json!({"outcome": "ok", "count": ok})]
    );
    let sum = |field: fn(&TurnUsage) -> u64| -> u64 {
        turns.iter().filter_map(|turn| turn.usage.as_ref()).map(field).sum()
    };
    let usage = &total["usage"];
    assert_eq!(usage["input_tokens"], sum(|usage| usage.input_tokens));
    assert_eq!(usage["cache_read_tokens"], sum(|usage| usage.cache_read_tokens));
    assert_eq!(usage["cache_creation_tokens"], sum(|usage| usage.cache_creation_tokens));
    assert_eq!(usage["output_tokens"], sum(|usage| usage.output_tokens));
    assert_eq!(usage["cost_micro_usd"], sum(|usage| usage.cost_micro_usd));
    assert_eq!(usage["inference_count"], sum(|usage| u64::from(usage.inference_count)));
    // Each of the scripted inferences costs a thousandth of a dollar: four in each of three works,
    // one in the second attempt, and the compaction.
    assert_eq!(usage["cost_micro_usd"], 14_000, "{turns:#?}");
    assert_eq!(total["compaction_count"], 1);
    let tools =
        json!([{"name": "mcp__hive__send", "count": 6}, {"name": "mcp__hive__recv", "count": 3}]);
    assert_eq!(total["tools"], tools);
    assert_eq!(usage["tool_call_count"], 9);
    let wakes = sorted(&total["wakes"]);
    let wake = |kind: Value, detail: Value, count: u64| json!({"origin_kind": kind, "detail": detail, "count": count});
    let expected = [
        wake(json!("operator"), json!(null), 4),
        wake(json!("external"), json!("ci"), 1),
        wake(json!(null), json!("compact"), 1),
    ];
    assert_eq!(wakes, sorted(&json!(expected)));
    // The sum over all agents is the same, for no other agent did anything.
    let all = read(&rig, &[]).await;
    assert_eq!(all["total"]["turn_count"], turns.len());
    assert_eq!(all["agents"].as_array().map(Vec::len), Some(1));
    assert_eq!(all["agents"][0]["agent"], "bob");
    assert_eq!(all["agents"][0]["stats"]["usage"], *usage);
    rig.end().await;
}
