//! The example of an action, installed as its README says: ada asks for a commit, the operator
//! reads its preview and approves it, and the host switches to it, though the switch restarts the
//! broker. The user of the broker may start that one unit and nothing else.
//!
//! The test plays ada: root may use her socket. A stand-in for `nixos-rebuild` does what a switch
//! to another configuration of the broker does.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use hive_core::reason::Reason;
use hive_proto::v1::effect::Effect;
use hive_proto::v1::{
    ActionRunState, AskQuestionRequest, AskQuestionResponse, EventKind, RunActionEffect, SystemKind,
};
use hive_tests::binary::workspace;
use hive_tests::rig::call::{done, refused};
use hive_tests::rig::{Watch, host, request, soon};

use crate::bed::Bed;

/// The files of the example, and where they are installed.
const FILES: [(&str, &str); 3] = [
    ("rebuild.sh", "/usr/local/lib/hive-rebuild/rebuild.sh"),
    ("hive-rebuild@.service", "/etc/systemd/system/hive-rebuild@.service"),
    ("50-hive-rebuild.rules", "/etc/polkit-1/rules.d/50-hive-rebuild.rules"),
];
/// The git of this host, whose libraries every Debian tree of its suite has.
const GIT: &str = "/usr/bin/git";
/// On the PATH of the unit.
const REBUILD: &str = "/run/current-system/sw/bin/nixos-rebuild";
/// A switch that restarts the broker, unless the host runs this commit already.
const RESTARTS: &str = "#!/bin/sh\necho \"$*\" >>/run/built\n\
    cmp -s /etc/nixos/flake.nix /run/active && exit\ncp /etc/nixos/flake.nix /run/active\n\
    systemctl restart hived\n";
/// A switch that goes on until it is released.
const WAITS: &str = "#!/bin/sh\nread -r word </run/held\necho \"$word\" >/run/built\n";

/// Boots a host that has the example.
async fn installed(stand_in: &str) -> Option<Bed> {
    if !host::allows("git in a container (at /usr/bin/git)", Path::new(GIT).exists()) {
        return None;
    }
    let example = workspace().join("examples/rebuild");
    let config = std::fs::read_to_string(example.join("hive.toml")).expect("the example");
    let config = format!("[broker]\nsocket_group = \"hive-operators\"\n{config}");
    let bound = |file: &Path, place: &str| format!("--bind-ro={}:{place}", file.display());
    let mut arguments = vec![bound(Path::new(GIT), GIT)];
    arguments.extend(FILES.map(|(file, place)| bound(&example.join(file), place)));
    let bed = Bed::boot_as(&config, &arguments).await?;
    bed.run(&["mkdir", "-p", "/run/current-system/sw/bin"]).await;
    bed.write(REBUILD, stand_in);
    let program = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bed.path(REBUILD), program).expect("root may");
    bed.run(&["git", "init", "--quiet", "/etc/nixos"]).await;
    bed.run(&["systemctl", "start", "hived"]).await;
    Some(bed)
}

/// Runs git in the checkout as root; returns what it printed.
async fn git(bed: &Bed, words: &[&str]) -> String {
    let own = ["-c", "user.name=test", "-c", "user.email=test@example.org"];
    let words = [&["git", "-C", "/etc/nixos"], &own[..], words].concat();
    bed.run(&words).await.trim_end().to_owned()
}

async fn head(bed: &Bed) -> String {
    git(bed, &["rev-parse", "HEAD"]).await
}

/// Commits a flake with this text; returns the commit.
async fn commit(bed: &Bed, text: &str) -> String {
    bed.write("/etc/nixos/flake.nix", text);
    git(bed, &["add", "flake.nix"]).await;
    git(bed, &["commit", "--quiet", "--message", text]).await;
    head(bed).await
}

fn apply(commit: &str) -> AskQuestionRequest {
    let args = [("commit".to_owned(), commit.to_owned())].into();
    let action = "apply_commit".to_owned();
    request::effect(Effect::RunAction(RunActionEffect { action, args }))
}

/// Asserts that the user of the broker may not do this.
async fn is_denied(bed: &Bed, words: &[&str]) {
    let (done, said) = as_broker(bed, words).await;
    let denied = ["authentication required", "Access denied"];
    assert!(!done && denied.iter().any(|words| said.contains(words)), "{words:?}: {said}");
}

async fn as_broker(bed: &Bed, words: &[&str]) -> (bool, String) {
    bed.tries(&[&["runuser", "-u", "hive", "--"], words].concat()).await
}

