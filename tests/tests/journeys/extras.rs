//! Plugins that cannot be installed, and an agent's own MCP servers: neither ends a turn, and
//! neither gets what is not its own.

use std::os::unix::fs::PermissionsExt as _;

use hive_proto::v1::{EventKind, HarnessState, SystemKind, TurnOutcome};
use hive_tests::rig::{Mode, Rig};
use hive_tests::scripted::script;
use serde_json::{Value, json};

use crate::steps::{handled, lives, rule, text, tool};
use crate::up::Up;

both!(
    plugins_that_fail_are_told_to_the_parent_and_turns_run,
    a_server_that_does_not_come_up_is_told_to_the_parent
);

async fn plugins_that_fail_are_told_to_the_parent_and_turns_run(mode: Mode) {
    let mut rig = Rig::duo().await;
    let plugins = [
        ("HIVE_PLUGINS", r#"["hello@nosuch"]"#),
        ("HIVE_MARKETPLACES", r#"["/no/such/directory","some/market"]"#),
    ];
    let rules = [rule("", vec![text("Done.")])];
    mode.start_with(&mut rig, &rules, &plugins);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    watch.kind("ada", EventKind::MessageAccepted).await;
    let told = operator.notices("ada", SystemKind::Problem).await;
    assert_eq!(told.len(), 1, "{told:?}");
    for words in ["bob", "plugins", "/no/such/directory", "hello@nosuch", "works without them"] {
        assert!(told[0].body.contains(words), "{words}: {}", told[0].body);
    }
    assert!(!told[0].body.contains("some/market"), "a success is not reported: {}", told[0].body);
    handled(&rig, &operator, "bob", "Are you there?").await;
    // The next start finds the same cause, which is reported once.
    rig.stop_harness("bob").await;
    mode.start_with(&mut rig, &rules, &plugins);
    handled(&rig, &operator, "bob", "And now?").await;
    let still = operator.notices("ada", SystemKind::Problem).await;
    assert_eq!((still.len(), still[0].id), (1, told[0].id));
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1); 2]);
    let installs = rig.starts("bob").iter().filter(|line| line.contains("plugin install")).count();
    assert_eq!(installs, 2, "once a start, not once a turn");
    rig.end().await;
}

async fn a_server_that_does_not_come_up_is_told_to_the_parent(mode: Mode) {
    let mut rig = Rig::duo().await;
    let extra = json!({"notes": {"command": "/no/such/program", "args": [], "env": {}, "allowedTools": ["*"]}});
    std::fs::write(rig.path("extra.json"), extra.to_string()).expect("a file");
    std::fs::set_permissions(rig.path("extra.json"), std::fs::Permissions::from_mode(0o600))
        .expect("its mode");
    let file = rig.path("extra.json").display().to_string();
    mode.start_with(&mut rig, &[rule("", vec![text("Done.")])], &[("HIVE_EXTRA_MCP", &file)]);
    let operator = rig.operator().await;
    for body in ["Letter 1.", "Letter 2."] {
        handled(&rig, &operator, "bob", body).await;
    }
    operator.does("bob", HarnessState::Idle).await;
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1); 2]);
    let told = operator.notices("ada", SystemKind::Problem).await;
    assert_eq!(told.len(), 1, "once, and not at each turn: {told:?}");
    assert!(
        told[0].body.contains("mcp:notes")
            && told[0].body.contains("turns go on without its tools"),
        "{}",
        told[0].body
    );
    rig.end().await;
}

/// `hive.toml`, `hivectl up`, the harness, claude, `hive scrub`, the harness again, the server:
/// what is configured arrives, also what is kept in files, and no key does that is not its own.
#[tokio::test]
async fn a_configured_server_arrives_with_its_own_environment_alone() {
    let rig = crate::up::hive();
    let server = rig.path("bin/env-mcp");
    let script = rig.path("script.json");
    script::write(&script, &[rule("", vec![tool("environment", json!({})), text("Done.")])])
        .expect("the script is written");
    let notes = format!(
        "[agents.bob.extra_mcp_servers.notes]\ncommand = \"{}\"\nargs = [\"--quiet\"]\n\
         env = {{ NOTES_KEY = {{ file = \"notes-key\" }}, OTHER = {{ credential = \"other\" }} }}\n\
         allowed_tools = [\"environment\"]\n[claude]\nenv = {{ SCRIPTED_CLAUDE_FILE = \"{}\", ANTHROPIC_API_KEY = \"secret-key\" }}\n",
        server.display(),
        script.display()
    );
    rig.configure(&format!("{}{notes}", rig.read("hive.toml")));
    let programs = rig.path("no-programs");
    std::fs::create_dir(&programs).expect("a directory");
    rig.user_dir("credentials");
    rig.user_file("notes-key", "its own\n", 0o600);
    rig.user_file("credentials/other", "a credential\n", 0o400);
    let up = Up::start(&rig, &programs).await;
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "What do you see?").await;

    let path = rig.path("agents/bob/home/.hive/claude-mcp-config.json");
    assert_eq!(path.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
    let config: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("text")).expect("JSON");
    let told = &config["mcpServers"]["notes"];
    assert_eq!(told["env"], json!({"NOTES_KEY": "its own", "OTHER": "a credential"}));
    let args: Vec<&str> =
        told["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let server = server.display().to_string();
    // If the host allows sandboxes, the harness is asked to start it in one.
    assert!(
        args.starts_with(&["scrub", "--keep=NOTES_KEY", "--keep=OTHER", "--"])
            && args.ends_with(&["--", &server, "--quiet"]),
        "{args:?}"
    );
    assert!(told["command"].as_str().is_some_and(|program| program.ends_with("/hive")), "{told}");
    for (name, server) in config["mcpServers"].as_object().expect("servers") {
        assert_eq!(server["args"][0], "scrub", "{name}");
    }
    let results = rig.tool_results("bob");
    assert!(results[0].lines().any(|line| line == "NOTES_KEY=its own"), "{results:?}");
    for secret in ["secret-key", "ANTHROPIC_", "HIVE_", "CLAUDE_"] {
        assert!(!results[0].contains(secret), "{secret}: {}", results[0]);
    }
    // Only bob may do it.
    handled(&rig, &operator, "ada", "What do you see?").await;
    assert!(
        rig.tool_results("ada")[0].contains("No such tool available"),
        "{:?}",
        rig.tool_results("ada")
    );
    up.interrupted(rig).await;
}
