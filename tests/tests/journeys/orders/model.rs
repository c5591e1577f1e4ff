//! `hivectl turn model --wait`: the agent's own setting, from the next turn on, within what its
//! configuration allows.

use hive_tests::rig::{Mode, QUICK_LIMITS, Rig};

use super::{done, waited};
use crate::steps::{handled, rule, text};

both!(it_holds_from_the_next_turn_on_and_over_restarts, only_available_models);

async fn models(rig: &Rig) -> Vec<String> {
    rig.operator().await.turns("bob").await.into_iter().map(|turn| turn.model).collect()
}

async fn asks(rig: &Rig) {
    handled(rig, &rig.operator().await, "bob", "Who are you?").await;
}

async fn it_holds_from_the_next_turn_on_and_over_restarts(mode: Mode) {
    let mut rig = Rig::duo().await;
    let rules = [rule("", vec![text("Done.")])];
    mode.start(&mut rig, &rules);
    asks(&rig).await;
    done(&rig, &["model", "bob", "opus"]).await;
    asks(&rig).await;
    rig.stop_harness("bob").await;
    mode.start(&mut rig, &rules);
    asks(&rig).await;
    rig.kill_harness("bob").await;
    rig.crash_broker().await;
    mode.start(&mut rig, &rules);
    asks(&rig).await;
    assert_eq!(
        models(&rig).await,
        ["claude-haiku-5-5", "claude-opus-5-5", "claude-opus-5-5", "claude-opus-5-5"]
    );
    assert_eq!(rig.operator().await.get_agent("bob").await.model, "opus");
    assert_eq!(rig.conversations("bob"), [4], "another model goes on with the same conversation");
    rig.end().await;
}

async fn only_available_models(mode: Mode) {
    let bob = "[agents.bob]\nparent = \"ada\"\navailable_models = [\"haiku\", \"opus\"]\n";
    let mut rig = Rig::new(&format!("[hive]\nname = \"test\"\n[agents.ada]\n{bob}{QUICK_LIMITS}"));
    rig.start_broker().await;
    mode.start(&mut rig, &[rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    assert_eq!(operator.get_agent("bob").await.available_models, ["haiku", "opus"]);
    let said = waited(&rig, &["model", "bob", "sonnet"]).await;
    assert!(
        said.code != 0
            && said.stderr.contains("FIELD_INVALID")
            && said.stderr.contains("haiku, opus"),
        "{said:?}"
    );
    asks(&rig).await;
    done(&rig, &["model", "bob", "opus"]).await;
    asks(&rig).await;
    assert_eq!(models(&rig).await, ["claude-haiku-5-5", "claude-opus-5-5"]);
    rig.end().await;
}
