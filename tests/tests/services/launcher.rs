//! The launcher as a service: agents that are created at run time have a unit for as long as they
//! are wanted, and their parent is notified of what becomes of it.
//!
//! The tests play ada, the parent: root may use her socket, and her own unit is masked.

use std::path::Path;

use hive_core::reason::Reason;
use hive_proto::v1::diagnostics_service_client::DiagnosticsServiceClient;
use hive_proto::v1::event::Facts;
use hive_proto::v1::lifecycle_service_client::LifecycleServiceClient;
use hive_proto::v1::{
    Event, EventKind, GetHostJournalRequest, GetLogsRequest, HarnessLoss, HarnessState, Isolation,
    Message, RestartChildRequest, SystemKind, TurnOutcome,
};
use hive_tests::rig::{Client, Watch, fresh_id, soon};
use serde_json::json;

use crate::bed::Bed;

const CONFIG: &str = "[broker]\nsocket_group = \"hive-operators\"\nagent_unit = \"hive@{name}.service\"\n\
    [broker.limits]\non_demand_idle_ms = 200\n\
    [claude]\ncommand = \"/usr/bin/scripted-claude\"\n\
    [operator]\njournal_units = [\"hived.service\"]\n\
    [agents.ada]\nuids = [0]\ncapabilities = [\"read_host_journal\"]\n\
    tool_groups = [\"messaging\", \"inbox\", \"lifecycle\", \"diagnostics\"]\n";

/// A host on which the launcher runs.
struct Stage {
    bed: Bed,
    operator: Client,
    watch: Watch,
}

impl Stage {
    async fn set() -> Option<Self> {
        Self::set_with(CONFIG).await
    }

    async fn set_with(config: &str) -> Option<Self> {
        let bed = Bed::boot(config).await?;
        bed.run(&["systemctl", "mask", "--runtime", "hive@ada"]).await;
        bed.run(&["systemctl", "start", "hived", "hive-launcher"]).await;
        let operator = bed.client(None).await;
        let watch = Watch::new(bed.socket(None));
        Some(Self { bed, operator, watch })
    }

    async fn hivectl(&self, words: &[&str]) -> String {
        self.bed.run(&[&["hivectl"], words].concat()).await
    }

    /// Creates eve, and waits until her harness waits for mail.
    async fn with_eve(&self) {
        self.hivectl(&["agent", "create", "eve", "--parent", "ada"]).await;
        self.operator.does("eve", HarnessState::Idle).await;
    }

    /// Has ada request a restart of eve.
    async fn restart_eve(&self) {
        let ada = self.bed.client(Some("ada")).await;
        let request = RestartChildRequest { request_id: fresh_id(), name: "eve".to_owned() };
        let mut lifecycle = LifecycleServiceClient::new(ada.channel());
        lifecycle.restart_child(request).await.expect("eve is her child");
    }

    /// Waits until ada has a notice of this kind, and returns it.
    async fn ada_hears(&mut self, kind: SystemKind) -> Message {
        loop {
            let accepted = self.watch.kind("ada", EventKind::MessageAccepted).await;
            let delivery = self.operator.delivery("ada", accepted.message_id).await;
            let message = delivery.message.expect("a delivery has a message");
            if message.system_kind() == kind {
                return message;
            }
        }
    }

    /// Waits until the unit of eve is in this state.
    async fn eve_is(&self, state: &str) {
        soon(&format!("hive@eve is {state}"), async {
            while self.bed.property("hive@eve", "ActiveState").await != state {}
        })
        .await;
    }

    /// Waits until the harness of eve has left.
    async fn eve_leaves(&mut self) {
        let is_left = |event: &Event| {
            let Some(Facts::HarnessLost(lost)) = &event.facts else { return false };
            event.agent == "eve" && lost.loss() == HarnessLoss::Left
        };
        self.watch.until("eve leaves", is_left).await;
    }

    /// Returns how often systemd has started the unit of eve.
    async fn starts(&self) -> usize {
        let words = ["journalctl", "--no-pager", "-o", "cat", "-u", "hive@eve"];
        self.bed.run(&words).await.matches("Started hive@eve.service").count()
    }

    fn dir_of_eve(&self) -> std::path::PathBuf {
        self.bed.path("/var/lib/private/hive-agents/eve")
    }
}

