//! Settings that have an effect: of the file and of the harness's own environment, down to claude
//! and to what the operator sees.

use std::path::Path;

use hive_proto::v1::{HarnessState, Turn, TurnKind};
use hive_tests::rig::{Client, Mode, Rig};
use hive_tests::scripted::script;
use serde_json::Value;

use crate::steps::{acked, handled, large, rule, text, touch, usage, wait_for};
use crate::up::Up;

both!(
    a_window_that_is_set_holds_where_it_is_smaller,
    a_variable_narrows_the_tool_groups_and_none_reaches_claude,
    a_daily_reset_comes_with_the_next_mail_and_starts_no_turn
);

async fn kinds(operator: &Client) -> Vec<TurnKind> {
    operator.turns("bob").await.iter().map(Turn::kind).collect()
}

/// The scripted claude reports a window of a million tokens.
async fn a_window_that_is_set_holds_where_it_is_smaller(mode: Mode) {
    let mut rig = Rig::duo().await;
    let rules = [
        rule("/compact", vec![]),
        rule("Letter 2", vec![usage(8_000), text("Done.")]),
        rule("", vec![usage(10), text("Done.")]),
    ];
    mode.start_with(
        &mut rig,
        &rules,
        &[("HIVE_CONTEXT_WINDOW_TOKENS_HAIKU", "10000"), ("HIVE_CONTEXT_WINDOW_TOKENS", "20000")],
    );
    let operator = rig.operator().await;
    for (letter, wanted) in [
        ("Letter 1.", &[TurnKind::Mail][..]),
        ("Letter 2.", &[TurnKind::Mail, TurnKind::Mail, TurnKind::Checkpoint, TurnKind::Compact]),
    ] {
        handled(&rig, &operator, "bob", letter).await;
        let agent = operator.does("bob", HarnessState::Idle).await;
        assert_eq!(kinds(&operator).await, wanted, "{letter}");
        assert_eq!(agent.context_window_tokens, 10_000);
    }
    rig.end().await;
}

async fn a_variable_narrows_the_tool_groups_and_none_reaches_claude(mode: Mode) {
    let mut rig = Rig::duo().await;
    let rules = [rule("", vec![touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")])];
    mode.start_with(
        &mut rig,
        &rules,
        &[("HIVE_TOOL_GROUPS", "messaging,web_tools"), ("HIVE_TURN_MAX_SECS", "600")],
    );
    let operator = rig.operator().await;
    let message = operator.send("bob", "What do you have?").await;
    rig.appeared("reached").await;
    let claude = rig.the_one("bob", "scripted-claude");
    let environment =
        std::fs::read(format!("/proc/{}/environ", claude.as_raw_nonzero())).expect("it runs");
    let environment = String::from_utf8_lossy(&environment).replace('\0', "\n");
    assert!(
        environment.contains("SCRIPTED_CLAUDE_FILE=") && !environment.contains("HIVE_"),
        "{environment}"
    );
    rig.touch("go");
    acked(&rig, "bob", message).await;
    let config: Value =
        serde_json::from_str(&rig.read("agents/bob/home/.hive/claude-mcp-config.json"))
            .expect("JSON");
    assert_eq!(config["mcpServers"]["hive"]["env"]["HIVE_TOOL_GROUPS"], "messaging");
    assert!(config["mcpServers"]["bash"].is_null(), "{config}");
    assert!(
        rig.turn_starts("bob").iter().all(|start| !start.contains("WebFetch")),
        "{:?}",
        rig.turn_starts("bob")
    );
    rig.end().await;
}

/// A zone in which this moment is four o'clock.
fn zone_where_it_is_four(seconds: i64) -> String {
    // The sign of such a zone is that of what has to be added to get UTC.
    let behind = (seconds - 4 * 3600).rem_euclid(24 * 3600);
    format!("TST{}:{:02}:{:02}", behind / 3600, behind / 60 % 60, behind % 60)
}

async fn a_daily_reset_comes_with_the_next_mail_and_starts_no_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let rules = [rule("", vec![usage(10), text("Done.")])];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    let measured =
        operator.does("bob", HarnessState::Idle).await.context_time.expect("it was measured");
    rig.stop_harness("bob").await;
    let zone = zone_where_it_is_four(measured.seconds);
    mode.start_with(&mut rig, &rules, &[("TZ", &zone), ("HIVE_RESET_DAILY_AT", "04:00")]);
    operator.does("bob", HarnessState::Idle).await;
    assert_eq!(kinds(&operator).await.len(), 1, "an agent without mail is left alone");
    for letter in ["Letter 2.", "Letter 3."] {
        handled(&rig, &operator, "bob", letter).await;
        operator.does("bob", HarnessState::Idle).await;
    }
    assert_eq!(rig.conversations("bob"), [1, 2]);
    assert!(
        rig.prompts("bob")[1].contains("A new conversation starts here"),
        "{:?}",
        rig.prompts("bob")
    );
    rig.end().await;
}

/// `hive.toml`, `hivectl up`, the harness: a key of the agent overrides that of `[claude]`,
/// which applies to the others.
#[tokio::test]
async fn the_settings_of_the_file_reach_the_harness() {
    let rig = crate::up::hive();
    let script = rig.path("script.json");
    script::write(&script, &[rule("/compact", vec![]), rule("", vec![large(), text("Done.")])])
        .expect("the script is written");
    let config = rig.read("hive.toml").replace(
        "[agents.bob]\n",
        "[agents.bob]\ncontext_window_tokens = 300_000\nauto_compact = false\n",
    );
    let claude = format!(
        "[claude]\ncontext_windows = {{ haiku = 50_000 }}\nenv = {{ SCRIPTED_CLAUDE_FILE = \"{}\" }}\n",
        script.display()
    );
    rig.configure(&format!("{config}{claude}"));
    let up = Up::start(&rig, Path::new("/usr/bin:/bin")).await;
    let operator = rig.operator().await;
    for (agent, window, turns) in [("bob", 300_000, 1), ("ada", 50_000, 3)] {
        handled(&rig, &operator, agent, "Hello.").await;
        let shown = operator.does(agent, HarnessState::Idle).await;
        assert_eq!(shown.context_window_tokens, window, "{agent}");
        assert_eq!(operator.turns(agent).await.len(), turns, "{agent}");
    }
    up.interrupted(rig).await;
}
