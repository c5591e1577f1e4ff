//! What the module of NixOS renders, under a real systemd: on Debian, with the drop-ins, the users
//! and the directories that NixOS would make of it.

use std::collections::BTreeMap;

use hive_proto::v1::{EventKind, HarnessState, TurnOutcome};
use hive_tests::binary::workspace;
use hive_tests::rig::Watch;
use serde_json::Value;

use crate::bed::Bed;

/// Returns the parts of what the configuration rendered to, by their titles.
fn rendered() -> BTreeMap<String, String> {
    let file = workspace().join("tests/tests/nix/golden/a_host_that_is_booted.txt");
    let page = std::fs::read_to_string(file).expect("the page");
    let parts = page.split("== ").filter_map(|part| part.split_once('\n'));
    parts.map(|(title, text)| (title.to_owned(), text.to_owned())).collect()
}

/// Makes of the rendered parts what NixOS would make of them.
async fn install(bed: &Bed, parts: &BTreeMap<String, String>) {
    let host: Value = serde_json::from_str(&parts["the host"]).expect("JSON");
    // Those of the hive itself are there, by sysusers.
    let uid = host["users"]["ada"]["uid"].to_string();
    let gid = host["groups"]["ada"]["gid"].to_string();
    bed.run(&["groupadd", "--system", "--gid", &gid, "ada"]).await;
    bed.run(&["useradd", "--system", "--uid", &uid, "--gid", "ada", "ada"]).await;
    bed.run(&["useradd", "--groups", "hive-operators", "mara"]).await;

    let lines = host["tmpfiles"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let rules: String =
        lines.filter(|line| line.starts_with("d ")).map(|line| line.to_owned() + "\n").collect();
    bed.write("/etc/tmpfiles.d/nixos.conf", &rules);
    bed.run(&["systemd-tmpfiles", "--create"]).await;

    for (title, text) in parts.iter().filter(|(title, _)| title.ends_with(".d/overrides.conf")) {
        let file = format!("/etc/systemd/system/{title}");
        bed.run(&["mkdir", "-p", file.strip_suffix("/overrides.conf").expect("it ends so")]).await;
        bed.write(&file, text);
    }
    bed.run(&["systemctl", "daemon-reload"]).await;
}

#[tokio::test]
async fn the_drop_ins_of_the_module_do_what_their_options_say() {
    let parts = rendered();
    let Some(bed) = Bed::boot(&parts["hive.toml"]).await else { return };
    install(&bed, &parts).await;
    // What is the host's: the programs, secrets, and shared directories.
    for package in ["hive", "bash", "bubblewrap"] {
        bed.run(&["mkdir", "-p", &format!("/nix/store/{package}")]).await;
        bed.run(&["ln", "-s", "/usr/bin", &format!("/nix/store/{package}/bin")]).await;
    }
    bed.run(&["mkdir", "-m", "700", "/etc/keys"]).await;
    bed.write("/etc/keys/key", "of ada");
    bed.write("/etc/keys/hook", "http://127.0.0.1:9/hook");
    bed.run(&["mkdir", "/srv/data", "/srv/work"]).await;
    bed.run(&["chown", "ada", "/srv/data", "/srv/work"]).await;
    bed.run(&["systemctl", "start", "hived", "hive@ada"]).await;
    for unit in ["hived.service", "hived.socket", "hive@ada.service"] {
        assert_eq!(bed.run(&["systemd-analyze", "verify", "--man=no", unit]).await, "", "{unit}");
    }

    let operator = bed.client(None).await;
    operator.does("ada", HarnessState::Idle).await;
    operator.send("ada", "Are you there?").await;
    Watch::new(bed.socket(None)).kind("ada", EventKind::TurnEnded).await;
    assert_eq!(operator.turns("ada").await[0].outcome(), TurnOutcome::Ok);
    let status = bed.run(&["runuser", "-u", "mara", "--", "hivectl", "agents"]).await;
    assert!(status.contains("ada"), "{status}");

    let pid = bed.main_pid("hive@ada").await;
    let user = bed.run(&["stat", "--format=%U %G", &format!("/proc/{pid}")]).await;
    assert_eq!(user.trim_end(), "ada ada");
    let variables = bed.run(&["cat", &format!("/proc/{pid}/environ")]).await;
    for variable in
        ["HOME=/srv/ada/home", "HIVE_STATE_DIR=/srv/ada/state", "PATH=/nix/store/hive/bin"]
    {
        assert!(variables.contains(variable), "{variable}: {variables}");
    }
    // The harness has its files there.
    bed.run(&["test", "-d", "/srv/ada/home/.hive"]).await;
    for (property, value) in
        [("MemoryMax", "1073741824"), ("CPUQuotaPerSecUSec", "1.500000s"), ("TasksMax", "400")]
    {
        assert_eq!(bed.property("hive@ada", property).await, value, "{property}");
    }

    // In the namespace of the service, which the user of the agent owns no part of.
    let inside = ["nsenter", "--target", &pid, "--mount", "--", "runuser", "-u", "ada", "--"];
    let touch = async |path: &str| bed.tries(&[&inside[..], &["touch", path]].concat()).await;
    let (written, said) = touch("/srv/work/new").await;
    assert!(written, "{said}");
    let (written, said) = touch("/srv/data/new").await;
    assert!(!written && said.contains("Read-only file system"), "{said}");
    let secret = "/run/credentials/hive@ada.service/key";
    assert_eq!(bed.run(&[&inside[..], &["cat", secret]].concat()).await, "of ada");
    bed.end().await;
}
