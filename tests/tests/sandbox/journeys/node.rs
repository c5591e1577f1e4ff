//! npm and npx: packages of a project, and an MCP server that `npx` starts. Nothing here reaches a
//! network.

use hive_tests::api::Reply;
use hive_tests::rig::{Rig, host};
use serde_json::json;

use super::hive::Hive;
use super::installed::Installed;
use super::servers;

every!(npm_works_in_a_project_and_npx_starts_a_server);

/// A package of a server, packed by the operator.
fn pack(rig: &Rig) -> bool {
    rig.user_file(
        "operator/packages/notes/package.json",
        r#"{"name":"notes","version":"1.0.0","bin":"server.js"}"#,
        0o644,
    );
    rig.user_file("operator/packages/notes/server.js", servers::NODE, 0o755);
    let mut pack = rig.user_command("npm".as_ref());
    pack.args(["pack", "--offline", "./notes"]).current_dir(rig.path("operator/packages"));
    pack.as_std_mut().output().is_ok_and(|said| said.status.success())
}

async fn npm_works_in_a_project_and_npx_starts_a_server(installed: Installed) {
    let mut packed = false;
    let server = "[agents.ada.extra_mcp_servers.notes]\ncommand = \"npx\"\n\
        args = [\"--offline\", \"--yes\", \"file:R/operator/packages/notes-1.0.0.tgz\"]";
    let ada = format!("writable = [\"~/project\"]\nreadable = [\"~/packages\"]\n{server}");
    let mut hive = Hive::start(installed, &ada, async |rig: &Rig| {
        packed = pack(rig);
        let project =
            json!({"name": "project", "version": "1.0.0", "scripts": {"start": "node index.js"}});
        rig.user_file("operator/project/package.json", &project.to_string(), 0o644);
        rig.user_file("operator/project/index.js", "console.log(require('greeter'))", 0o644);
        rig.user_file(
            "operator/project/greeter/package.json",
            r#"{"name":"greeter","version":"1.0.0"}"#,
            0o644,
        );
        rig.user_file(
            "operator/project/greeter/index.js",
            "module.exports = 'hello from a package'",
            0o644,
        );
    })
    .await;
    if host::allows("npm", packed) {
        let project = hive.text("operator/project");
        let said = hive
            .run(&format!(
                "cd {project} && npm install --offline ./greeter && npm start && npm pack --offline"
            ))
            .await;
        assert!(
            said.contains("hello from a package") && said.contains("project-1.0.0.tgz"),
            "{said}"
        );
        assert!(hive.rig().path("operator/project/node_modules/greeter/index.js").is_file());
        assert!(hive.rig().path("agents/ada/home/.npm").is_dir(), "its cache is in its home");

        let answers = hive.calls("take a note", [Reply::tool("mcp__notes__note", json!({}))]).await;
        let [(words, false)] = &answers[..] else { panic!("{answers:?}") };
        assert!(
            words.contains("noted by node") && words.contains("agents/ada/home/.npm/_npx"),
            "{words}"
        );
    }
    hive.end().await;
}
