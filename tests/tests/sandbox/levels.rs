//! Levels: what is used where the file states none, what is refused where a stated one is not
//! reached, and what the operator sees.

use hive_proto::v1::{EventKind, Isolation};
use hive_tests::rig::{gone, host, strays};
use serde_json::{Value, json};

use crate::stage::{self, Stage};

#[tokio::test]
async fn the_best_level_is_used_printed_and_shown() {
    if !stage::is_possible().await {
        return;
    }
    let mut stage = Stage::set(
        "",
        "[agents.ada]\n[agents.bob]\nisolation = \"shared_files\"\n[agents.eve]\nisolation = \"none\"\n",
    );
    let command = stage.command();
    stage.start(command).await;
    assert!(stage.said.contains("isolation of ada: sandbox, by /"), "{}", stage.said);
    assert!(stage.said.contains("PARTLY ISOLATED of bob: shared_files, by /"), "{}", stage.said);
    assert!(stage.said.contains("isolation of eve: none, as hive.toml states"), "{}", stage.said);
    let (operator, mut watch) = (stage.rig.operator().await, stage.rig.watch().await);
    for agent in ["ada", "bob", "eve"] {
        let asked = operator.send(agent, "hello").await;
        watch.kind(agent, EventKind::TurnEnded).await;
        assert!(asked > 0);
    }
    for (agent, isolation) in
        [("ada", Isolation::Sandbox), ("bob", Isolation::Partly), ("eve", Isolation::None)]
    {
        assert_eq!(operator.get_agent(agent).await.isolation(), isolation, "{agent}");
    }
    // A level that the file states is no finding.
    let status = stage.rig.hivectl(&["--json", "status"]).await;
    assert_eq!(status.code, 0, "{status:?}");
    let status: Value = serde_json::from_str(&status.stdout).expect("JSON");
    assert_eq!(status["not_isolated_agents"], json!(["eve"]));
    assert_eq!(status["partly_isolated_agents"], json!(["bob"]));
    stage.end().await;
}

#[tokio::test]
async fn a_stated_level_that_is_not_reached_is_refused() {
    let mut stage = Stage::set("isolation = \"sandbox\"", "[agents.ada]\n");
    let mut command = stage.command();
    // Imitates a host without bubblewrap: the only one on PATH can be replaced by its user, and
    // there are no usual places.
    if host::is_root() {
        command.uid(0).gid(0);
    } else if !host::allows("being root (tests do not run as root)", false) {
        return;
    }
    stage.spawn(command);
    let status = stage.ends().await;
    assert_eq!(status.code(), Some(1), "{}", stage.said);
    assert!(
        stage.said.contains("isolation = \"sandbox\" of ada is not reached: this runs as root"),
        "{}",
        stage.said
    );
}

#[tokio::test]
async fn a_level_is_lowered_before_agents_run_and_not_while_they_do() {
    if !stage::is_possible().await {
        return;
    }
    // Agents with the same grants share a trial, so each has a device of its own.
    let readable = "readable = [\"bin\"]\n";
    let mut stage = Stage::set(
        "",
        &format!("[agents.ada]\n{readable}[agents.bob]\ndevices = [\"/dev/zero\"]\n{readable}"),
    );
    // Except for ada, it does not run where it does not see the configuration, as in a sandbox.
    let claude = format!(
        "#!/bin/sh\ncase $HOME in */ada/*) ;; *) [ -e {} ] || exit 1 ;; esac\nexec {} \"$@\"\n",
        stage.rig.path("hive.toml").display(),
        stage.rig.path("bin/scripted-claude").display()
    );
    stage.rig.user_file("choosy/claude", &claude, 0o755);
    let mut command = stage.command();
    command.args(["--claude", "choosy/claude"]);
    stage.start(command).await;
    assert!(stage.said.contains("PARTLY ISOLATED of bob: shared_files, by /"), "{}", stage.said);
    stage.attached("ada").await;
    stage.attached("bob").await;
    let file = stage.rig.path("hive.toml");
    let text = std::fs::read_to_string(&file).expect("the file is there");
    let more = format!("{text}[agents.cyd]\ndevices = [\"/dev/null\"]\n{readable}");
    std::fs::write(&file, more).expect("the file is written");
    rustix::process::kill_process(stage.pid(), rustix::process::Signal::HUP).expect("it runs");
    let line = stage.says("cyd is not started").await;
    assert!(line.contains("no weaker level is used while other agents run"), "{line}");
    stage.end().await;
}

#[tokio::test]
async fn root_reaches_none_and_says_so() {
    if !host::allows("being root (tests do not run as root)", host::is_root()) {
        return;
    }
    let mut stage = Stage::set("", "[agents.ada]\n");
    let mut command = stage.command();
    command.uid(0).gid(0);
    stage.start(command).await;
    assert!(stage.said.contains("NOT ISOLATED: this runs as root"), "{}", stage.said);
    let (operator, mut watch) = (stage.rig.operator().await, stage.rig.watch().await);
    watch.kind("ada", EventKind::HarnessAttached).await;
    assert_eq!(operator.get_agent("ada").await.isolation(), Isolation::None);
    stage.end().await;
}

#[tokio::test]
async fn an_interrupt_ends_a_trial_that_takes_long() {
    if !stage::is_possible().await {
        return;
    }
    let mut stage = Stage::set("", "[agents.ada]\n");
    stage.rig.user_file("slow/claude", "#!/bin/sh\nsleep 1000004\n", 0o755);
    let mut command = stage.command();
    command.args(["--claude", "slow/claude"]);
    stage.spawn(command);
    stage.says("claude's first start in a sandbox takes its time").await;
    rustix::process::kill_process(stage.pid(), rustix::process::Signal::INT).expect("it runs");
    let status = stage.ends().await;
    assert_eq!(status.code(), Some(0), "{}", stage.said);
    // They are killed by then, and a busy kernel takes a moment for their end.
    for process in strays(stage.rig.dir()) {
        gone(process).await;
    }
}
