//! The real broker on a disk that fails under it: it refuses loudly, loses nothing that it has
//! answered, and recovers by itself.
//!
//! The store's behaviour at each single point is tested with `hive-disk`; here it is seen from
//! outside, through the wire and through `hivectl`.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod first_boot;
mod mail;
mod migration;

use std::cell::Cell;
use std::path::PathBuf;

use hive_proto::connect::connect;
use hive_tests::cases;
use hive_tests::rig::failing_disk::{FailingDisk, Failure, SyncTrace};
use hive_tests::rig::{Client, Rig, host, soon};
use hive_tests::scripted::appear;
use mail::{Mail, Told};
use rustix::process::{Pid, Signal, kill_process};

const ADA: &str = "[agents.ada]\n";

async fn started() -> Rig {
    let mut rig = Rig::new(ADA);
    rig.start_broker().await;
    rig
}

fn files(rig: &Rig) -> Vec<PathBuf> {
    ["state/hive.db", "state/hive.db-wal"].map(|name| rig.path(name)).to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_one_fdatasync_of_the_log() {
    one_fdatasync(Rig::new(ADA)).await;
}

/// The build with fail points, which is of another set of features.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_a_build_with_fail_points_is_one_fdatasync_of_the_log() {
    let programs = std::env::var_os("HIVE_TEST_FAULTS_DIR").map(PathBuf::from);
    if !host::allows("programs with fail points (HIVE_TEST_FAULTS_DIR)", programs.is_some()) {
        return;
    }
    one_fdatasync(Rig::new(ADA).with_programs(&programs.expect("it is set"))).await;
}

async fn one_fdatasync(mut rig: Rig) {
    rig.start_broker().await;
    let mut mail = Mail::of(&rig).await;
    mail.accepted("before").await;
    let Some(trace) = SyncTrace::of(rig.broker().pid(), &files(&rig)).await else { return };
    for number in 0..3 {
        mail.accepted(&format!("message {number}")).await;
    }
    let calls = trace.end().await;
    // An fsync would also write the times of the file.
    assert!(calls.iter().all(|call| call.contains("fdatasync(")), "{calls:?}");
    assert_eq!(calls.len(), 3, "{calls:?}");
}

/// The disk fails and heals, twice over; then the broker is killed.
async fn outlived(failure: Failure, by: &str) {
    let mut rig = started().await;
    let mut mail = Mail::of(&rig).await;
    for round in 0..2 {
        for number in 0..3 {
            mail.accepted(&format!("round {round}, before, {number}")).await;
        }
        let Some(disk) = FailingDisk::under(rig.broker().pid(), &files(&rig), failure).await else {
            return;
        };
        mail.refused(&format!("round {round}, refused")).await;
        assert_eq!(mail.health().await, Told::NotServing);
        let status = mail.status().await;
        assert!(!status.storage_ok && status.storage_error.contains(by), "{status:?}");
        let refusal = mail.try_list().await.expect_err("nothing is answered from the file");
        mail::is_unavailable(&refusal);
        let said = rig.hivectl(&["send", "ada", "hello"]).await;
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.stderr.contains("STORAGE_UNAVAILABLE") && said.stdout.is_empty(), "{said:?}");
        let said = rig.hivectl(&["status"]).await;
        assert_eq!(said.code, 8, "{said:?}");
        assert!(said.stdout.contains("the database cannot be written"), "{said:?}");
        disk.heal().await;
        assert_eq!(mail.health().await, Told::Serving);
        assert!(mail.status().await.storage_ok);
        mail.all_there().await;
        mail.again().await;
        mail.all_there().await;
    }
    rig.crash_broker().await;
    mail.reconnect(&rig).await;
    mail.all_there().await;
    rig.end().await;
}

cases! {
    failing_syncs_are_outlived => outlived(Failure::Syncs, "I/O error"),
    failing_writes_are_outlived => outlived(Failure::Writes, "I/O error"),
    a_full_disk_is_outlived => outlived(Failure::Full, "full"),
}