#[tokio::test]
async fn the_unit_of_an_agent_follows_what_is_wanted() {
    let Some(mut stage) = Stage::set().await else { return };
    let launcher = stage.bed.main_pid("hive-launcher").await;
    let user = stage.bed.run(&["stat", "--format=%U %G", &format!("/proc/{launcher}")]).await;
    assert_eq!(user.trim_end(), "hive-launcher hive-launcher");
    stage.with_eve().await;
    // It has a user that systemd made, and its unit is what opens its socket to it.
    let pid = stage.bed.main_pid("hive@eve").await;
    let owner = std::fs::metadata(stage.dir_of_eve()).expect("its directory");
    let process = std::fs::metadata(stage.bed.path(&format!("/proc/{pid}"))).expect("it runs");
    let uid = |file: &std::fs::Metadata| std::os::unix::fs::MetadataExt::uid(file);
    assert_eq!(uid(&owner), uid(&process));
    assert_ne!(uid(&process), 0);
    assert_eq!(stage.operator.get_agent("eve").await.isolation(), Isolation::Unit);

    stage.hivectl(&["agent", "stop", "eve"]).await;
    stage.ada_hears(SystemKind::Stopped).await;
    stage.eve_is("inactive").await;
    stage.hivectl(&["agent", "start", "eve"]).await;
    assert_eq!(stage.ada_hears(SystemKind::Started).await.body, "eve was started.");
    stage.operator.does("eve", HarnessState::Idle).await;
    let before = stage.bed.main_pid("hive@eve").await;
    stage.restart_eve().await;
    assert_eq!(stage.ada_hears(SystemKind::Started).await.body, "eve was restarted.");
    let after = stage.bed.main_pid("hive@eve").await;
    assert_ne!(before, after);
    assert_eq!(stage.starts().await, 3);

    stage.operator.does("eve", HarnessState::Idle).await;
    let kill = ["systemctl", "kill", "--signal=KILL", "--kill-who=main", "hive@eve"];
    stage.bed.run(&kill).await;
    let crash = stage.ada_hears(SystemKind::Crashed).await;
    assert!(crash.body.contains("\n> signal: 9 (SIGKILL)\n"), "{}", crash.body);
    stage.operator.does("eve", HarnessState::Idle).await;

    stage.hivectl(&["agent", "retire", "eve"]).await;
    stage.eve_is("inactive").await;
    assert!(stage.dir_of_eve().exists());
    let said = stage.hivectl(&["agent", "retire", "eve", "--purge", "--yes"]).await;
    assert!(said.contains("its directories are deleted"), "{said}");
    assert!(!stage.dir_of_eve().exists());
    assert!(!stage.bed.path("/var/lib/hive-launcher/eve.json").exists());
    // The name is free.
    stage.with_eve().await;
    let said = stage.hivectl(&["agent", "retire", "eve", "--purge", "--yes"]).await;
    assert!(said.contains("its directories are deleted"), "{said}");
    assert!(!stage.dir_of_eve().exists());
    // The unit of ada was masked all the time.
    assert_eq!(stage.bed.property("hive@ada", "ActiveState").await, "inactive");
    let log = stage.bed.run(&["journalctl", "-o", "cat", "-u", "hive-launcher"]).await;
    assert_eq!(log.matches("hive@ada.service is masked").count(), 1, "{log}");
    stage.bed.end().await;
}

#[tokio::test]
async fn a_unit_on_demand_runs_while_there_is_mail() {
    let Some(mut stage) = Stage::set().await else { return };
    stage.with_eve().await;
    stage.hivectl(&["agent", "start", "eve", "--on-demand"]).await;
    stage.eve_leaves().await;
    stage.eve_is("inactive").await;
    assert_eq!(stage.bed.property("hive@eve", "Result").await, "success");
    for round in 0..3 {
        stage.operator.send("eve", "Hello.").await;
        stage.watch.kind("eve", EventKind::TurnEnded).await;
        stage.eve_leaves().await;
        stage.eve_is("inactive").await;
        assert_eq!(stage.starts().await, 2 + round, "once for each");
    }
    // Some of it comes while the harness leaves.
    for _ in 0..10 {
        stage.operator.send("eve", "Hello.").await;
        stage.watch.kind("eve", EventKind::TurnEnded).await;
    }
    let notices = stage.operator.notices("ada", SystemKind::Started).await;
    assert!(notices.is_empty(), "mail is no news: {notices:?}");
    stage.bed.end().await;
}

