//! A `hive.toml` with a mistake: every program that reads it reports the mistake with its line and
//! the nearest known word, and nothing changes.

use hive_proto::v1::EventKind;
use hive_tests::rig::{Process, Rig, run};
use rustix::process::Signal;

/// A broken file, the line of its mistake, and words that are said of it.
const BROKEN: [(&str, usize, &str); 7] = [
    ("[agents.ada]\nparnet = \"bob\"\n", 2, "did you mean `parent`?"),
    ("[agents.ada]\n[agent.bob]\n", 2, "did you mean `agents`?"),
    ("[broker.limits]\nbody_byte_max = 5\n", 2, "did you mean `body_bytes_max`?"),
    ("[agents.ada]\nuids = [\"root\"]\n", 2, "must be"),
    ("[agents.ada]\nparent = \"bobby\"\n[agents.bob]\n", 2, "did you mean `bob`?"),
    ("[agents.ada]\n\n\n[agents.ada\n", 4, ""),
    ("[agents.ada]\nprocess_uids = 1\n\"\\u001b[31m\" = 1\n", 2, "unknown key `process_uids`"),
];

#[tokio::test]
async fn a_broken_file_is_reported_with_its_line_and_changes_nothing() {
    let rig = Rig::new("");
    for (text, line, words) in BROKEN {
        rig.configure(text);
        let place = format!("line {line}, column ");
        let error = rig.refused_broker().await;
        assert!(
            error.contains(&place) && error.contains(words) && error.contains("hive.toml"),
            "{error}"
        );
        assert!(!rig.path("state").exists() && !rig.path("run").exists(), "nothing was made");

        let mut check = Process::command(&hive_tests::binary::find("hive-broker", "hived"));
        check.arg("--check-config").arg(rig.path("hive.toml"));
        let checked = run(check).await;
        assert_eq!(checked.code, 8, "{checked:?}");
        assert!(checked.stderr.contains(&place) && checked.stderr.contains(words), "{checked:?}");

        let checked =
            rig.hivectl(&["config", "check", &rig.path("hive.toml").display().to_string()]).await;
        assert_eq!(checked.code, 8, "{checked:?}");
        assert!(checked.stdout.contains(&place) && checked.stdout.contains(words), "{checked:?}");
        assert!(
            !checked.stdout.contains('\u{1b}') && !error.contains('\u{1b}'),
            "a file does not act on a terminal"
        );
    }
    assert!(!rig.path("state").exists() && !rig.path("run").exists(), "nothing was made");
}

#[tokio::test]
async fn an_unreadable_file_is_reported() {
    let rig = Rig::new("");
    std::fs::remove_file(rig.path("hive.toml")).expect("it was there");
    let error = rig.refused_broker().await;
    assert!(
        error.contains("hive.toml cannot be read") && error.contains("No such file"),
        "{error}"
    );
    std::fs::create_dir(rig.path("hive.toml")).expect("a directory");
    assert!(rig.refused_broker().await.contains("hive.toml cannot be read"));
    std::fs::remove_dir(rig.path("hive.toml")).expect("it was there");
    std::fs::write(rig.path("hive.toml"), b"[agents.ada]\nrole = \"\xff\xfe\"\n").expect("a file");
    assert!(rig.refused_broker().await.contains("hive.toml cannot be read"));
    let checked =
        rig.hivectl(&["config", "check", &rig.path("no-such.toml").display().to_string()]).await;
    assert_eq!(checked.code, 3, "{checked:?}");
}

#[tokio::test]
async fn a_reload_of_a_broken_file_keeps_the_agents() {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\nrole = \"builds\"\n");
    rig.start_broker().await;
    let (ada, operator) = (rig.agent("ada").await, rig.operator().await);
    let kept = operator.send("bob", "kept").await;
    let before = rig.on_disk();
    for (times, (text, line, words)) in BROKEN.into_iter().enumerate() {
        rig.configure(text);
        rig.broker().signal(Signal::HUP);
        rig.broker().says_times("nothing was changed", times + 1).await;
        let log = rig.broker().log();
        assert!(log.contains(&format!("line {line}, column ")) && log.contains(words), "{log}");
        rig.unchanged(&before, "a broken file");
        assert_eq!(operator.get_agent("bob").await.role, "builds");
    }
    // Connections go on, and so does the mail.
    ada.send("bob", "still here").await;
    // A good file is taken at once, and only what it says changes.
    let mut watch = rig.watch_from_now().await;
    rig.configure("[agents.ada]\n[agents.eve]\n");
    rig.broker().signal(Signal::HUP);
    watch.kind("bob", EventKind::AgentRetired).await;
    assert!(operator.get_agent("bob").await.retired);
    assert_eq!(
        operator.delivery("bob", kept).await.state(),
        hive_proto::v1::DeliveryState::Ready,
        "its mail is kept"
    );
}
