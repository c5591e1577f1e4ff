//! Virtual environments of Python: one that the agent makes, and those of the operator that its MCP
//! servers are in.

use std::os::unix::fs::symlink;

use hive_tests::api::Reply;
use hive_tests::rig::{Rig, host};
use serde_json::json;

use super::hive::{Hive, path};
use super::installed::Installed;
use super::servers;

native!(an_agent_makes_an_environment_and_its_servers_are_in_others);

/// An environment of the operator with a server: a script and a module.
fn environment(rig: &Rig, name: &str) -> bool {
    let dir = rig.path("operator").join(name);
    let mut make = rig.user_command("python3".as_ref());
    make.args(["-m", "venv", "--without-pip"]).arg(&dir);
    if !make.as_std_mut().output().is_ok_and(|said| said.status.success()) {
        return false;
    }
    let script = format!("#!{}/bin/python3{}", dir.display(), servers::PYTHON);
    rig.user_file(&format!("operator/{name}/bin/notes-server"), &script, 0o755);
    let packages = std::fs::read_dir(dir.join("lib"))
        .expect("a directory")
        .flatten()
        .next()
        .expect("one version")
        .file_name();
    rig.user_file(
        &format!("operator/{name}/lib/{}/site-packages/notes.py", packages.display()),
        servers::PYTHON,
        0o644,
    );
    true
}

async fn an_agent_makes_an_environment_and_its_servers_are_in_others(installed: Installed) {
    let mut made = false;
    let ada = "[agents.ada.extra_mcp_servers.script]\ncommand = \"R/operator/script/bin/notes-server\"\n\
        [agents.ada.extra_mcp_servers.module]\ncommand = \"R/operator/module/bin/python3\"\nargs = [\"-m\", \"notes\", \"module\"]\n\
        [agents.ada.extra_mcp_servers.named]\ncommand = \"notes-server\"\n\
        [agents.ada.extra_mcp_servers.project]\ncommand = \"R/operator/project/.venv/bin/python3\"\nargs = [\"-m\", \"notes\"]\n";
    let ada = &format!("writable = [\"~/project\"]\n{ada}");
    let prepare = async |rig: &Rig| {
        made = ["script", "module", ".local/pipx/venvs/notes", "project/.venv"]
            .into_iter()
            .all(|name| environment(rig, name));
        // The layout of pipx.
        let bin = rig.user_dir("operator/.local/bin");
        symlink("../pipx/venvs/notes/bin/notes-server", bin.join("notes-server")).expect("a link");
    };
    let mut hive = Hive::start_with(installed, ada, prepare, |rig, bin, up| {
        up.env("PATH", path(&[bin, &rig.path("operator/.local/bin")]));
    })
    .await;
    if host::allows("virtual environments of python3", made) {
        let said = hive.run("python3 -m venv --without-pip ~/venv && ~/venv/bin/python -c 'import sys; print(sys.prefix)'").await;
        assert!(said.contains(&hive.text("agents/ada/home/venv")), "{said}");
        for (server, dir) in [
            ("script", "script"),
            ("module", "module"),
            ("named", ".local/pipx/venvs/notes"),
            ("project", "project/.venv"),
        ] {
            let answers = hive
                .calls(
                    &format!("note by {server}"),
                    [Reply::tool(&format!("mcp__{server}__note"), json!({}))],
                )
                .await;
            let [(words, false)] = &answers[..] else { panic!("{server}: {answers:?}") };
            assert!(
                words.contains(&format!(
                    "noted by python of {}",
                    hive.text(&format!("operator/{dir}"))
                )),
                "{server}: {words}"
            );
        }
    }
    hive.end().await;
}