#[tokio::test]
async fn a_launcher_that_is_killed_neither_loses_nor_doubles_a_restart() {
    let Some(mut stage) = Stage::set().await else { return };
    stage.with_eve().await;
    let record = stage.bed.path("/var/lib/hive-launcher/eve.json");
    let read = |record: &Path| std::fs::read_to_string(record).expect("the record");
    let kill = ["systemctl", "kill", "--signal=KILL", "hive-launcher"];
    for round in 1..=4 {
        let before = read(&record);
        stage.restart_eve().await;
        // Before it can act, after it has written that the end is ordered, after the order, and
        // after the next start.
        match round {
            1 => {}
            2 => {
                soon("it acts", async {
                    while read(&record) == before {
                        tokio::task::yield_now().await;
                    }
                })
                .await;
            }
            3 => {
                soon("the unit ends", async {
                    while stage.bed.property("hive@eve", "ActiveState").await == "active" {}
                })
                .await;
            }
            _ => {
                soon("the unit is started", async { while stage.starts().await < 1 + round {} })
                    .await;
            }
        }
        stage.bed.run(&kill).await;
        assert_eq!(stage.ada_hears(SystemKind::Started).await.body, "eve was restarted.");
        stage.operator.does("eve", HarnessState::Idle).await;
        assert_eq!(stage.starts().await, 1 + round, "round {round}");
    }
    // Its units run on without it, and the next one leaves them alone.
    let pid = stage.bed.main_pid("hive@eve").await;
    stage.bed.run(&["systemctl", "restart", "hive-launcher"]).await;
    stage.hivectl(&["agent", "create", "fay"]).await;
    stage.operator.does("fay", HarnessState::Idle).await;
    assert_eq!(stage.bed.main_pid("hive@eve").await, pid);
    assert_eq!(stage.starts().await, 5);
    stage.bed.end().await;
}

/// One that waits has not read what the other one has recorded, so it must not go on from its own
/// records.
#[tokio::test]
async fn a_second_launcher_changes_nothing_until_the_first_one_is_gone() {
    let Some(mut stage) = Stage::set().await else { return };
    stage.with_eve().await;
    let unit = stage.bed.path("/usr/lib/systemd/system/hive-launcher.service");
    let unit = std::fs::read_to_string(unit).expect("it is installed");
    stage.bed.write("/run/systemd/system/second-launcher.service", &unit);
    stage.bed.run(&["systemctl", "daemon-reload"]).await;
    stage.bed.run(&["systemctl", "start", "second-launcher"]).await;
    let says = ["journalctl", "--no-pager", "-o", "cat", "-u", "second-launcher"];
    soon("the second one is refused", async {
        while !stage.bed.run(&says).await.contains("another launcher runs") {}
    })
    .await;
    stage.restart_eve().await;
    stage.ada_hears(SystemKind::Started).await;
    stage.operator.does("eve", HarnessState::Idle).await;
    let pid = stage.bed.main_pid("hive@eve").await;
    assert_eq!(stage.starts().await, 2);

    stage.bed.run(&["systemctl", "stop", "hive-launcher"]).await;
    stage.hivectl(&["agent", "create", "fay"]).await;
    stage.operator.does("fay", HarnessState::Idle).await;
    assert_eq!(stage.bed.main_pid("hive@eve").await, pid, "it is as the first one left it");
    stage.bed.run(&["systemctl", "start", "hive-launcher"]).await;
    // Both begin again, and one of them has the place.
    let kill = ["systemctl", "kill", "--signal=KILL", "hive-launcher", "second-launcher"];
    for round in 2..=4 {
        stage.restart_eve().await;
        stage.bed.tries(&kill).await;
        assert_eq!(stage.ada_hears(SystemKind::Started).await.body, "eve was restarted.");
        stage.operator.does("eve", HarnessState::Idle).await;
        assert_eq!(stage.starts().await, 1 + round, "round {round}");
    }
    stage.hivectl(&["agent", "stop", "eve"]).await;
    stage.ada_hears(SystemKind::Stopped).await;
    stage.hivectl(&["agent", "create", "gil"]).await;
    stage.operator.does("gil", HarnessState::Idle).await;
    assert_eq!(stage.bed.property("hive@eve", "ActiveState").await, "inactive");
    assert_eq!(stage.starts().await, 5);
    stage.bed.end().await;
}

