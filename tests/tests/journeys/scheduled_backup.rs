//! Backups that the broker makes by itself: one when it is due, and mail to the operator if it
//! fails.

use std::os::unix::fs::MetadataExt as _;

use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::{BackgroundTask, GetBrokerStatusRequest, SystemKind};
use hive_tests::rig::{DUO, Rig, soon};

fn hive(backup: &str) -> Rig {
    Rig::new(&format!("{DUO}[broker.backup]\n{backup}\n"))
}

/// Returns the task of the backups as soon as it has run and fits.
async fn task(rig: &Rig, fits: impl Fn(&BackgroundTask) -> bool) -> BackgroundTask {
    task_of(rig, "backup", fits).await
}

/// Returns a background task as soon as it has run and fits.
pub(crate) async fn task_of(
    rig: &Rig,
    name: &str,
    fits: impl Fn(&BackgroundTask) -> bool,
) -> BackgroundTask {
    let channel = rig.operator().await.channel();
    soon(&format!("the task {name} has run"), async {
        loop {
            let status = AdminServiceClient::new(channel.clone())
                .get_broker_status(GetBrokerStatusRequest::default())
                .await;
            let tasks = status.expect("a status").into_inner().background_tasks;
            if let Some(task) = tasks.into_iter().find(|task| task.name == name && fits(task)) {
                return task;
            }
        }
    })
    .await
}

fn names(rig: &Rig) -> Vec<String> {
    let entries = std::fs::read_dir(rig.path("state/backups")).expect("a directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string()).collect();
    names.sort();
    names.into_iter().map(|name| name.expect("text")).collect()
}

#[tokio::test]
async fn a_due_backup_is_made_once_and_can_be_restored() {
    let mut rig = hive("every = \"1h\"\nkeep = 2");
    // From the future: the clock was set back since.
    let old = ["hive-20200101T000000Z.db", "hive-20200102T000000Z.db", "hive-29990101T000000Z.db"];
    std::fs::create_dir_all(rig.path("state/backups")).expect("a directory");
    for name in &old[..2] {
        std::fs::write(rig.path("state/backups").join(name), "").expect("a file");
    }
    rig.start_broker().await;
    let sent = rig.agent("ada").await.send("bob", "kept").await;
    task(&rig, |task| task.last_run_time.is_some()).await;
    let made = names(&rig);
    assert_eq!((made.len(), made[0].as_str()), (2, old[1]), "{made:?}");

    // It is not due again when the broker is started. A second one of this second would have its
    // name.
    let dir = rig.path("state/backups");
    let inode = |name: &str| {
        let backup = dir.join(name);
        std::fs::metadata(backup).expect("it is there").ino()
    };
    let first = inode(&made[1]);
    rig.stop_broker().await;
    rig.start_broker().await;
    task(&rig, |task| task.last_run_time.is_some()).await;
    assert_eq!((names(&rig), inode(&made[1])), (made.clone(), first));
    // It is, if the last one is older, whatever has a later name.
    rig.stop_broker().await;
    let backups = rig.path("state/backups");
    std::fs::remove_file(backups.join(&made[1])).expect("removed");
    std::fs::write(backups.join(old[2]), "").expect("a file");
    rig.start_broker().await;
    task(&rig, |task| task.last_run_time.is_some()).await;
    let again = names(&rig);
    assert_eq!((again.len(), again[1].as_str()), (2, old[2]), "{again:?}");

    rig.stop_broker().await;
    let file = backups.join(&again[0]);
    let state = rig.path("state");
    let (file, state) = (file.to_str().expect("text"), state.to_str().expect("text"));
    let said = rig.hivectl(&["restore", file, "--state-dir", state]).await;
    assert_eq!(said.code, 0, "{said:?}");
    rig.start_broker().await;
    assert_eq!(rig.operator().await.delivery("bob", sent).await.agent, "bob");
    rig.end().await;
}

#[tokio::test]
async fn the_operator_is_told_that_backups_fail_and_that_they_work_again() {
    let mut rig = hive("dir = \"blocked\"");
    std::fs::write(rig.path("blocked"), "no directory").expect("a file");
    for _ in 0..2 {
        rig.start_broker().await;
        let failed = task(&rig, |task| task.failure_count > 0).await;
        assert!(failed.error.contains("cannot be used"), "{failed:?}");
        rig.stop_broker().await;
    }
    rig.start_broker().await;
    task(&rig, |task| task.failure_count > 0).await;
    let operator = rig.operator().await;
    let told = operator.notices("operator", SystemKind::Problem).await;
    // The first one: the other two starts had the same cause.
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].body.contains("A backup of the schedule failed"), "{told:?}");
    assert!(told[0].body.contains("blocked cannot be used"), "{told:?}");
    let status = rig.hivectl(&["status"]).await;
    assert_eq!(status.code, 8, "{status:?}");
    rig.stop_broker().await;

    std::fs::remove_file(rig.path("blocked")).expect("removed");
    rig.start_broker().await;
    task(&rig, |task| task.failure_count == 0).await;
    let operator = rig.operator().await;
    let told = operator.notices("operator", SystemKind::Problem).await;
    assert_eq!(told.len(), 1, "it takes the place of the unread one: {told:?}");
    assert_eq!(told[0].body, "Backups are made again.");
    rig.end().await;
}
