//! Grants: `readable`, `writable` and `devices` of hive.toml, and what is refused.

use std::os::unix::fs::symlink;

use hive_proto::v1::{EventKind, Isolation};
use hive_tests::sandbox_probe::Targets;

use crate::stage::{self, Stage};

/// Ends `hivectl up` with this refusal.
pub(crate) async fn refused(agents: &str, prepare: impl Fn(&Stage), sentence: &str) {
    let mut stage = Stage::set("", agents);
    prepare(&stage);
    let command = stage.command();
    stage.spawn(command);
    let status = stage.ends().await;
    assert_eq!(status.code(), Some(2), "{}", stage.said);
    let root = stage.rig.dir().canonicalize().expect("a path").display().to_string();
    assert!(stage.said.replace(&root, "R").contains(sentence), "{}", stage.said);
}

/// Starts a hive without this agent, for this reason.
pub(crate) async fn left_out(agents: &str, prepare: impl Fn(&Stage), agent: &str, sentence: &str) {
    let mut stage = Stage::set("", agents);
    prepare(&stage);
    let command = stage.command();
    stage.start(command).await;
    let line = stage.says(&format!("{agent} is not started")).await;
    let root = stage.rig.dir().canonicalize().expect("a path").display().to_string();
    assert!(line.replace(&root, "R").contains(sentence), "{line}");
    stage.end().await;
}

#[tokio::test]
async fn a_grant_that_would_undo_the_sandbox_is_refused_with_the_remedy() {
    if !stage::is_possible().await {
        return;
    }
    let project = |stage: &Stage| drop(stage.rig.user_dir("project"));
    refused(
        "[agents.ada]\nwritable = [\".\"]\n",
        project,
        "writable = \"R/.\" contains the hive, R: name directories below it",
    )
    .await;
    refused(
        "[agents.ada]\nreadable = [\"operator\", \"run\"]\n",
        project,
        "readable = \"R/run\" contains",
    )
    .await;
    refused(
        "[agents.ada]\nwritable = [\"bin\"]\n",
        project,
        "writable = \"R/bin\" contains a program of the hive, R/bin/",
    )
    .await;
    refused("[agents.ada]\nwritable = [\"~\"]\n", project, "contains your home, R/operator").await;
    refused(
        "[agents.ada]\nwritable = [\"none\"]\n",
        project,
        "writable = \"R/none\" cannot be used: R/none: No such file",
    )
    .await;
    refused(
        "[agents.ada]\nwritable = [\"hive.toml\"]\n",
        project,
        "contains the configuration, R/hive.toml",
    )
    .await;
}

#[tokio::test]
async fn a_link_that_an_agent_left_is_not_followed() {
    if !stage::is_possible().await {
        return;
    }
    let prepare = |stage: &Stage| {
        stage.rig.user_file("operator/.ssh/id", "a key", 0o600);
        stage.rig.user_dir("project");
        symlink(stage.rig.path("operator/.ssh"), stage.rig.path("project/lib")).expect("a link");
    };
    let agents =
        "[agents.ada]\nwritable = [\"project\"]\n[agents.bob]\nreadable = [\"project/lib\"]\n";
    left_out(
        agents,
        prepare,
        "bob",
        "readable = \"R/project/lib\" cannot be used: it leads over the link R/project/lib, which an agent could have made",
    )
    .await;
}

#[tokio::test]
async fn agents_that_share_a_directory_are_listed_and_see_each_others_files() {
    if !stage::is_possible().await {
        return;
    }
    let agents = ["ada", "bob"].map(|agent| {
        format!(
            "[agents.{agent}]\nwritable = [\"project\"]\nreadable = [\"grant\", \"bin\"]\nenv = {{ SCRIPTED_CLAUDE_FILE = \"R/grant/{agent}.json\" }}\n"
        )
    });
    let mut stage = Stage::set("", &agents.concat());
    stage.rig.user_dir("project");
    stage.rig.user_dir("grant");
    let project = stage.rig.path("project");
    let writes = Targets {
        write: [("write-project".to_owned(), project.clone())].into(),
        ..Targets::default()
    };
    let reads = Targets {
        read: [("read-project".to_owned(), project.join("note"))].into(),
        ..Targets::default()
    };
    stage.script("ada", &writes, &writes);
    stage.script("bob", &reads, &reads);
    let command = stage.command();
    stage.start(command).await;
    let shares = format!(
        "ada and bob share {}: code that one leaves there and the other runs acts as the other",
        project.canonicalize().expect("a path").display()
    );
    assert!(stage.said.contains(&shares), "{}", stage.said);
    stage.rig.user_file("project/note", "of the operator", 0o644);
    let (operator, mut watch) = (stage.rig.operator().await, stage.rig.watch().await);
    for (agent, attempt) in [("ada", "write-project"), ("bob", "read-project")] {
        operator.send(agent, "look around").await;
        watch.kind(agent, EventKind::TurnEnded).await;
        for by in ["claude", "task"] {
            assert_eq!(stage.tried(agent, by)[attempt], None, "{agent} by {by}");
        }
        let shown = operator.get_agent(agent).await;
        assert_eq!(shown.isolation(), Isolation::Sandbox);
        assert!(shown.isolation_notes.iter().any(|note| note.starts_with("shares ")), "{shown:?}");
    }
    assert!(project.join("written-by-the-probe").exists());
    stage.end().await;
}