/// Neither its park, nor mail in it, nor another launcher starts the unit.
#[tokio::test]
async fn a_parked_unit_on_demand_is_started_once_when_its_park_has_ended() {
    let claude = "[claude]\nenv = { SCRIPTED_CLAUDE_FILE = \"/etc/hive/script.json\" }\n";
    let config = CONFIG.replace("[claude]\n", claude);
    let Some(mut stage) = Stage::set_with(&config).await else { return };
    stage.with_eve().await;
    stage.hivectl(&["agent", "start", "eve", "--on-demand"]).await;
    stage.eve_leaves().await;
    stage.eve_is("inactive").await;
    assert_eq!(stage.starts().await, 1);

    let resets_at = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs() + 6;
    let script = json!([{"when": "", "steps": [
        {"first": "/var/lib/hive-agents/eve/state/limited", "steps": [{"fail": {"usage_limit": resets_at}}]},
        {"text": "Done."},
    ]}]);
    stage.bed.write("/etc/hive/script.json", &script.to_string());
    let first = stage.operator.send("eve", "Are you there?").await;
    stage.watch.kind("eve", EventKind::AgentParked).await;
    let park = stage.operator.get_agent("eve").await.park.expect("it is parked");
    assert_eq!(park.cause(), TurnOutcome::RateLimited);
    stage.eve_leaves().await;
    stage.eve_is("inactive").await;
    assert_eq!(stage.starts().await, 2);
    let second = stage.operator.send("eve", "And now?").await;
    stage.bed.run(&["systemctl", "kill", "--signal=KILL", "hive-launcher"]).await;

    let mut attached = Vec::new();
    for mail in [first, second] {
        let settled = |event: &Event| {
            let kinds = [EventKind::HarnessAttached, EventKind::DeliveryAcked];
            event.agent == "eve" && kinds.contains(&event.kind())
        };
        loop {
            let event = stage.watch.until("the mail is handled", settled).await;
            if event.kind() == EventKind::HarnessAttached {
                attached.push(event.time.expect("a time"));
            } else {
                assert_eq!(event.message_id, mail);
                break;
            }
        }
    }
    let until = park.until_time.expect("it ends by itself");
    assert_eq!(attached.len(), 1);
    let of = |time: &prost_types::Timestamp| (time.seconds, time.nanos);
    assert!(of(&attached[0]) >= of(&until), "{attached:?} is before {until:?}");
    stage.eve_leaves().await;
    stage.eve_is("inactive").await;
    assert_eq!(stage.starts().await, 3);
    stage.bed.end().await;
}

#[tokio::test]
async fn an_agent_reads_the_journal_of_its_child_and_of_a_unit_that_is_named() {
    let Some(stage) = Stage::set().await else { return };
    stage.with_eve().await;
    let channel = stage.bed.client(Some("ada")).await.channel();
    let mut diagnostics = DiagnosticsServiceClient::new(channel);
    let logs = GetLogsRequest { agent: "eve".to_owned(), lines: 500 };
    let logs = diagnostics.get_logs(logs).await.expect("her child").into_inner();
    let of_eve = |line: &String| line.contains("hive[") || line.contains("systemd[");
    assert!(!logs.lines.is_empty() && logs.lines.iter().all(of_eve), "{logs:?}");
    let mut journal =
        GetHostJournalRequest { unit: "hived.service".to_owned(), since: None, lines: 500 };
    let read = diagnostics.get_host_journal(journal.clone()).await.expect("named").into_inner();
    assert!(read.lines.iter().any(|line| line.contains("hived is ready")), "{read:?}");
    journal.since = Some(prost_types::Timestamp { seconds: 4_102_444_800, nanos: 0 });
    let read = diagnostics.get_host_journal(journal.clone()).await.expect("named").into_inner();
    assert_eq!(read.lines, [""; 0], "nothing since the year 2100");
    journal.unit = "hive-launcher.service".to_owned();
    let refused = diagnostics.get_host_journal(journal).await.expect_err("not named");
    assert_eq!(hive_proto::status::reason(&refused), Some(Reason::FieldInvalid));
    stage.bed.end().await;
}

/// systemd refuses the user of such a unit only when it starts it, and would try for ever.
#[tokio::test]
async fn an_agent_whose_user_would_have_too_long_a_name_is_refused_clearly() {
    let Some(stage) = Stage::set().await else { return };
    let name = "an-agent-with-a-name-of-34-letters";
    stage.hivectl(&["agent", "create", name]).await;
    let log = soon("it is refused", async {
        loop {
            let log = stage.bed.run(&["journalctl", "-o", "cat", "-u", "hive-launcher"]).await;
            if log.contains(&format!("{name} is not started: ")) {
                return log;
            }
        }
    })
    .await;
    assert!(log.contains("is longer than the 31 characters that systemd allows"), "{log}");
    let unit = format!("hive@{name}.service");
    assert_eq!(stage.bed.property(&unit, "ActiveState").await, "inactive");
    stage.bed.end().await;
}