#[tokio::test]
async fn an_approved_rebuild_outlives_the_restart_of_the_broker_that_it_makes() {
    let Some(bed) = installed(RESTARTS).await else { return };
    let first = commit(&bed, "first").await;
    let second = commit(&bed, "second").await;
    git(&bed, &["checkout", "--quiet", "--detach", &first]).await;
    let ada = bed.client(Some("ada")).await.channel();
    // The git of the preview reads a checkout that is root's, and knows this commit no better.
    let unknown = "0123456789abcdef0123456789abcdef01234567";
    let refusal = refused(&ada, &apply(unknown), Reason::FieldInvalid).await;
    assert!(refusal.message().contains("bad object"), "{refusal:?}");

    let asked: AskQuestionResponse = done(&ada, &apply(&second)).await;
    let question = asked.question.expect("a question");
    let id = question.id.to_string();
    let shown = bed.run(&["hivectl", "questions", "show", &id]).await;
    let command = format!("+ command: systemctl start --wait hive-rebuild@{second}.service");
    assert!(shown.contains(&command) && shown.contains("flake.nix | 2 +-"), "{shown}");

    let before = bed.main_pid("hived").await;
    let owner = std::fs::metadata(bed.path(&format!("/proc/{before}"))).expect("it runs").uid();
    assert_ne!(owner, 0, "the broker is not root");
    let mut watch = Watch::new(bed.socket(None));
    let digest = question.approval.expect("an approval").diff_digest;
    bed.run(&["hivectl", "answer", &id, "--choice", "approve", "--diff", &digest]).await;
    let ended = watch.kind("ada", EventKind::ActionEnded).await;
    assert_eq!(ended.detail, "apply_commit: exit status: 0");

    assert_eq!(head(&bed).await, second);
    assert_ne!(bed.main_pid("hived").await, before, "the switch restarted the broker");
    let built = std::fs::read_to_string(bed.path("/run/built")).expect("it was built");
    assert!(built.lines().all(|line| line == "switch --flake /etc/nixos"), "{built}");
    let operator = bed.client(None).await;
    let run = operator.question(question.id).await.approval.and_then(|approval| approval.run);
    let run = run.expect("it ran");
    assert_eq!((run.state(), run.runs), (ActionRunState::Done, 2), "before it and after it");
    let [notice] = &operator.notices("ada", SystemKind::ActionEnded).await[..] else {
        panic!("one notice")
    };
    let says = format!("apply_commit that you asked for (question {id}) has ended: exit status: 0");
    assert!(notice.body.contains(&says), "{}", notice.body);
    bed.end().await;
}

#[tokio::test]
async fn the_user_of_the_broker_may_start_the_rebuild_of_a_commit_and_nothing_else() {
    let Some(bed) = installed(WAITS).await else { return };
    bed.run(&["mkfifo", "/run/held"]).await;
    let commit = commit(&bed, "first").await;
    let unit = &*format!("hive-rebuild@{commit}.service");
    let start = ["systemctl", "--no-ask-password", "start", "--no-block", unit];
    let (started, said) = as_broker(&bed, &start).await;
    assert!(started, "{said}");
    soon("the switch begins", async {
        while bed.property(unit, "ActiveState").await != "activating" {}
    })
    .await;

    for other in [
        "hive-rebuild@main.service".to_owned(),
        format!("hive-rebuild@{}.service", &commit[1..]),
        format!("hive-rebuild@{commit}0.service"),
        format!("hive-rebuild@{}.service", commit.to_uppercase()),
        format!("hive-rebuild@{commit}.timer"),
        format!("xhive-rebuild@{commit}.service"),
        "hived.service".to_owned(),
        "hive-launcher.service".to_owned(),
        "hive@ada.service".to_owned(),
        "rescue.target".to_owned(),
    ] {
        is_denied(&bed, &["systemctl", "--no-ask-password", "start", &other]).await;
    }
    for verb in ["stop", "restart", "try-restart", "reload", "kill", "reset-failed", "freeze"] {
        is_denied(&bed, &["systemctl", "--no-ask-password", verb, unit]).await;
    }
    for words in [
        &["systemctl", "--no-ask-password", "set-property", unit, "TasksMax=1"][..],
        &["systemctl", "--no-ask-password", "enable", "hive-launcher.service"],
        &["systemctl", "--no-ask-password", "mask", unit],
        &["systemctl", "--no-ask-password", "daemon-reload"],
        // A unit of the right name, but with a program of the caller.
        &["systemd-run", "--no-ask-password", "--unit", unit, "/usr/bin/true"],
    ] {
        is_denied(&bed, words).await;
    }
    // The rule allows the start, and systemd keeps all others running.
    let (isolated, said) =
        as_broker(&bed, &["systemctl", "--no-ask-password", "isolate", unit]).await;
    assert!(!isolated && said.contains("may not be isolated"), "{said}");
    assert_eq!(bed.property("hived", "ActiveState").await, "active");
    assert_eq!(bed.property(unit, "ActiveState").await, "activating");
    bed.write("/run/held", "released\n");
    soon("the switch ends", async {
        while bed.property(unit, "ActiveState").await == "activating" {}
    })
    .await;
    assert_eq!(bed.property(unit, "Result").await, "success");
    assert_eq!(
        std::fs::read_to_string(bed.path("/run/built")).expect("it was built"),
        "released\n"
    );
    bed.end().await;
}
