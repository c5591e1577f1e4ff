//! What is in a bundle, with a broker and without one, and the file that it is.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use hive_tests::rig::{Rig, soon};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::unpack::{Unpacked, bundle, command};

/// The files of a hive that answers, in their order.
const FILES: [&str; 11] = [
    "versions.json",
    "host.json",
    "doctor.json",
    "config.json",
    "files.json",
    "status.json",
    "agents.jsonl",
    "topology.json",
    "turns.jsonl",
    "events.jsonl",
    "dead_letters.jsonl",
];

fn missing(manifest: &Value) -> Vec<&str> {
    let all = manifest["missing"].as_array().expect("a list");
    all.iter().filter_map(|missing| missing["name"].as_str()).collect()
}

#[tokio::test]
async fn a_bundle_describes_a_hive_and_is_for_its_owner_alone() {
    let rig = Rig::duo().await;
    let operator = rig.operator().await;
    operator.send("bob", "hello").await;
    let args = ["--config", "hive.toml", "--output", "b.tar.gz", "--json"];
    let said = bundle(&rig, &[], &args).await;
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    let made: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let file = rig.path("b.tar.gz").metadata().expect("it is there");
    assert_eq!(file.permissions().mode() & 0o7777, 0o600);
    assert_eq!(made["bytes"], file.len());
    let unpacked = Unpacked::read(&rig.path("b.tar.gz"));
    let names: Vec<&str> = FILES.into_iter().chain(["manifest.json"]).collect();
    assert_eq!(unpacked.names, names);
    assert_eq!(made["files"], json!(names));

    let manifest = unpacked.json("manifest.json");
    assert_eq!(manifest["schema"], "hive.bundle_manifest.v1");
    assert_eq!(missing(&manifest), ["metrics.txt"], "{manifest}");
    let agents = unpacked.rows("agents.jsonl");
    let names: Vec<&Value> = agents.iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["ada", "bob"]);
    assert_eq!(agents[1]["ready_count"], 1);
    let tree = json!([{ "name": "ada", "children": [{ "name": "bob", "children": [] }] }]);
    assert_eq!(unpacked.json("topology.json"), tree);
    let versions = unpacked.json("versions.json");
    for program in ["hived", "hive", "hive-mcp", "hivectl"] {
        let version = versions[program].as_str().unwrap_or_default();
        assert!(version.contains(env!("CARGO_PKG_VERSION")), "{program}: {versions}");
    }
    assert_eq!(versions["broker"], env!("CARGO_PKG_VERSION"));
    assert!(unpacked.rows("events.jsonl").iter().any(|event| event["kind"] == "message_accepted"));
    let files = unpacked.json("files.json");
    let database = files[0]["files"].as_array().into_iter().flatten();
    let database = database.clone().find(|file| file["name"] == "hive.db").expect("a database");
    assert_eq!((&database["mode"], &database["kind"]), (&json!("0600"), &json!("file")));
    let sentence = |name: &str| {
        let checks = unpacked.json("doctor.json");
        let check = checks.as_array().expect("a list").iter().find(|check| check["name"] == name);
        check.unwrap_or_else(|| panic!("no {name}: {checks}"))["sentence"].clone()
    };
    assert!(sentence("files").is_string() && sentence("agents").is_null());

    // A file that is there stays as it is.
    let said = bundle(&rig, &[], &args).await;
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.stderr.contains("b.tar.gz is there already"), "{said:?}");
    assert_eq!(Unpacked::read(&rig.path("b.tar.gz")).files, unpacked.files);
    let left = std::fs::read_dir(rig.dir()).expect("a directory").filter(|entry| {
        let name = entry.as_ref().expect("an entry").file_name();
        name.to_string_lossy().contains(".tar.gz")
    });
    assert_eq!(left.count(), 1, "no other file is left");
    rig.end().await;
}

#[tokio::test]
async fn without_a_broker_it_has_what_the_host_knows_and_names_the_rest() {
    let mut rig = Rig::duo().await;
    rig.stop_broker().await;
    let said = bundle(&rig, &[], &["--bodies", "--output", "down.tar.gz"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let unpacked = Unpacked::read(&rig.path("down.tar.gz"));
    let of_host = ["versions.json", "host.json", "doctor.json", "files.json", "manifest.json"];
    assert_eq!(unpacked.names, of_host);
    let manifest = unpacked.json("manifest.json");
    let wanted = ["config.json", "metrics.txt"].into_iter();
    let wanted: Vec<&str> = wanted.chain(FILES[5..].iter().copied()).chain(["bodies"]).collect();
    let mut found = missing(&manifest);
    found.sort_unstable();
    let mut wanted = wanted;
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    assert_eq!(unpacked.json("versions.json")["broker"], Value::Null);
    rig.end().await;
}

#[tokio::test]
async fn a_bundle_that_cannot_be_written_leaves_nothing() {
    let rig = Rig::new("");
    for (output, code) in [("missing/b.tar.gz", 3), ("..", 2), ("/dev/null", 2)] {
        let said = bundle(&rig, &[], &["--output", output]).await;
        assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{output}: {said:?}");
        assert!(said.stderr.contains("hint: "), "{output}: {said:?}");
    }
    let names = std::fs::read_dir(rig.dir()).expect("a directory").count();
    assert_eq!(names, 1, "only hive.toml is there");
    rig.end().await;
}

/// The broker does not answer, so the bundle is begun and cannot end.
#[tokio::test]
async fn one_that_is_interrupted_leaves_nothing() {
    let mut rig = Rig::duo().await;
    rig.broker().suspend().await;
    let dir = rig.dir().to_path_buf();
    let names = || {
        let entries = std::fs::read_dir(&dir).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names.filter(|name| name.to_string_lossy().contains("b.tar.gz")).count()
    };
    for signal in [Signal::INT, Signal::TERM] {
        let mut command = command(&rig, &[], &["--bodies", "--output", "b.tar.gz"]);
        let mut child = command.stderr(Stdio::piped()).kill_on_drop(true).spawn().expect("it runs");
        let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
        let warned = soon("it says what is in it", said.next_line()).await.expect("text");
        assert!(warned.as_ref().is_some_and(|line| line.contains("--bodies")), "{warned:?}");
        assert_eq!(names(), 1, "it is begun");
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("it runs");
        kill_process(pid, signal).expect("it runs");
        let problem = soon("it says how it ends", said.next_line()).await.expect("text");
        assert_eq!(problem.as_deref(), Some("error: interrupted; no bundle was made"));
        let status = soon("it ends", child.wait()).await.expect("it is ours");
        assert_eq!((status.code(), names()), (Some(1), 0));
    }
    rig.broker().signal(Signal::CONT);
    rig.end().await;
}
