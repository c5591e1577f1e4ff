//! Changes between turns apply to the next one, in the same conversation: model, prompt, tools,
//! CLAUDE.md. A resident claude is replaced for them, and for nothing else.

use hive_proto::v1::event::Facts;
use hive_proto::v1::{AgentChange, SetParentRequest};
use hive_tests::api::{Recorded, Script};
use hive_tests::rig::{Mode, fresh_id, gone};
use rustix::process::{Pid, Signal};

use crate::stage::{Stage, count};

both!(
    changes_take_effect_at_the_next_turn_of_the_same_conversation,
    files_and_orders_take_effect_at_the_next_turn,
);

/// The resident claude at the last check.
struct Stays {
    mode: Mode,
    pid: Option<Pid>,
}

impl Stays {
    fn new(mode: Mode) -> Self {
        Self { mode, pid: None }
    }

    /// After a turn: the same claude is there, or another one where it had to be; in a hive with a
    /// process a turn, none.
    async fn check_process(&mut self, stage: &Stage, is_another: bool) {
        if self.mode == Mode::PerTurn {
            assert_eq!(stage.rig.running("ada", "claude"), []);
            return;
        }
        let now = stage.rig.the_one("ada", "claude");
        if let Some(before) = self.pid.replace(now) {
            assert_eq!(before != now, is_another, "{before:?}, {now:?}");
            if is_another {
                gone(before).await;
            }
        }
        assert_eq!(stage.rig.running("ada", "hive-mcp").len(), 2, "its servers stay with it");
    }
}

/// A turn about a message; what the model was asked.
async fn turn(stage: &mut Stage, body: &str) -> Recorded {
    let message = stage.send(body).await;
    assert_eq!(stage.ok().await.message_id, message);
    stage.last_request_of(message)
}

async fn changes_take_effect_at_the_next_turn_of_the_same_conversation(mode: Mode) {
    let mut stage = Stage::in_mode(mode, Script::new()).await;
    let mut stays = Stays::new(mode);
    stage.start();
    let before = turn(&mut stage, "the first").await;
    let (children, parent) =
        ("- Your children, each with its role:\n  - `bob`\n", "- Your parent: `bob`.");
    assert!(
        before.system().contains(children) && !before.system().contains(parent),
        "{}",
        before.system()
    );
    assert_eq!(before.body["model"], "claude-haiku-5-5");
    stays.check_process(&stage, false).await;
    let same = turn(&mut stage, "the second").await;
    assert_eq!(same.system(), before.system());
    stays.check_process(&stage, false).await;

    // Bob becomes the parent; the file takes tools away and names a role; the model is another.
    let set = |name: &str, parent: &str| SetParentRequest {
        request_id: fresh_id(),
        name: name.to_owned(),
        parent: parent.to_owned(),
        ..SetParentRequest::default()
    };
    stage.operator.admin().set_parent(set("bob", "")).await.expect("bob is a root");
    stage.operator.admin().set_parent(set("ada", "bob")).await.expect("ada is his child");
    let config = "[agents.ada]\nrole = \"keeps the bees\"\nmodel = \"sonnet\"\ntool_groups = [\"messaging\", \"execution\"]\n[agents.bob]\nparent = \"ada\"\n";
    stage.rig.configure(config);
    stage.rig.broker().signal(Signal::HUP);
    stage
        .watch
        .until("the file was applied", |event| {
            matches!(event.facts, Some(Facts::AgentChanged(facts)) if facts.change() == AgentChange::File)
        })
        .await;

    let after = turn(&mut stage, "the third").await;
    stays.check_process(&stage, true).await;
    assert_eq!(after.body["model"], "claude-sonnet-5-5");
    assert!(
        after.system().contains(parent) && after.system().contains("keeps the bees"),
        "{}",
        after.system()
    );
    assert!(!after.system().contains(children), "{}", after.system());
    let tools = after.tools();
    assert!(
        tools.contains(&"mcp__hive__recv") && !tools.contains(&"mcp__hive__get_agent_meta"),
        "{tools:?}"
    );
    // It is the same conversation: the first turn is in it, once.
    assert_eq!(count(&after, "| the first\n"), 1);
    stage.end().await;
}

async fn files_and_orders_take_effect_at_the_next_turn(mode: Mode) {
    let mut stage = Stage::in_mode(mode, Script::new()).await;
    let mut stays = Stays::new(mode);
    let prompt = stage.rig.path("prompt.md");
    std::fs::write(&prompt, "You count sheep.\n").expect("a file");
    stage.set_env("HIVE_SYSTEM_PROMPT", &prompt.display().to_string());
    stage.start();
    let first = turn(&mut stage, "the first").await;
    assert!(first.system().contains("You count sheep."), "{}", first.system());
    stays.check_process(&stage, false).await;

    std::fs::write(&prompt, "You count goats.\n").expect("a file");
    let request = turn(&mut stage, "the second").await;
    assert!(
        request.system().contains("You count goats.") && !request.system().contains("sheep"),
        "{}",
        request.system()
    );
    stays.check_process(&stage, true).await;

    let memory = stage.state().join("CLAUDE.md");
    let text = std::fs::read_to_string(&memory).expect("a file");
    std::fs::write(&memory, format!("{text}The word of tomorrow is nougat.\n")).expect("a file");
    let request = turn(&mut stage, "the third").await;
    assert!(request.mentions("The word of tomorrow is nougat."), "{:#}", request.body["messages"]);
    stays.check_process(&stage, true).await;

    stage.order(&["model", "ada", "sonnet"]).await;
    let request = turn(&mut stage, "the fourth").await;
    assert_eq!(request.body["model"], "claude-sonnet-5-5");
    stays.check_process(&stage, true).await;
    // All messages are in one conversation.
    for body in ["| the first\n", "| the second\n", "| the third\n"] {
        assert_eq!(count(&request, body), 1, "{:#}", request.body["messages"]);
    }

    // The turn that starts with the new session carries out the order. A harness that carried out
    // the following order has received this one.
    let ordered = stage.rig.hivectl(&["turn", "new-session", "ada"]).await;
    assert_eq!(ordered.code, 0, "{ordered:?}");
    stage.order(&["model", "ada", "sonnet"]).await;
    let request = turn(&mut stage, "the fifth").await;
    assert!(!request.mentions("| the fourth\n"), "{:#}", request.body["messages"]);
    stays.check_process(&stage, true).await;
    if mode == Mode::Resident {
        let request = turn(&mut stage, "the sixth").await;
        assert_eq!(count(&request, "| the fifth\n"), 1);
        stays.check_process(&stage, false).await;
    }
    stage.end().await;
}
