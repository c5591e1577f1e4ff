//! A disk that fails or is slow: the page says so, and is there.

use std::path::PathBuf;

use hive_tests::rig::failing_disk::{FailingDisk, Failure};
use hive_tests::rig::{DUO, Rig};

use crate::scrape::shows;

const METRICS: &str = "[broker.metrics]\nsocket = \"metrics.sock\"\n";

async fn hive() -> (Rig, PathBuf, Vec<PathBuf>) {
    let mut rig = Rig::new(&format!("{METRICS}{DUO}"));
    rig.start_broker().await;
    let files = ["state/hive.db", "state/hive.db-wal"].map(|name| rig.path(name)).to_vec();
    let socket = rig.path("metrics.sock");
    (rig, socket, files)
}

#[tokio::test]
async fn a_database_that_fails_is_shown_and_counts_go_on_after_it() {
    let (mut rig, socket, files) = hive().await;
    let operator = rig.operator().await;
    operator.send("ada", "before").await;
    let before = shows(&socket, "a message is shown", |page| {
        page.value("hive_inbox_deliveries{agent=\"ada\"}") == 1.0
    })
    .await;
    let pid = rig.broker().pid();
    let Some(disk) = FailingDisk::under(pid, &files, Failure::Syncs).await else { return };
    operator.try_send("ada", "refused").await.expect_err("the disk fails");
    let failed =
        shows(&socket, "the fault is shown", |page| page.value("hive_database_usable") == 0.0)
            .await;
    assert!(!failed.text.contains("hive_inbox_deliveries"), "{}", failed.text);
    let commits = "hive_commit_duration_seconds_count";
    assert!(failed.value(commits) >= before.value(commits));
    disk.heal().await;
    let healed = shows(&socket, "the recovery is shown", |page| {
        page.value("hive_database_usable") == 1.0
            && page.samples.contains_key("hive_inbox_deliveries{agent=\"ada\"}")
    })
    .await;
    assert!(healed.value(commits) >= failed.value(commits), "a counter never goes down");
    rig.end().await;
}

#[tokio::test]
async fn a_slow_disk_is_in_the_times_of_syncs() {
    let (mut rig, socket, files) = hive().await;
    let operator = rig.operator().await;
    let above = |page: &crate::scrape::Page, family: &str| {
        page.value(&format!("{family}_count")) - page.value(&format!("{family}_bucket{{le=\"1\"}}"))
    };
    let pid = rig.broker().pid();
    let Some(disk) = FailingDisk::under(pid, &files, Failure::SlowSyncs(2)).await else { return };
    operator.send("ada", "slowly").await;
    disk.heal().await;
    let page = shows(&socket, "a slow sync is shown", |page| {
        above(page, "hive_commit_sync_duration_seconds") >= 1.0
    })
    .await;
    assert!(above(&page, "hive_commit_duration_seconds") >= 1.0, "{}", page.text);
    assert!(page.value("hive_commit_sync_duration_seconds_sum") >= 2.0, "{}", page.text);
    rig.end().await;
}
