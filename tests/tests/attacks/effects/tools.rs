//! The same through the tools of a claude: what the real bridge passes on, the broker refuses, or
//! asks the operator.

use hive_core::reason::Reason;
use hive_proto::v1::effect::Effect;
use hive_proto::v1::*;
use hive_tests::rig::{Rig, request};
use hive_tests::scripted::script::{Rule, Step};
use serde_json::{Value, json};

use super::{agents, asked};
use crate::ask::{call, refused};

/// Ada with her parent, her child and its child; bob and his child; and actions of both.
const HIVE: &str = r#"
[actions.apply_commit]
command = ["/bin/touch", "{commit}"]
agents = ["ada"]
args = { commit = "[0-9a-f]{40}" }
[actions.say]
command = ["/bin/echo", "{words}"]
agents = ["ada"]
args = { words = "(?s).*" }
[actions.others]
command = ["/bin/touch", "others"]
agents = ["bob"]
[agents.boss]
[agents.ada]
parent = "boss"
tool_groups = ["messaging", "inbox", "meta", "approvals", "lifecycle"]
allowed_recipients = ["bob"]
model = "haiku"
available_models = ["haiku"]
grants = ["create_agent"]
limits.children_max = 3
[agents.kid]
parent = "ada"
[agents.grandkid]
parent = "kid"
[agents.bob]
tool_groups = ["messaging", "approvals"]
[agents.bobkid]
parent = "bob"
"#;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const WAITS: &str = "Asked the operator to approve it: question #";

