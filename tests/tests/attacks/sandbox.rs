//! Sandboxes: a process with one agent's socket and nothing else, and processes with another uid in
//! a separate namespace.
//!
//! What it is not: the confinement of `hivectl up`, which has its own test; here the host is as
//! strict, or as lax, as the attack needs it. Invariant: a process inside has the uid that the
//! kernel reports outside, and the socket alone decides for which agent it speaks.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use hive_tests::rig::{Process, Rig, Said, host, run};

use crate::authority_table::TABLE;
use crate::inside;

/// A uid that exists on no host.
const NOBODY_WE_KNOW: u32 = 48_212;
/// Maximum number of processes started until one gets the wanted number.
const STARTS_MAX: usize = 200;

async fn hive() -> Rig {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
    rig.start_broker().await;
    rig.operator().await.send("bob", "for bob's eyes").await;
    rig
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("the test runs")
}

fn open(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

/// Returns the attacker's report lines of this kind.
fn report_lines(said: &Said, kind: &str) -> Vec<String> {
    let report = inside::report(&said.stdout);
    assert!(!report.is_empty(), "the attacker reported nothing: {said:?}");
    let kind = format!("{kind} ");
    report.iter().filter_map(|line| line.strip_prefix(&kind)).map(str::to_owned).collect()
}

/// Returns the program in bubblewrap, with the libraries it needs and one socket.
fn bubblewrap(rig: &Rig, agent: &str) -> tokio::process::Command {
    let mut command = Process::command("bwrap".as_ref());
    command.args([
        "--die-with-parent",
        "--new-session",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--clearenv",
    ]);
    for folder in ["/usr", "/lib", "/lib64", "/bin", "/nix"] {
        command.args(["--ro-bind-try", folder, folder]);
    }
    command
        .args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind"])
        .arg(this_program())
        .arg("/attacker");
    command.arg("--bind").arg(rig.agent_socket(agent)).arg("/run/hive/hive.sock");
    let hidden = [
        rig.path("state"),
        rig.path("run"),
        rig.operator_socket(),
        rig.agent_socket("bob"),
        rig.path("hive.toml"),
    ];
    let hidden: Vec<String> = hidden.iter().map(|path| path.display().to_string()).collect();
    command.args([
        "--setenv",
        inside::SOCKET_ENV,
        "/run/hive/hive.sock",
        "--setenv",
        inside::PATHS_ENV,
        &hidden.join(":"),
    ]);
    command.arg("/attacker").args(inside::arguments());
    command
}

#[tokio::test]
async fn with_one_socket_bound_in_there_is_one_agent_and_nothing_else() {
    let mut trial = Process::command("bwrap".as_ref());
    trial.args([
        "--ro-bind",
        "/",
        "/",
        "--unshare-pid",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "true",
    ]);
    let possible = trial.status().await.is_ok_and(|status| status.success());
    if !host::allows("bubblewrap", possible) {
        return;
    }
    let rig = hive().await;
    let before = rig.on_disk();
    let said = run(bubblewrap(&rig, "ada")).await;
    // The socket has one name inside, and there is no other socket.
    assert_eq!(report_lines(&said, "socket"), ["/run/hive/hive.sock"]);
    assert!(report_lines(&said, "path").iter().all(|path| path.ends_with(" absent")), "{said:?}");
    let rpcs = report_lines(&said, "rpc");
    assert_eq!(rpcs.len(), TABLE.len(), "{said:?}");
    assert!(rpcs.contains(&"TopologyService/GetSelf is ada".to_owned()), "{rpcs:?}");
    for row in TABLE.iter().filter(|row| !row.agent) {
        let wanted = format!("{}/{} Unimplemented METHOD_NOT_SERVED", row.service, row.method);
        assert!(rpcs.contains(&wanted), "no `{wanted}` in {rpcs:?}");
    }
    // Changes to its own agent are in the log; no other agent is affected.
    let (mut before, mut after) = (before, rig.on_disk());
    for table in ["delivery", "message", "question", "reminder", "command"] {
        assert_eq!(before.remove(table), after.remove(table), "{table}");
    }
    assert_eq!(rig.operator().await.all_deliveries("bob").await.len(), 1);
}

#[tokio::test]
async fn a_root_of_a_user_namespace_has_no_rights_outside() {
    if !host::allows("being another user (tests do not run as root)", host::is_root()) {
        return;
    }
    let rig = hive().await;
    open(rig.dir(), 0o711);
    open(&rig.path("run/agents/ada"), 0o755);
    open(&rig.agent_socket("ada"), 0o666);
    open(&rig.operator_socket(), 0o666);
    let namespace = |program: &Path| {
        let mut command = Process::command("unshare".as_ref());
        command
            .uid(NOBODY_WE_KNOW)
            .gid(NOBODY_WE_KNOW)
            .args(["--user", "--map-root-user", "--mount", "--"])
            .arg(program);
        command
    };
    let possible = run(namespace("true".as_ref())).await.code == 0;
    if !host::allows("user namespaces for everybody", possible) {
        return;
    }
    let program = for_every_user(&rig);
    let before = rig.on_disk();
    for socket in [rig.agent_socket("ada"), rig.operator_socket()] {
        let mut command = namespace(&program);
        command.args(inside::arguments()).env(inside::SOCKET_ENV, &socket);
        let said = run(command).await;
        assert_eq!(report_lines(&said, "uid"), ["0"], "it takes itself for root");
        let rpcs = report_lines(&said, "rpc");
        assert_eq!(rpcs.len(), TABLE.len(), "{said:?}");
        let refused = rpcs.iter().all(|rpc| rpc.ends_with(" PermissionDenied PEER_NOT_TRUSTED"));
        assert!(refused, "{}: {rpcs:?}", socket.display());
    }
    rig.unchanged(&before, "a root of a namespace");
}

/// Returns the attacker's program at a path where another user can run it.
fn for_every_user(rig: &Rig) -> PathBuf {
    let copy = rig.path("attacker");
    // A hard link is enough on the same disk, and elsewhere a copy.
    if std::fs::hard_link(this_program(), &copy).is_err() {
        std::fs::copy(this_program(), &copy).expect("a copy of this program");
        open(&copy, 0o755);
    }
    copy
}

#[tokio::test]
async fn the_number_of_a_process_that_is_gone_is_worth_nothing() {
    const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";
    let can_choose =
        host::is_root() && std::fs::OpenOptions::new().write(true).open(LAST_PID).is_ok();
    if !host::allows("choosing the number of a process (tests do not run as root)", can_choose) {
        return;
    }
    let rig = hive().await;
    open(rig.dir(), 0o711);
    open(&rig.operator_socket(), 0o666);
    let program = for_every_user(&rig);
    // The operator is this process.
    let mut operator = inside::command(&program, &rig.operator_socket());
    operator.stdout(std::process::Stdio::piped()).env_remove(inside::SOCKET_ENV);
    let operator = operator.spawn().expect("it starts");
    let number = operator.id().expect("it runs");
    operator.wait_with_output().await.expect("it ends");
    let before = rig.on_disk();
    let mut taken = false;
    for _ in 0..STARTS_MAX {
        let mut heir = inside::command(&program, &rig.operator_socket());
        heir.uid(NOBODY_WE_KNOW).gid(NOBODY_WE_KNOW).stdout(std::process::Stdio::piped());
        std::fs::write(LAST_PID, (number - 1).to_string()).expect("root may");
        let heir = heir.spawn().expect("it starts");
        let same = heir.id() == Some(number);
        let said = heir.wait_with_output().await.expect("it ends");
        if !same {
            continue;
        }
        let report = inside::report(&String::from_utf8_lossy(&said.stdout));
        let rpcs: Vec<&String> = report.iter().filter(|line| line.starts_with("rpc ")).collect();
        assert_eq!(rpcs.len(), TABLE.len(), "{report:?}");
        assert!(
            rpcs.iter().all(|rpc| rpc.ends_with(" PermissionDenied PEER_NOT_TRUSTED")),
            "{rpcs:?}"
        );
        taken = true;
        break;
    }
    rig.unchanged(&before, "an heir of the operator's process");
    // Others start processes too, and may have been quicker each time.
    let _ = host::allows("taking over the number of a process", taken);
}

#[tokio::test]
async fn nothing_listens_under_an_abstract_name() {
    let mut rig = hive().await;
    rig.agent("ada").await.send("bob", "so that connections are there").await;
    let pid = rig.broker().pid().as_raw_nonzero();
    let own: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("the broker runs")
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|target| {
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']').map(str::to_owned)
        })
        .collect();
    let table = std::fs::read_to_string("/proc/net/unix").expect("the kernel lists it");
    let of_broker: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|columns| columns.get(6).is_some_and(|inode| own.iter().any(|own| own == inode)))
        .collect();
    let names: Vec<&str> = of_broker.iter().filter_map(|columns| columns.get(7).copied()).collect();
    assert!(
        names.iter().any(|name| name.ends_with("hived.sock")),
        "its sockets are seen: {names:?}"
    );
    assert!(
        names.iter().all(|name| name.starts_with('/')),
        "a name that no directory protects: {names:?}"
    );
}