#[tokio::test]
async fn a_killed_brokers_unsynced_write_is_no_receipt_and_harms_nothing() {
    let mut rig = started().await;
    let mut mail = Mail::of(&rig).await;
    for round in 0..3 {
        mail.accepted(&format!("round {round}")).await;
        let Some(disk) = FailingDisk::under(rig.broker().pid(), &files(&rig), Failure::Syncs).await
        else {
            return;
        };
        mail.refused(&format!("round {round}, refused")).await;
        rig.kill_broker().await;
        disk.heal().await;
        rig.start_broker().await;
        mail.reconnect(&rig).await;
        mail.all_there().await;
        mail.again().await;
        mail.all_there().await;
    }
}

#[tokio::test]
async fn a_broker_whose_disk_fails_at_the_start_refuses_to_start_and_loses_nothing() {
    let mut rig = started().await;
    let mut mail = Mail::of(&rig).await;
    for failure in [Failure::Syncs, Failure::Writes, Failure::Full] {
        mail.accepted(&format!("before {failure:?}")).await;
        // Killed, so that there is a log to be synced and folded.
        rig.kill_broker().await;
        let said = rig.refused_broker_by(failure.around(&files(&rig), &rig.broker_command())).await;
        assert!(
            said.contains("hive.db") || said.contains("state directory"),
            "{failure:?}: {said}"
        );
        assert!(!rig.operator_socket().exists(), "{failure:?}: no socket is left");
        rig.start_broker().await;
        mail.reconnect(&rig).await;
        mail.all_there().await;
    }
}

#[tokio::test]
async fn a_call_that_comes_while_the_broker_starts_waits_until_it_has_started() {
    let mut rig = started().await;
    let id = rig.operator().await.send("ada", "before").await;
    // Killed, so that the start syncs a log, which takes long.
    rig.kill_broker().await;
    let (socket, has_started) = (rig.operator_socket(), Cell::new(false));
    std::fs::remove_file(&socket).expect("the killed broker has left it");
    let slow = Failure::SlowSyncs(2).around(&files(&rig), &rig.broker_command());
    let start = async {
        let started = rig.try_start_broker_by(slow).await;
        has_started.set(true);
        started.map_err(drop)
    };
    let early = async {
        appear::wait(&socket).await.expect("the directory can be watched");
        // Its file is there just before it listens.
        let channel = loop {
            match connect(&socket).await {
                Ok(channel) => break channel,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        let is_early = !has_started.get();
        let delivery = Client::new(channel).delivery("ada", id).await;
        assert!(is_early, "the socket is there before the broker has started");
        assert_eq!(delivery.message.expect("a message").body, "before");
        Ok(())
    };
    // If the broker does not start, there is no socket to wait for.
    let both = async { tokio::try_join!(start, early) };
    if !host::allows("strace", soon("both", both).await.is_ok()) {
        return;
    }
    // Its parent is strace, which ends with it.
    let status = Mail::of(&rig).await.status().await;
    let pid = i32::try_from(status.pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::KILL).expect("killed");
    rig.broker_ended().await;
}

#[tokio::test]
async fn slow_syncs_hold_up_receipts_and_no_reader() {
    let mut rig = started().await;
    let mut mail = Mail::of(&rig).await;
    mail.accepted("before").await;
    // Longer than the test may take: it is the detaching that ends the wait.
    let Some(disk) =
        FailingDisk::under(rig.broker().pid(), &files(&rig), Failure::SlowSyncs(40)).await
    else {
        return;
    };
    let slow = mail.queued("slow");
    // Asked over the same connection, so the send was there before.
    assert_eq!(mail.try_list().await.expect("a reader does not wait").len(), 1);
    assert!(mail.status().await.storage_ok, "slow is not broken");
    assert!(!slow.is_finished(), "no receipt before the sync");
    disk.heal().await;
    let id = soon("the receipt", slow).await.expect("no panic").expect("accepted");
    assert!(mail.try_list().await.expect("listed").contains_key(&id));
}
