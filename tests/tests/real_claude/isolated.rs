//! The real CLI of an isolated agent: inside the fence, with its state below its directory, and
//! with rules about what it must not read.

use hive_core::isolation::{EXPECTED_ENV, Expected, Level};
use hive_tests::api::{Reply, Script};
use hive_tests::binary;
use serde_json::json;

use crate::stage::Stage;
use hive_tests::rig::Mode;

both!(claude_works_inside_the_fence_and_reads_neither_environments_nor_tokens);

async fn claude_works_inside_the_fence_and_reads_neither_environments_nor_tokens(mode: Mode) {
    let mut stage = Stage::in_mode(mode, Script::new()).await;
    let home = stage.rig.path("agents/ada/home");
    let (project, own) = (stage.rig.path("project"), home.join(".hive"));
    std::fs::create_dir_all(project.join("src")).expect("a directory");
    std::fs::create_dir_all(home.join(".claude/skills/deploy")).expect("a directory");
    std::os::unix::fs::symlink("/proc/self", project.join("self")).expect("a link");
    let user = "ab".repeat(32);
    std::fs::write(home.join(".claude.json"), json!({ "userID": user }).to_string())
        .expect("a file");
    std::fs::write(home.join(".claude/skills/deploy/run.sh"), "echo skilled").expect("a file");
    std::fs::write(project.join("src/a.txt"), "one\n").expect("a file");
    let private = stage.rig.path("private");
    std::fs::create_dir(&private).expect("a directory");
    std::fs::write(private.join("settings.json"), "KEY=in-the-settings").expect("a file");
    let expected = Expected {
        level: Level::SharedFiles,
        bwrap: "/usr/bin/bwrap".into(),
        user_namespaces: false,
        hidden: Vec::new(),
        read_only: Vec::new(),
        writable: vec![project.clone()],
        devices: Vec::new(),
        private: private.clone(),
        mounted: Vec::new(),
    };
    let path = stage.rig.path("isolation.json");
    std::fs::write(&path, serde_json::to_string(&expected).expect("JSON")).expect("a file");
    stage.set_env(EXPECTED_ENV, &path.display().to_string());
    let servers = json!({"mine": {"command": binary::find("hive-tests", "env-mcp"), "env": {"NOTES_HOME": "${HOME}/notes"}}});
    std::fs::write(stage.rig.path("extra.json"), servers.to_string()).expect("a file");
    stage.set_env("HIVE_EXTRA_MCP", &stage.rig.path("extra.json").display().to_string());

    let read = |path: &str| Reply::tool("Read", json!({ "file_path": path }));
    let below = |name: &str| own.join(name).display().to_string();
    let in_project = project.join("src/a.txt").display().to_string();
    let task = "cat ~/.claude/.claude.json ~/.hive/claude-mcp-config.json PRIVATE/* /proc/1/environ 2>/dev/null; ls -A ~ ~/.hive; sh ~/.claude/skills/deploy/run.sh";
    let task = task.replace("PRIVATE", &private.display().to_string());
    let steps = [
        Reply::tool("mcp__bash__run", json!({ "cmd": task })),
        read("/proc/self/environ"),
        read(&project.join("self/environ").display().to_string()),
        read(&below("claude-mcp-config.json")),
        read(&private.join("settings.json").display().to_string()),
        read(&below("tasks/1.out")),
        read("/etc/hostname"),
        read(&in_project),
        Reply::tool(
            "Edit",
            json!({"file_path": in_project, "old_string": "one", "new_string": "two"}),
        ),
        Reply::tool("Write", json!({"file_path": project.join("new.txt"), "content": "three"})),
        Reply::tool(
            "Grep",
            json!({"pattern": "HIVE_PROCESS_TOKEN", "path": own, "output_mode": "content"}),
        ),
        Reply::tool("mcp__mine__environment", json!({})),
        Reply::text("Done."),
    ];
    stage.api.set_script(Script::new().when("try it", steps).when("again", [Reply::text("Done.")]));
    let message = stage.send("try it").await;
    stage.start();
    stage.ok().await;

    let results = stage.last_request_of(message).tool_results();
    let failed: Vec<bool> = results.iter().map(|(_, _, failed)| *failed).collect();
    assert_eq!(
        failed,
        [false, true, true, true, true, false, false, false, false, false, true, false],
        "{results:?}"
    );
    let words = |number: usize| results[number].1.as_str();
    for (number, why) in [
        (3, "belongs to the harness of this agent"),
        (4, "belongs to the harness of this agent"),
        (10, "is not searched"),
    ] {
        assert!(words(number).contains(why), "{results:?}");
    }
    assert!(words(0).contains("skilled") && words(5).contains("skilled"), "{results:?}");
    for (number, (_, words, _)) in results.iter().enumerate() {
        let has_secret =
            ["dummy-key", "ANTHROPIC_API_KEY", "HIVE_PROCESS_TOKEN=", "userID", "in-the-settings"]
                .into_iter()
                .find(|secret| words.contains(secret));
        assert_eq!(has_secret, None, "{number}: {words}");
    }
    // Its own server has what claude made of its settings, though the harness has started it.
    assert!(words(11).contains(&format!("NOTES_HOME={}/notes\n", home.display())), "{results:?}");
    assert_eq!(std::fs::read_to_string(project.join("src/a.txt")).expect("a file"), "two\n");
    assert_eq!(std::fs::read_to_string(project.join("new.txt")).expect("a file"), "three");
    // claude's state was moved, and claude has continued with it.
    assert!(!home.join(".claude.json").exists());
    let state = std::fs::read_to_string(home.join(".claude/.claude.json")).expect("a file");
    assert!(state.contains(&user) && state.len() > 200, "{state}");
    // The conversation is where it always was.
    let message = stage.send("again").await;
    stage.ok().await;
    assert!(stage.last_request_of(message).mentions("try it"), "the conversation goes on");
    stage.end().await;
}
