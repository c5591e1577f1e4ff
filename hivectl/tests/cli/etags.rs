//! Changes that depend on what was read before: a change of another operator in between is not
//! lost.

use serde_json::Value;

use super::hive::Hive;
use super::run::{assert_contains, assert_ends, ended};
use super::terminal::Terminal;

const HIVE: &str = "[agents.ada]\n[agents.bob]\n[agents.cyd]";

/// Returns what `agent show --json` prints.
async fn shown(hive: &Hive, agent: &str) -> Value {
    let ran = hive.run(&["agent", "show", agent, "--json"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_concurrent_change_of_a_policy_is_not_lost() {
    let hive = Hive::new(HIVE);
    let read = text(&shown(&hive, "ada").await["policy"]["etag"]);
    hive.operate(&["agent", "set-policy", "ada", "--allow", "bob"]).await;

    let ran = hive.run(&["agent", "set-policy", "ada", "--allow", "cyd", "--etag", &read]).await;
    assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{}", ran.err);
    let policy = shown(&hive, "ada").await["policy"].clone();
    let present = text(&policy["etag"]);
    assert_contains(
        &ran.err,
        &format!("the policy of agent `ada` has changed: its etag is `{present}`, not `{read}`"),
    );
    assert_contains(&ran.err, "reason: ETAG_MISMATCH\n");
    assert_ends(
        &ran.err,
        "hint: `hivectl agent show NAME --json` shows it as it is now, with its etags\n",
    );
    assert_eq!(policy["allowed_recipients"], serde_json::json!(["bob"]));

    // Read again, and repeated with what both want.
    let args = ["agent", "set-policy", "ada", "--allow", "bob", "--allow", "cyd", "--json"];
    let ran = hive.run(&[&args[..], &["--etag", &present]].concat()).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    let policy = &shown(&hive, "ada").await["policy"];
    assert_eq!(policy["allowed_recipients"], serde_json::json!(["bob", "cyd"]));
    assert_eq!(&answer["policy"]["etag"], &policy["etag"], "the answer has the new one");
    assert_ne!(policy["etag"], present.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_and_a_retirement_depend_on_the_etag_of_the_agent() {
    let hive = Hive::new(HIVE);
    let read = text(&shown(&hive, "ada").await["etag"]);
    hive.operate(&["agent", "stop", "ada"]).await;
    for args in [
        &["agent", "set-parent", "ada", "bob"][..],
        &["agent", "retire", "ada"],
        &["agent", "retire", "ada", "--purge", "--yes"],
    ] {
        let ran = hive.run(&[args, &["--etag", &read]].concat()).await;
        assert_eq!(ran.code, 5, "{args:?}: {}", ran.err);
        assert_contains(&ran.err, "reason: ETAG_MISMATCH\n");
    }
    let ada = shown(&hive, "ada").await;
    assert_eq!((&ada["parent"], &ada["retired"]), (&Value::Null, &Value::Bool(false)));
    let present = text(&ada["etag"]);
    for args in [&["agent", "set-parent", "ada", "bob"][..], &["agent", "retire", "ada"]] {
        let stale = hive.run(&[args, &["--etag", &read]].concat()).await;
        assert_eq!(stale.code, 5, "{args:?}: {}", stale.err);
        let etag = text(&shown(&hive, "ada").await["etag"]);
        let ran = hive.run(&[args, &["--etag", &etag]].concat()).await;
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    }
    assert_ne!(shown(&hive, "ada").await["etag"], present.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_purge_is_one_of_the_agent_that_was_there_when_the_question_was_asked() {
    let hive = Hive::new(HIVE);
    for (meanwhile, code) in [(&["agent", "stop", "ada"][..], 5), (&["agents"], 0)] {
        let mut terminal = Terminal::open();
        let mut command = hive.hivectl(&["agent", "retire", "ada", "--purge"]);
        let child = command.stdin(terminal.side()).stderr(terminal.side());
        let child = child.spawn().expect("the binary runs");
        drop(command);
        terminal.until("(y/n) ");
        hive.operate(meanwhile).await;
        terminal.types("y\n");
        let ran = ended(child).await;
        let shown = terminal.shown();
        assert_eq!(ran.code, code, "{shown}");
        assert_eq!(shown.contains("reason: ETAG_MISMATCH"), code == 5, "{shown}");
        let there = hive.run(&["agent", "show", "ada"]).await.code == 0;
        assert_eq!(there, code == 5, "{shown}");
    }
}
