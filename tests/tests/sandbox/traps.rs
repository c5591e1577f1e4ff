//! Traps: what an agent leaves in its directories so that the next start, or a command of the
//! operator's, works for it.
//!
//! The agent's part is done by the test, as the hive's user, between two starts or before the
//! first: its sandbox lets it do just that.

use std::os::unix::fs::symlink;

use hive_proto::v1::{EventKind, HarnessState, Isolation, TurnOutcome};
use hive_tests::rig::{Rig, host};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::grants::{left_out, refused};
use crate::stage::{self, Stage};

/// The operator's key, which no trap may get at.
fn key(rig: &Rig) {
    rig.user_file("operator/.ssh/id", "a key", 0o600);
}

fn link(stage: &Stage, target: &str, name: &str) {
    symlink(stage.rig.path(target), stage.rig.path(name)).expect("a link");
}

#[tokio::test]
async fn a_link_in_the_place_of_an_own_directory_is_not_followed() {
    if !stage::is_possible().await {
        return;
    }
    let prepare = |stage: &Stage| {
        key(&stage.rig);
        stage.rig.user_dir("project/agents");
        link(stage, "operator/.ssh", "project/agents/ada");
    };
    let agents = "[agents.ada]\nwritable = [\"project\"]\nstate_dir = \"project/agents/ada\"\n";
    left_out(
        agents,
        prepare,
        "ada",
        "it leads over the link R/project/agents/ada, which an agent could have made",
    )
    .await;
    let agents = format!(
        "{agents}isolation = \"shared_files\"\n[agents.bob]\nisolation = \"shared_files\"\n"
    );
    left_out(
        &agents,
        prepare,
        "ada",
        "it leads over the link R/project/agents/ada, which an agent could have made",
    )
    .await;
    // A path that a rule refuses is refused, whether it exists or not.
    let agents = "[agents.ada]\nwritable = [\"project\"]\nhome_dir = \"project/agents/ada\"\n";
    refused(agents, prepare, "contains the home of an agent, R/project/agents/ada").await;
    // One directory below the other, both the agent's own.
    let prepare = |stage: &Stage| {
        key(&stage.rig);
        stage.rig.user_dir("own");
        link(stage, "operator", "own/a");
    };
    let agents = "[agents.ada]\nhome_dir = \"own\"\nstate_dir = \"own/a/.ssh\"\n";
    left_out(
        agents,
        prepare,
        "ada",
        "it leads over the link R/own/a, which an agent could have made",
    )
    .await;
    let prepare = |stage: &Stage| {
        key(&stage.rig);
        stage.rig.user_dir("agents/ada");
        link(stage, "operator/.ssh", "agents/ada/state");
    };
    left_out(
        "[agents.ada]\n",
        prepare,
        "ada",
        "it leads over the link R/agents/ada/state, which an agent could have made",
    )
    .await;
}

#[tokio::test]
async fn agents_with_unsafe_paths_are_left_out_and_retried() {
    if !stage::is_possible().await {
        return;
    }
    let agents = "[agents.ada]\n[agents.bob]\nhome_dir = \"own\"\nstate_dir = \"own/a/work\"\n\
                  [agents.cyd]\nreadable = [\"project/lib\"]\n\
                  [agents.eve]\nwritable = [\"project\"]\nmarketplaces = [\"./project/market\"]\n";
    let mut stage = Stage::set("", agents);
    key(&stage.rig);
    stage.rig.user_dir("project");
    stage.rig.user_dir("own");
    link(&stage, "operator", "own/a");
    link(&stage, "operator/.ssh", "project/market");
    let command = stage.command();
    stage.start(command).await;
    for (agent, why) in [
        ("bob", "own/a, which an agent could have made"),
        ("cyd", "project/lib: No such file"),
        ("eve", "project/market, which an agent could have made"),
    ] {
        let begin = format!("{agent} is not started");
        if !stage.said.contains(&begin) {
            stage.says(&begin).await;
        }
        assert!(
            stage.said.lines().any(|line| line.contains(&begin) && line.contains(why)),
            "{}",
            stage.said
        );
    }
    let (operator, mut watch) = (stage.rig.operator().await, stage.rig.watch().await);
    operator.send("ada", "hello").await;
    watch.kind("ada", EventKind::TurnEnded).await;
    rustix::process::kill_process(stage.pid(), rustix::process::Signal::HUP).expect("it runs");
    stage.says("hive.toml was read again").await;
    // The operator does nothing for it.
    std::fs::remove_file(stage.rig.path("own/a")).expect("a link");
    stage.rig.user_dir("project/lib");
    stage.attached("bob").await;
    stage.attached("cyd").await;
    assert_eq!(operator.get_agent("eve").await.state(), HarnessState::Offline);
    stage.end().await;
}