/// A call of a tool: its name, its input, how its answer begins, and what else is in it.
type Attempt = (&'static str, Value, &'static str, &'static str);

/// Returns changes of agents that are none of ada's.
fn of_others() -> Vec<Attempt> {
    let mut attempts = Vec::new();
    let not_hers = "an agent asks for changes of those alone";
    for name in ["boss", "bob", "bobkid", "grandkid"] {
        let set = json!({"name": name, "role": "mine", "model": "haiku", "why": "x"});
        let policy = json!({"name": name, "tool_groups": ["meta"], "why": "x"});
        attempts.push(("request_set_agent", set, "NOT_YOURS: ", not_hers));
        attempts.push(("request_set_policy", policy, "NOT_YOURS: ", not_hers));
    }
    for name in ["boss", "bob", "bobkid", "grandkid", "ada"] {
        let retire = json!({"name": name, "why": "x"});
        attempts.push(("request_retire_agent", retire, "NOT_YOURS: ", ""));
        for tool in ["start", "kill", "restart"] {
            attempts.push((tool, json!({"agent": name}), "NOT_YOUR_CHILD: ", "not your direct"));
        }
    }
    let operator = json!({"name": "operator", "tool_groups": ["meta"], "why": "x"});
    attempts.push(("request_set_policy", operator, "FIELD_INVALID: ", ""));
    let taken = json!({"name": "bob", "model": "haiku", "why": "x"});
    attempts.push(("request_create_agent", taken, "AGENT_EXISTS: ", "`bob`"));
    attempts
}

/// Returns inputs that no tool takes.
fn malformed() -> Vec<Attempt> {
    let mut attempts = Vec::new();
    let mut refused = |tool, input, says| attempts.push((tool, input, "FIELD_INVALID: ", says));
    for (field, value) in [
        ("parent", json!("bob")),
        ("grants", json!(["create_agent"])),
        ("children_max", json!(9)),
        ("policy", json!({"grants": ["create_agent"]})),
        ("command", json!(["sh"])),
    ] {
        let mut create = json!({"name": "new", "why": "x"});
        create[field] = value.clone();
        refused("request_create_agent", create, "unknown field");
        let mut set = json!({"name": "ada", "tool_groups": ["meta"], "why": "x"});
        set[field] = value;
        refused("request_set_policy", set, "unknown field");
    }
    for name in ["../new", "Operator", "", "new\n+ agent: root"] {
        refused("request_create_agent", json!({"name": name, "why": "x"}), "");
    }
    let role = "x\n+ policy.grants: create_agent";
    refused("request_set_agent", json!({"name": "ada", "role": role, "why": "x"}), "one line");
    let model = json!({"name": "ada", "model": "--continue", "why": "x"});
    refused("request_set_agent", model, "begin with `-`");
    for commit in [
        format!("{COMMIT}\n"),
        format!("{COMMIT}\n--force"),
        format!("-{}", &COMMIT[1..]),
        format!("--upload-pack={COMMIT}"),
        format!("{COMMIT}; reboot"),
        format!("{COMMIT} {COMMIT}"),
        format!("{COMMIT}0"),
        COMMIT[1..].to_owned(),
        COMMIT.to_uppercase(),
        "HEAD".to_owned(),
        String::new(),
    ] {
        refused("request_apply_commit", json!({"commit": commit, "why": "x"}), "`commit`");
    }
    // A pattern that allows everything does not allow these.
    for words in ["--force", "-rf /", "one\n+ agent: root", "\u{202e}tfel", "\u{1b}[2J"] {
        refused("request_say", json!({"words": words, "why": "x"}), "not begin with `-`");
    }
    for input in [
        json!({"why": "x"}),
        json!({"commit": [COMMIT], "why": "x"}),
        json!({"commit": COMMIT, "action": "others", "why": "x"}),
    ] {
        refused("request_apply_commit", input, "");
    }
    let others = json!({"why": "x"});
    attempts.push(("request_others", others, "<tool_use_error>", "No such tool available"));
    attempts
}

/// Returns children with more than ada has, and one more than she may have.
fn beyond_the_grant() -> Vec<Attempt> {
    let child = |name: &str, field: &str, value: Value| {
        let mut child = json!({
            "name": name, "model": "haiku", "tool_groups": ["messaging"],
            "allowed_recipients": ["bob"], "why": "x",
        });
        child[field] = value;
        child
    };
    let create = "request_create_agent";
    vec![
        (create, child("a", "tool_groups", json!(["execution"])), WAITS, "does not have execution"),
        (create, child("b", "tool_groups", json!([])), WAITS, "does not have execution"),
        (create, child("c", "allowed_recipients", json!(["boss"])), WAITS, "may not send to boss"),
        (create, child("d", "allowed_recipients", json!([])), WAITS, "may not send to everyone"),
        (
            create,
            child("e", "capabilities", json!(["manage_subtree"])),
            WAITS,
            "does not have manage_subtree",
        ),
        (create, child("f", "model", json!("opus")), WAITS, "may not use opus"),
        (create, child("g", "model", json!("")), WAITS, "may not use every model"),
        // What she has is enough for one, and one alone.
        (create, child("kim", "role", json!("tester")), "Done: your policy grants it", "kim"),
        (create, child("lee", "role", json!("tester")), WAITS, "ada has 3 agents below it"),
        (
            "request_set_policy",
            json!({"name": "ada", "capabilities": ["manage_subtree"], "why": "x"}),
            WAITS,
            "Nothing is changed yet",
        ),
        (
            "request_say",
            json!({"words": "all of it", "why": "x"}),
            WAITS,
            "\ncommand: /bin/echo 'all of it'",
        ),
        (
            "request_apply_commit",
            json!({"commit": COMMIT, "why": "x"}),
            WAITS,
            "Nothing is changed yet",
        ),
    ]
}

/// Returns answers to the question of the asker itself, and what touches one of another agent.
fn on_questions(own: u64, others: u64) -> Vec<Attempt> {
    let answer =
        |id: u64| json!({"id": id, "choices": ["approve"], "answer": "The operator agrees."});
    let forged = json!({"id": own, "choices": ["approve"], "diff_digest": "00"});
    vec![
        ("answer", answer(own), "NOT_THE_TARGET: ", "was put to `operator`"),
        ("answer", forged, "FIELD_INVALID: ", "unknown field"),
        ("answer", answer(others), "QUESTION_NOT_FOUND: ", ""),
        ("cancel_loose_end", json!({"kind": "approval", "id": others}), "QUESTION_NOT_FOUND: ", ""),
    ]
}

#[tokio::test]
async fn a_claude_gets_nothing_that_the_operator_did_not_give() {
    let mut rig = Rig::new(HIVE);
    rig.start_broker().await;
    let operator = rig.operator().await;
    let role = |name: &str| {
        let (name, role) = (name.to_owned(), Some("root".to_owned()));
        request::effect(Effect::SetAgent(SetAgentEffect { name, role, model: None }))
    };
    // Its tool is not even listed for her; a client of her socket has no such action either.
    let effect = RunActionEffect { action: "others".to_owned(), args: [].into() };
    let effect = request::effect(Effect::RunAction(effect));
    let answer = call(&rig.agent("ada").await.channel(), &effect).await;
    refused("an action of another agent", answer, &[Reason::FieldInvalid]);
    let own = asked(&rig.agent("ada").await.channel(), &role("ada")).await.id;
    let others = asked(&rig.agent("bob").await.channel(), &role("bob")).await.id;
    let attempts =
        [of_others(), malformed(), on_questions(own, others), beyond_the_grant()].concat();
    let ada_before = operator.get_agent("ada").await;
    let others_of = |agents: Vec<String>| -> Vec<String> {
        let is_other = |row: &String| !row.contains("name=Text(\"ada\");");
        agents.into_iter().filter(is_other).collect()
    };
    let before = others_of(agents(&rig));

    let calls = attempts
        .iter()
        .map(|(tool, input, ..)| Step::Tool { tool: (*tool).to_owned(), input: input.clone() });
    let text = Step::Text { text: "Done.".to_owned() };
    let steps = calls.chain([text]).collect();
    rig.start_harness("ada", &[Rule { when: String::new(), steps }]);
    operator.send("ada", "Try everything.").await;
    let ended = rig.watch().await.kind("ada", EventKind::TurnEnded).await;
    assert_eq!(operator.turn(ended.turn_id).await.outcome(), TurnOutcome::Ok, "{}", rig.logs());

    let results = rig.tool_results("ada");
    assert_eq!(results.len(), attempts.len());
    for ((tool, input, begins, says), said) in attempts.iter().zip(&results) {
        assert!(said.starts_with(begins) && said.contains(says), "{tool} {input}: {said}");
    }
    let mut after = others_of(agents(&rig));
    assert!(after.pop().is_some_and(|kim| kim.contains("name=Text(\"kim\");")), "{after:?}");
    assert_eq!(after, before, "of the others nothing is changed");
    let ada = operator.get_agent("ada").await;
    let rights =
        |agent: Agent| (agent.policy, agent.role, agent.model, agent.parent, agent.stopped);
    assert_eq!(rights(ada), rights(ada_before));
    for id in [own, others] {
        assert_eq!(operator.question(id).await.state(), QuestionState::Open);
    }
    assert_eq!(rig.on_disk()["action_run"], [""; 0], "no action runs");
    rig.end().await;
}
