//! What the module of NixOS renders, under a real systemd: on Debian, with the drop-ins, the users
//! and the directories that NixOS would make of it.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, chown, symlink};
use std::path::Path;

use hive_proto::connect::connect;
use hive_proto::v1::{EventKind, HarnessState, TurnOutcome};
use hive_tests::binary::workspace;
use hive_tests::rig::{Client, Rig, Watch, host};
use serde_json::Value;

use crate::bed::Bed;

/// Returns the parts of what a configuration rendered to, by their titles.
pub(crate) fn rendered(name: &str) -> BTreeMap<String, String> {
    let file = workspace().join("tests/tests/nix/golden").join(format!("{name}.txt"));
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
    let parts = rendered("a_host_that_is_booted");
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
    bed.run(&["mkdir", "/srv/data", "/srv/shared"]).await;
    bed.run(&["chown", "ada", "/srv/data", "/srv/shared"]).await;
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
    let (written, said) = touch("/srv/shared/new").await;
    assert!(written, "{said}");
    let (written, said) = touch("/srv/data/new").await;
    assert!(!written && said.contains("Read-only file system"), "{said}");
    let secret = "/run/credentials/hive@ada.service/key";
    assert_eq!(bed.run(&[&inside[..], &["cat", secret]].concat()).await, "of ada");
    bed.end().await;
}

/// Returns the arguments of systemd-nspawn that NixOS would make of the container; what the host
/// has is in the directory of the rig.
fn arguments(rig: &Rig, parts: &BTreeMap<String, String>) -> Vec<String> {
    let container: Value = serde_json::from_str(&parts["container hive-ada"]).expect("JSON");
    let on_host = |path: &str| match path {
        "/run/hive/agents/ada" => rig.path("run/agents/ada"),
        "/var/lib/hive-containers/ada" => rig.path("own"),
        "/var/lib/hive/reminders/ada" => rig.path("reminders"),
        "/etc/keys/key" => rig.path("key"),
        other => panic!("{other} is not expected"),
    };
    let mut all = Vec::new();
    let mut bind = |flag: &str, source: &Path, inside: &str| {
        all.push(format!("--{flag}={}:{inside}", source.display()));
    };
    for (inside, mount) in container["bindMounts"].as_object().expect("mounts") {
        let flag = if mount["isReadOnly"] == true { "bind-ro" } else { "bind" };
        bind(flag, &on_host(mount["hostPath"].as_str().expect("a path")), inside);
    }
    // Units of the container, and its user.
    for (title, text) in parts {
        let Some(title) = title.strip_prefix("hive-ada: ") else { continue };
        let name = title.trim_end_matches(" (masked)");
        let file = rig.path(name.replace('/', "+"));
        // An empty unit is masked.
        std::fs::write(&file, text.trim_start()).expect("a file");
        bind("bind-ro", &file, &format!("/etc/systemd/system/{name}"));
    }
    let file = rig.path("users");
    std::fs::write(&file, "u hive-ada 4001 \"Agent of the hive\"\n").expect("a file");
    bind("bind-ro", &file, "/etc/sysusers.d/agent.conf");
    bind("bind-ro", &rig.path("nix"), "/nix");
    all.push(format!("--private-users={}", container["privateUsers"].as_str().expect("a word")));
    for flag in container["extraFlags"].as_array().expect("flags") {
        let flag = flag.as_str().expect("text");
        let (name, path) = flag.split_once(':').expect("a credential");
        all.push(format!("{name}:{}", on_host(path).display()));
    }
    all
}

#[tokio::test]
async fn an_agent_in_a_container_of_the_module_works() {
    let parts = rendered("a_container_that_is_booted");
    // The broker is on this host, which has no user of that name.
    let mut rig = Rig::new("[agents.ada]\nuids = [4001]\n");
    for package in ["hive", "bash", "bubblewrap"] {
        let folder = rig.path("nix/store").join(package);
        std::fs::create_dir_all(&folder).expect("a folder");
        symlink("/usr/bin", folder.join("bin")).expect("a link");
    }
    for folder in ["own", "reminders"] {
        std::fs::create_dir(rig.path(folder)).expect("a folder");
    }
    std::fs::write(rig.path("key"), "of ada").expect("a file");
    if host::is_root() {
        chown(rig.path("own"), Some(4001), Some(4001)).expect("root may");
    }
    rig.start_broker().await;
    let further = arguments(&rig, &parts);
    let Some(bed) = Bed::boot_as(&parts["hive.toml"], &further).await else { return };
    bed.run(&["systemctl", "start", "hive@ada"]).await;

    let operator = Client::new(connect(&rig.operator_socket()).await.expect("a broker"));
    operator.does("ada", HarnessState::Idle).await;
    operator.send("ada", "Are you there?").await;
    Watch::new(rig.operator_socket()).kind("ada", EventKind::TurnEnded).await;
    assert_eq!(operator.turns("ada").await[0].outcome(), TurnOutcome::Ok);

    // The unit of the agent wants a broker, and that of the container is masked.
    assert_eq!(bed.property("hived.service", "LoadState").await, "masked");
    let pid = bed.main_pid("hive@ada").await;
    let user = bed.run(&["stat", "--format=%U", &format!("/proc/{pid}")]).await;
    assert_eq!(user.trim_end(), "hive-ada");
    let inside = ["nsenter", "--target", &pid, "--mount", "--", "runuser", "-u", "hive-ada", "--"];
    let read = [&inside[..], &["cat", "/run/credentials/hive@ada.service/key"]].concat();
    assert_eq!(bed.run(&read).await, "of ada");
    // Its numbers are those of the host, and all of its capabilities end with it.
    let home = std::fs::metadata(rig.path("own/home/.hive")).expect("the files of the harness");
    assert_eq!(home.uid(), 4001);
    let map = bed.run(&["cat", "/proc/self/uid_map"]).await;
    assert_eq!(map.split_whitespace().collect::<Vec<_>>(), ["0", "0", "65536"]);
    bed.end().await;
    rig.stop_broker().await;
}