#[tokio::test]
async fn links_to_the_configuration_and_to_the_hive_are_in_no_writable() {
    if !stage::is_possible().await {
        return;
    }
    for (target, name, args) in [
        ("hive.toml", "project/hive.toml", ["--config", "project/hive.toml", "--state", "."]),
        ("", "project/hive", ["--config", "hive.toml", "--state", "project/hive"]),
    ] {
        let mut stage = Stage::set("", "[agents.ada]\nwritable = [\"project\"]\n");
        stage.rig.user_dir("project");
        link(&stage, target, name);
        let mut command = stage.rig.user_command(&stage.rig.path("bin/hivectl"));
        command.arg("up").args(args);
        stage.spawn(command);
        let status = stage.ends().await;
        assert_eq!(status.code(), Some(2), "{}", stage.said);
        assert!(
            stage.said.contains(&format!("{name}, which an agent could have made")),
            "{}",
            stage.said
        );
    }
}

#[tokio::test]
async fn a_system_prompt_is_read_from_a_regular_file_and_over_no_link() {
    if !stage::is_possible().await {
        return;
    }
    let agents = "[agents.ada]\nwritable = [\"project\"]\nsystem_prompt = \"project/prompt.md\"\n";
    let by_link = |stage: &Stage| {
        key(&stage.rig);
        stage.rig.user_dir("project");
        link(stage, "operator/.ssh/id", "project/prompt.md");
    };
    let by_pipe = |stage: &Stage| {
        stage.rig.user_dir("project");
        let pipe = stage.rig.path("project/prompt.md");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        stage.rig.give_away(&pipe);
    };
    for (prepare, why) in [
        (&by_link as &dyn Fn(&Stage), "project/prompt.md\" cannot be used: it leads over the link"),
        (&by_pipe, "project/prompt.md\" cannot be used: it is not a regular file"),
    ] {
        let mut stage = Stage::set("", agents);
        prepare(&stage);
        let command = stage.command();
        stage.start(command).await;
        // Without its prompt the agent is not started, and everything else continues.
        stage.says("ada is not started: system_prompt").await;
        assert!(stage.said.contains(why), "{}", stage.said);
        assert!(!stage.rig.path("run/agents/ada/settings/system-prompt.md").exists());
        stage.end().await;
    }
}

#[tokio::test]
async fn an_agents_leftovers_do_not_lower_its_level() {
    if !stage::is_possible().await {
        return;
    }
    let mut stage = Stage::set("", "[agents.ada]\n[agents.bob]\n");
    let rig = &stage.rig;
    // Directories that cannot be deleted as they are.
    rig.user_file("agents/ada/tmp/x/y/file", "kept", 0o600);
    let mut deny = rig.user_command("chmod".as_ref());
    assert!(deny.args(["-R", "a-w", "agents/ada/tmp"]).status().await.expect("it runs").success());
    let mut deep = rig.user_command("sh".as_ref());
    let nested = "mkdir -p agents/bob/tmp && cd agents/bob/tmp && for i in $(seq 1500); do mkdir d && cd d || exit 1; done";
    assert!(deep.args(["-c", nested]).status().await.expect("it runs").success());
    // claude's own files, with which no claude starts.
    rig.user_dir("agents/ada/home");
    rig.user_file("agents/bob/home/.claude", "no directory", 0o600);
    let mut limited = rig.user_command("sh".as_ref());
    let up = stage.command();
    limited
        .args(["-c", "ulimit -n 256; exec \"$@\"", "sh"])
        .arg(up.as_std().get_program())
        .args(up.as_std().get_args());
    for (name, value) in up.as_std().get_envs() {
        limited.env(name, value.unwrap_or_default());
    }
    stage.start(limited).await;
    assert!(stage.said.contains("isolation: sandbox, by /"), "{}", stage.said);
    let (operator, mut watch) = (stage.rig.operator().await, stage.rig.watch().await);
    operator.send("ada", "hello").await;
    let ended = watch.kind("ada", EventKind::TurnEnded).await;
    assert_eq!(operator.turn(ended.turn_id).await.outcome(), TurnOutcome::Ok, "{}", stage.said);
    assert_eq!(operator.get_agent("ada").await.isolation(), Isolation::Sandbox);
    assert!(!stage.rig.path("agents/ada/tmp/x").exists());
    stage.end().await;
}

#[tokio::test]
async fn an_agent_that_cannot_be_started_is_not_started_at_a_weaker_level() {
    if !stage::is_possible().await {
        return;
    }
    let mut stage = Stage::set("", "[agents.ada]\n[agents.bob]\n");
    stage.rig.user_dir("agents/ada/state");
    let mut deny = stage.rig.user_command("chmod".as_ref());
    assert!(deny.args(["000", "agents/ada/state"]).status().await.expect("it runs").success());
    let command = stage.command();
    stage.start(command).await;
    assert!(stage.said.contains("isolation: sandbox, by /"), "{}", stage.said);
    stage.says("ada ended").await;
    // The other one works.
    let (operator, mut watch) = (stage.rig.operator().await, stage.rig.watch().await);
    operator.send("bob", "hello").await;
    watch.kind("bob", EventKind::TurnEnded).await;
    assert_eq!(operator.get_agent("bob").await.isolation(), Isolation::Sandbox);
    stage.end().await;
}

