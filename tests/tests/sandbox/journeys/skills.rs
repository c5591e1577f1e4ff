//! Scripts of skills, those of an installed plugin and those of the agent's own, run in shell
//! tasks, which see nothing else of `~/.claude`.

use hive_tests::rig::Rig;
use serde_json::json;

use super::hive::Hive;
use super::installed::Installed;

native!(scripts_of_skills_run_in_shell_tasks);

/// A marketplace in a directory with one plugin, which has a skill with a script.
fn marketplace(rig: &Rig) {
    let plugin = json!({ "name": "formatter", "source": "./formatter", "description": "formats" });
    let market = json!({ "name": "mine", "owner": { "name": "me" }, "plugins": [plugin] });
    let manifest = json!({ "name": "formatter", "version": "1.0.0", "description": "formats" });
    rig.user_file("operator/market/.claude-plugin/marketplace.json", &market.to_string(), 0o644);
    rig.user_file(
        "operator/market/formatter/.claude-plugin/plugin.json",
        &manifest.to_string(),
        0o644,
    );
    let skill = "---\nname: format\ndescription: formats\n---\nRun scripts/format.sh.\n";
    rig.user_file("operator/market/formatter/skills/format/SKILL.md", skill, 0o644);
    rig.user_file(
        "operator/market/formatter/skills/format/scripts/format.sh",
        "#!/bin/sh\necho formatted\n",
        0o755,
    );
}

async fn scripts_of_skills_run_in_shell_tasks(installed: Installed) {
    let ada = "plugins = [\"formatter@mine\"]\nmarketplaces = [\"R/operator/market\"]";
    let mut hive = Hive::start(installed, ada, async |rig: &Rig| {
        marketplace(rig);
        rig.user_file(
            "agents/ada/home/.claude/skills/deploy/run.sh",
            "#!/bin/sh\necho deployed\n",
            0o755,
        );
        rig.user_file("agents/ada/home/.claude/settings.json", r#"{"hooks":{}}"#, 0o644);
    })
    .await;
    let said =
        hive.run("~/.claude/skills/deploy/run.sh; $(find ~/.claude/plugins -name format.sh | head -n 1); ls -A ~/.claude").await;
    assert!(said.contains("deployed\nformatted\nplugins\nskills"), "{said}");
    let said = hive
        .run("touch ~/.claude/skills/deploy/run.sh ~/.claude/settings.json 2>&1 || echo refused")
        .await;
    assert!(
        said.contains("refused") && said.matches("Read-only file system").count() == 2,
        "{said}"
    );
    // The settings that were put aside are those that the plugin does not need.
    let home = hive.rig().path("agents/ada/home/.claude");
    assert!(home.join("settings.json.ignored").is_file());
    let settings =
        std::fs::read_to_string(home.join("settings.json")).expect("the switches of plugins");
    assert!(settings.contains("formatter@mine") && !settings.contains("hooks"), "{settings}");
    let unread = hive.operator.deliveries("operator", &[]).await;
    assert_eq!(unread.len(), 0, "no problem was reported: {unread:?}");
    hive.end().await;
}
