//! Hosts that allow less: a hive runs on each of them, and the level that it reaches is printed
//! with the reason.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;

use hive_proto::v1::{EventKind, Isolation, TurnOutcome};
use hive_tests::rig::host;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use tempfile::TempDir;
use tokio::process::Command;

use crate::stage::{self, Stage};

const AGENTS: &str = "[agents.ada]\n";

/// Runs a hive of ada by this command, and a turn; her isolation and its notes.
async fn runs(mut stage: Stage, command: Command, sentence: &str) -> (Isolation, Vec<String>) {
    stage.start(command).await;
    assert!(stage.said.contains(sentence), "no `{sentence}` in:\n{}", stage.said);
    let (operator, mut watch) = (stage.rig.operator().await, stage.rig.watch().await);
    operator.send("ada", "hello").await;
    let ended = watch.kind("ada", EventKind::TurnEnded).await;
    assert_eq!(operator.turn(ended.turn_id).await.outcome(), TurnOutcome::Ok, "{}", stage.said);
    let ada = operator.get_agent("ada").await;
    stage.end().await;
    (ada.isolation(), ada.isolation_notes)
}

/// `hivectl up` of the hive's user below another program of root's.
fn below(stage: &Stage, program: &str, arguments: &[&str]) -> Command {
    let up = stage.command();
    let (user, group) = stage.rig.user();
    let mut command = Command::new(program);
    command.args(arguments).args([
        "setpriv",
        &format!("--reuid={user}"),
        &format!("--regid={group}"),
        "--clear-groups",
        "--",
    ]);
    command
        .arg(up.as_std().get_program())
        .args(up.as_std().get_args())
        .env_clear()
        .current_dir(stage.rig.dir());
    for (name, value) in up.as_std().get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// A system call that answers with an error: its number, what an argument has to be for that, and
/// the error.
struct Denied {
    call: u32,
    argument: Option<(u32, Wanted)>,
    error: u32,
}

/// The condition on an argument, by its low 32 bits.
#[derive(Clone, Copy)]
enum Wanted {
    Equal(u32),
    HasBits(u32),
}

/// A filter of system calls (classic BPF, as bubblewrap's `--seccomp` reads it) in a descriptor
/// that programs inherit.
fn filter(denied: &[Denied]) -> OwnedFd {
    const LOAD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const JUMP_BITS: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERROR: u32 = 0x0005_0000;
    const ARGUMENTS: u32 = 16;
    let mut program: Vec<(u16, u8, u8, u32)> = Vec::new();
    for Denied { call, argument, error } in denied {
        program.push((LOAD, 0, 0, 0));
        match argument {
            None => program.push((JUMP_EQUAL, 0, 1, *call)),
            Some((number, value)) => {
                program.push((JUMP_EQUAL, 0, 3, *call));
                program.push((LOAD, 0, 0, ARGUMENTS + 8 * number));
                program.push(match value {
                    Wanted::Equal(value) => (JUMP_EQUAL, 0, 1, *value),
                    Wanted::HasBits(bits) => (JUMP_BITS, 0, 1, *bits),
                });
            }
        }
        program.push((RETURN, 0, 0, ERROR | error));
    }
    program.push((RETURN, 0, 0, ALLOW));
    let bytes: Vec<u8> = program
        .into_iter()
        .flat_map(|(code, yes, no, value)| {
            [code.to_ne_bytes().to_vec(), vec![yes, no], value.to_ne_bytes().to_vec()].concat()
        })
        .collect();
    let mut file =
        std::fs::File::from(memfd_create("filter", MemfdFlags::empty()).expect("a file in memory"));
    std::io::Write::write_all(&mut file, &bytes).expect("written");
    std::io::Seek::rewind(&mut file).expect("rewound");
    fcntl_setfd(&file, FdFlags::empty()).expect("inherited");
    file.into()
}

/// A hive where these system calls answer with errors.
async fn without_calls(denied: &[Denied], sentence: &str) -> Option<(Isolation, Vec<String>)> {
    use std::os::fd::AsRawFd as _;
    if !stage::is_possible().await
        || !host::allows("another user (tests do not run as root)", host::is_root())
    {
        return None;
    }
    let stage = Stage::set("", AGENTS);
    let filter = filter(denied);
    let number = filter.as_raw_fd().to_string();
    let command = below(
        &stage,
        "bwrap",
        &["--dev-bind", "/", "/", "--cap-add", "ALL", "--seccomp", &number, "--"],
    );
    Some(runs(stage, command, sentence).await)
}

#[tokio::test]
async fn without_landlock_an_agent_is_partly_isolated() {
    const LANDLOCK_CREATE_RULESET: u32 = 444;
    const NO_SUCH_CALL: u32 = 38;
    let denied = [Denied { call: LANDLOCK_CREATE_RULESET, argument: None, error: NO_SUCH_CALL }];
    let Some((isolation, notes)) = without_calls(&denied, "PARTLY ISOLATED: sandbox, by /").await
    else {
        return;
    };
    assert_eq!(isolation, Isolation::Partly);
    assert!(notes.iter().any(|note| note.contains("Landlock")), "{notes:?}");
}

#[tokio::test]
async fn without_descriptors_of_peers_the_race_is_named() {
    #[cfg(target_arch = "x86_64")]
    const GETSOCKOPT: u32 = 55;
    #[cfg(target_arch = "aarch64")]
    const GETSOCKOPT: u32 = 209;
    const SO_PEERPIDFD: u32 = 77;
    const NO_SUCH_OPTION: u32 = 92;
    let denied = [Denied {
        call: GETSOCKOPT,
        argument: Some((2, Wanted::Equal(SO_PEERPIDFD))),
        error: NO_SUCH_OPTION,
    }];
    let Some((isolation, notes)) = without_calls(&denied, "isolation: sandbox, by /").await else {
        return;
    };
    assert_eq!(isolation, Isolation::Sandbox);
    assert_eq!(notes.len(), 1, "{notes:?}");
}

#[tokio::test]
async fn without_user_namespaces_an_agent_is_not_isolated() {
    #[cfg(target_arch = "x86_64")]
    const CLONE: u32 = 56;
    #[cfg(target_arch = "aarch64")]
    const CLONE: u32 = 220;
    const NEW_USER_NAMESPACE: u32 = 0x1000_0000;
    const NOT_PERMITTED: u32 = 1;
    let denied = [Denied {
        call: CLONE,
        argument: Some((0, Wanted::HasBits(NEW_USER_NAMESPACE))),
        error: NOT_PERMITTED,
    }];
    let sentence = "NOT ISOLATED: bubblewrap is not allowed to here: ";
    let Some((isolation, notes)) = without_calls(&denied, sentence).await else { return };
    assert_eq!(isolation, Isolation::None);
    assert!(
        notes.iter().any(|note| note.contains("bubblewrap is not allowed to here")),
        "{notes:?}"
    );
}

#[tokio::test]
async fn without_bubblewrap_an_agent_is_not_isolated() {
    if !host::allows("mounts of one's own (tests do not run as root)", host::is_root()) {
        return;
    }
    let stage = Stage::set("", AGENTS);
    // Something that is no program is in its place, for this hive alone.
    let hide = "for place in /usr/bin/bwrap /usr/local/bin/bwrap; do [ ! -e $place ] || mount --bind /dev/null $place; done; exec \"$0\" \"$@\"";
    let command = below(&stage, "unshare", &["--mount", "sh", "-c", hide]);
    let (isolation, _) = runs(
        stage,
        command,
        "NOT ISOLATED: bubblewrap (bwrap) is not installed; install the package `bubblewrap`",
    )
    .await;
    assert_eq!(isolation, Isolation::None);
}

#[tokio::test]
async fn an_agent_that_has_filled_the_disk_by_its_temporary_files_starts_again() {
    if !stage::is_possible().await
        || !host::allows("mounts of one's own (tests do not run as root)", host::is_root())
    {
        return;
    }
    let stage = Stage::set("", AGENTS);
    stage.rig.user_dir("agents");
    let (user, group) = stage.rig.user();
    let fill = format!(
        "mount -t tmpfs -o nr_inodes=400 none agents && mkdir -p agents/ada/state agents/ada/home agents/ada/tmp/a/b || exit\n\
         n=0; while touch agents/ada/tmp/a/$n 2>/dev/null; do n=$((n+1)); done\n\
         chown -R {user}:{group} agents; chmod 0 agents/ada/tmp/a; exec \"$0\" \"$@\""
    );
    let command = below(&stage, "unshare", &["--mount", "sh", "-c", &fill]);
    let (isolation, _) = runs(stage, command, "isolation: sandbox, by /").await;
    assert_eq!(isolation, Isolation::Sandbox);
}

/// A bubblewrap with the options of version 0.6: it does not know some of those of today.
const OLD: &str = "#!/bin/sh\n\
    case \" $* \" in *' --help '*) /usr/bin/bwrap --help | grep -v -e --size -e --disable-userns -e --assert-userns -e -fd.FD.DEST; exit;; esac\n\
    for word in \"$@\"; do case $word in --) break;; --size | --disable-userns | --bind-fd | --ro-bind-fd) echo \"bwrap: Unknown option $word\" >&2; exit 1;; esac; done\n\
    exec /usr/bin/bwrap \"$@\"\n";

/// `hivectl up` with the old bubblewrap, which the hive's user cannot replace.
pub(crate) fn with_old_bubblewrap(stage: &Stage) -> (TempDir, Command) {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("a mode");
    let old = dir.path().join("bwrap");
    std::fs::write(&old, OLD).expect("a script");
    std::fs::set_permissions(&old, Permissions::from_mode(0o755)).expect("a mode");
    let mut command = stage.command();
    command.env("PATH", format!("{}:/usr/bin:/bin", dir.path().display()));
    (dir, command)
}

#[tokio::test]
async fn an_old_bubblewrap_makes_sandboxes_too() {
    if !stage::is_possible().await
        || !host::allows("a program of another user (tests do not run as root)", host::is_root())
    {
        return;
    }
    let stage = Stage::set("", AGENTS);
    let (dir, command) = with_old_bubblewrap(&stage);
    let sentence = format!("sandbox, by {}/bwrap", dir.path().display());
    let (isolation, notes) = runs(stage, command, &sentence).await;
    // The script is not there inside, so tasks have the fence alone.
    assert!(
        isolation == Isolation::Partly && notes.iter().any(|note| note.contains("shell tasks")),
        "{isolation:?} {notes:?}"
    );
}
