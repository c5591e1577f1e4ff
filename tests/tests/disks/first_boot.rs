//! The first boot, call by call: what it syncs, and what a kill or a failing disk leaves.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;

use hive_tests::rig::Rig;
use hive_tests::rig::failing_disk::{CallTrace, Failure, Injected};
use hive_tests::rig::host;

/// Syncs of a first boot before the broker answers: the database, and its name.
const SYNCS_MAX: usize = 2;
/// Calls that change a file or its name, and those that open one.
const CALLS: &str = "openat,write,pwrite64,ftruncate,unlink,rename,fsync,fdatasync";
/// A kill is tried at each call of this distance; the disk of the tests tries every operation.
const STRIDE: usize = 3;

fn new_rig() -> Rig {
    Rig::new("[agents.ada]\n")
}

fn state(rig: &Rig) -> PathBuf {
    rig.path("state")
}

/// The names that a first boot uses in the state directory, and the directory.
fn files(rig: &Rig) -> Vec<PathBuf> {
    let names = ["create.tmp", "create.tmp-wal", "hive.db", "hive.db-wal", "hive.db-shm"];
    names.iter().map(|name| state(rig).join(name)).chain([state(rig)]).collect()
}

fn left(rig: &Rig) -> Vec<String> {
    let entries = std::fs::read_dir(state(rig)).expect("a state directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The broker starts, and takes mail that is there after a kill.
async fn works(rig: &mut Rig) {
    rig.start_broker().await;
    let id = rig.operator().await.send("ada", "hello").await;
    rig.crash_broker().await;
    let there = rig.operator().await.delivery("ada", id).await;
    assert_eq!(there.message.expect("a message").body, "hello");
    rig.stop_broker().await;
}

#[tokio::test]
async fn a_first_boot_syncs_the_database_and_then_its_name_before_anybody_can_connect() {
    let mut rig = new_rig();
    let trace = CallTrace::new(&format!("{CALLS},listen"));
    if !host::allows(
        "strace",
        rig.try_start_broker_by(trace.around(&rig.broker_command())).await.is_ok(),
    ) {
        return;
    }
    rig.stop_broker().await;
    let calls = trace.end().await;
    let place = |what: &str| {
        let found = calls.iter().position(|call| call.contains(what));
        found.unwrap_or_else(|| panic!("{what}: {calls:#?}"))
    };
    let listens = place("listen(");
    let before = &calls[..listens];
    let syncs: Vec<_> = before.iter().filter(|call| call.contains("sync(")).collect();
    assert!(syncs.len() <= SYNCS_MAX, "{syncs:#?}");
    let [database, name] = &syncs[..] else { panic!("{syncs:#?}") };
    assert!(database.contains("state/create.tmp>"), "{database}");
    assert!(name.contains("state>"), "{name}");
    let renamed = place("rename(");
    let written = calls
        .iter()
        .rposition(|call| call.contains("pwrite64(") && call.contains("state/create.tmp>"));
    let order = [written.expect("it is written"), place(database), renamed, place(name), listens];
    assert!(order.is_sorted(), "{order:?}: {calls:#?}");
}

#[tokio::test]
async fn a_boot_on_existing_state_syncs_nothing() {
    let mut rig = new_rig();
    rig.start_broker().await;
    rig.stop_broker().await;
    let trace = CallTrace::new("fsync,fdatasync,write");
    if !host::allows(
        "strace",
        rig.try_start_broker_by(trace.around(&rig.broker_command())).await.is_ok(),
    ) {
        return;
    }
    rig.stop_broker().await;
    let calls = trace.end().await;
    let ready = calls.iter().position(|call| call.contains("hived is ready"));
    let before = &calls[..ready.expect("it says that it is ready")];
    assert!(before.iter().all(|call| !call.contains("sync(")), "{calls:#?}");
}

#[tokio::test]
async fn a_first_boot_that_is_killed_at_any_call_is_begun_again() {
    let mut rig = new_rig();
    let mut killed = 0;
    for number in (1..).step_by(STRIDE) {
        let kill = Injected::at(CALLS, "signal=KILL", number);
        let command = kill.around(&files(&rig), &rig.broker_command());
        match rig.try_start_broker_by(command).await {
            Err(status) if status.signal() == Some(9) => killed += 1,
            Err(status) => {
                assert!(!host::allows("strace", false), "hived ended with {status}");
                return;
            }
            Ok(()) => {
                rig.kill_broker().await;
                break;
            }
        }
        works(&mut rig).await;
        let left = left(&rig);
        assert!(left.iter().all(|name| !name.starts_with("create.tmp")), "{left:?}");
        std::fs::remove_dir_all(state(&rig)).expect("removed");
    }
    assert!(killed > 20, "{killed}");
}

#[tokio::test]
async fn a_first_boot_on_a_failing_disk_says_so_and_leaves_nothing() {
    let mut rig = new_rig();
    let database = [state(&rig).join("create.tmp")];
    for failure in [Failure::Syncs, Failure::Writes, Failure::Full] {
        let said = rig.refused_broker_by(failure.around(&database, &rig.broker_command())).await;
        assert!(said.contains("state/hive.db cannot be opened"), "{failure:?}: {said}");
        let cause = if failure == Failure::Full { "the disk is full" } else { "the disk fails" };
        assert!(said.contains(cause), "{failure:?}: {said}");
        assert_eq!(left(&rig), ["hived.lock"], "{failure:?}");
    }
    for (call, error) in [("rename", "EACCES"), ("openat", "EACCES"), ("openat", "ENOSPC")] {
        let refuse = Injected::at(call, &format!("error={error}"), 1);
        let command = refuse.around(&database, &rig.broker_command());
        let said = rig.refused_broker_by(command).await;
        assert!(said.contains("state cannot be used"), "{call} {error}: {said}");
        assert_eq!(left(&rig), ["hived.lock"], "{call} {error}");
    }
    works(&mut rig).await;
}