#[tokio::test]
async fn a_server_of_an_agents_own_making_shows_it_nothing() {
    if !stage::is_possible().await {
        return;
    }
    // A script whose first line names a directory or a file of the operator's.
    for target in ["operator/.config", "operator/.netrc"] {
        let agents = "[agents.ada]\nisolation = \"sandbox\"\nwritable = [\"project\"]\n\
                      [agents.ada.extra_mcp_servers.mine]\ncommand = \"project/server\"\n";
        let mut stage = Stage::set("", agents);
        let rig = &stage.rig;
        rig.user_file("operator/.config/token", "a token", 0o700);
        rig.user_file("operator/.netrc", "a token", 0o700);
        rig.user_file("project/server", &format!("#!{}\n", rig.path(target).display()), 0o755);
        let command = stage.command();
        stage.start(command).await;
        stage.attached("ada").await;
        let harness = stage.rig.the_one("ada", "hive");
        let mounts =
            std::fs::read_to_string(format!("/proc/{}/mountinfo", harness.as_raw_nonzero()))
                .expect("it runs");
        assert!(!mounts.contains("operator"), "{mounts}");
        stage.end().await;
    }
}

#[tokio::test]
async fn programs_of_the_operator_are_in_no_writable() {
    if !stage::is_possible().await {
        return;
    }
    let program =
        |stage: &Stage, name: &str| drop(stage.rig.user_file(name, "#!/bin/sh\nexit 0\n", 0o755));
    let prepare = |stage: &Stage| program(stage, "project/tell.sh");
    let agents = "[agents.ada]\nwritable = [\"project\"]\n[operator]\nnotify = { command = [\"./project/tell.sh\"] }\n";
    refused(
        agents,
        prepare,
        "writable = \"R/project\" contains the command of operator.notify, R/project/tell.sh",
    )
    .await;
    let agents = "[agents.ada]\nwritable = [\"project\"]\n[operator]\nnotify = { command = [\"sh\", \"R/project/tell.sh\"] }\n";
    refused(agents, prepare, "contains the command of operator.notify, R/project/tell.sh").await;
    // An agent could make it.
    let prepare = |stage: &Stage| drop(stage.rig.user_dir("project"));
    refused(agents, prepare, "contains the command of operator.notify, R/project/tell.sh").await;
    // A link to a program is as good as the program.
    let prepare = |stage: &Stage| {
        stage.rig.user_dir("project");
        link(stage, "bin/scripted-claude", "project/claude");
    };
    let mut stage = Stage::set("", "[agents.ada]\nwritable = [\"project\"]\n");
    prepare(&stage);
    let mut command = stage.command();
    command.args(["--claude", "project/claude"]);
    stage.spawn(command);
    let status = stage.ends().await;
    assert_eq!(status.code(), Some(2), "{}", stage.said);
    assert!(
        stage.said.contains("project\" contains a program of the hive")
            && stage.said.contains("/project/claude"),
        "{}",
        stage.said
    );
    let agents = "[agents.ada]\ndevices = [\"/dev/pts\"]\n";
    refused(
        agents,
        |_| (),
        "devices = \"/dev/pts\" is no device file and no directory of them, or it is a terminal",
    )
    .await;
}

/// Bubblewrap, before which an agent is as quick as can be: between the check of
/// `project/sub/.config` and its mount, `project/sub` becomes a link.
const QUICK: &str = "#!/bin/sh\ncase \"$*\" in\n*/agents/bob/*' serve')\n\
                     cd ROOT/project && if ! [ -L sub ]; then mv sub real && ln -s ../operator sub; fi ;;\nesac\n\
                     exec /usr/bin/bwrap \"$@\"\n";

#[tokio::test]
async fn a_directory_that_becomes_a_link_after_its_check_is_not_mounted_for_claude() {
    if !stage::is_possible().await
        || !host::allows("a program of another user (tests do not run as root)", host::is_root())
    {
        return;
    }
    let agents = "[agents.ada]\nwritable = [\"project\"]\n[agents.bob]\nwritable = [\"project/sub/.config\"]\n";
    let mut stage = Stage::set("", agents);
    let rig = &stage.rig;
    rig.user_file("operator/.config/token", "a token", 0o600);
    rig.user_dir("project/sub/.config");
    let dir = tempfile::tempdir().expect("a directory");
    let quick = dir.path().join("bwrap");
    std::fs::write(&quick, QUICK.replace("ROOT", &rig.dir().display().to_string()))
        .expect("a script");
    for path in [dir.path(), &quick] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("a mode");
    }
    let mut command = stage.command();
    command.env("PATH", format!("{}:/usr/bin:/bin", dir.path().display()));
    stage.start(command).await;
    stage.says("bob ended").await;
    stage
        .says("project/sub/.config is not what `hivectl up` checked before it made the sandbox")
        .await;
    // The next starts see the link.
    stage.says("bob ended (writable = ").await;
    assert!(stage.said.contains("/project/sub, which an agent could have made"), "{}", stage.said);
    let bob = stage.rig.operator().await.get_agent("bob").await;
    assert_eq!(bob.state(), HarnessState::Offline, "{bob:?}");
    stage.end().await;
}
