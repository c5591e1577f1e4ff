//! `hivectl supervise --systemd` with a scripted `systemctl`: which orders it gives, what it
//! reports, and that a launcher that is killed at any point neither loses nor doubles a restart.
//!
//! The script keeps a unit that is up in a file, as `systemctl show` prints it. The tests wait for
//! the reports that reach the broker. `tests/tests/services` has a real systemd.

use std::path::{Path, PathBuf};

use hive_in_process::Recorded;
use hive_proto::v1::lifecycle_service_client::LifecycleServiceClient;
use hive_proto::v1::{
    FinishPurgeRequest, HarnessReport, ReportHarnessRequest, RestartChildRequest,
};
use hive_tests::rig::fresh_id;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::hive::Hive;
use super::run::{assert_contains, ended, hivectl, signal};

const SYSTEMCTL: &str = r#"
shift 2
for unit; do :; done
state() { printf 'Id=%s\n%s\nJob=\n' "$unit" "$1" > new; mv new "units/$unit"; }
# Kills the launcher, once, if the test wants that at this point.
point() { [ "$(cat kill 2>/dev/null)" != "$*" ] || { rm kill; kill -9 $PPID; exit 1; }; }
case $1 in
  show)
    case $unit in
      *'*'*) for file in units/*; do [ ! -e "$file" ] || { cat "$file"; echo; }; done ;;
      *) echo "LoadState=$(cat load 2>/dev/null)"; echo "User=hive-x" ;;
    esac ;;
  start)
    point before start
    echo "start $unit" >> orders
    state "$(printf 'ActiveState=active\nSubState=running\nInvocationID=i%s\nNRestarts=0' "$(wc -l < orders)")"
    point after start ;;
  stop)
    point before stop
    echo "stop $unit" >> orders
    if [ -e stubborn ]; then state "ActiveState=failed"; else rm -f "units/$unit"; fi
    point after stop ;;
  reset-failed) echo "reset-failed $unit" >> orders; rm -f "units/$unit" ;;
  clean) echo "clean $unit" >> orders ;;
esac
"#;

/// Ada may restart bob.
const CONFIG: &str =
    "[agents.ada]\ntool_groups = [\"lifecycle\"]\n[agents.bob]\nparent = \"ada\"\n";

/// A host with a hive and a scripted systemd.
struct Host {
    hive: Hive,
    dir: tempfile::TempDir,
}

impl Host {
    fn new(config: &str) -> Self {
        let host = Self { hive: Hive::new(config), dir: tempfile::tempdir().expect("a directory") };
        for folder in ["units", "bin"] {
            std::fs::create_dir(host.path(folder)).expect("a directory");
        }
        host.script("systemctl", SYSTEMCTL);
        host.script("journalctl", "echo \"words of $6\"");
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// By another process: a program that this one has written cannot be run while a fork of
    /// another test still has it open for writing.
    fn script(&self, name: &str, body: &str) {
        let text = format!("#!/bin/sh\ncd '{}' || exit 1\n{body}", self.dir.path().display());
        std::fs::write(self.path("script"), text).expect("a file");
        let mut install = std::process::Command::new("install");
        install.args(["-m", "755"]).arg(self.path("script")).arg(self.path("bin").join(name));
        assert!(install.status().expect("install runs").success());
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path("test"), text).expect("a file");
        std::fs::rename(self.path("test"), self.path(name)).expect("a file");
    }

    /// Puts a unit into a state.
    fn unit(&self, agent: &str, state: &str) {
        let unit = format!("hive@{agent}.service");
        self.write(&format!("units/{unit}"), &format!("Id={unit}\n{state}\n"));
    }

    fn command(&self) -> Command {
        let mut command = hivectl(&self.hive.socket());
        command.arg("supervise").arg("--systemd").env("STATE_DIRECTORY", self.path("records"));
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command
    }

    fn supervise(&self) -> Child {
        self.command().spawn().expect("the binary runs")
    }

    /// Returns the orders so far, about one agent.
    fn orders(&self, agent: &str) -> Vec<String> {
        let orders = std::fs::read_to_string(self.path("orders")).unwrap_or_default();
        let end = format!(" hive@{agent}.service");
        orders.lines().filter_map(|line| line.strip_suffix(&end).map(str::to_owned)).collect()
    }

    /// Has ada request a restart of bob.
    async fn restart_bob(&self) {
        let ada = self.hive.client("ada").await;
        let request = RestartChildRequest { request_id: fresh_id(), name: "bob".to_owned() };
        let mut lifecycle = LifecycleServiceClient::new(ada.channel());
        lifecycle.restart_child(request).await.expect("bob is her child");
    }

    /// Waits for the next report of this kind about an agent, and returns it.
    async fn reported(&self, agent: &str, report: HarnessReport) -> ReportHarnessRequest {
        let pick = |call: &Recorded| {
            let request: ReportHarnessRequest = call.request("ReportHarness")?;
            (request.name == agent && request.report() == report).then_some(request)
        };
        self.hive.next(&format!("{agent}: {report:?}"), pick).await
    }
}

/// Ends a launcher cleanly.
async fn end(launcher: Child) {
    signal(&launcher, Signal::TERM);
    let ran = ended(launcher).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_contains(&ran.err, "the units of agents run on");
}

#[tokio::test]
async fn units_are_started_and_stopped_as_is_wanted() {
    let host = Host::new(CONFIG);
    let launcher = host.supervise();
    let started = host.reported("bob", HarnessReport::Started).await;
    assert_eq!(started.restart_count, 0);
    host.hive.operate(&["agent", "stop", "bob"]).await;
    host.reported("bob", HarnessReport::Stopped).await;
    host.hive.operate(&["agent", "start", "bob"]).await;
    host.reported("bob", HarnessReport::Started).await;
    assert_eq!(host.orders("bob"), ["start", "stop", "start"]);

    host.restart_bob().await;
    host.restart_bob().await;
    while host.reported("bob", HarnessReport::Started).await.restart_count != 2 {}
    let orders = host.orders("bob");
    let starts = orders.iter().filter(|order| *order == "start").count();
    assert!((3..=4).contains(&starts), "one restart for both, or one for each: {orders:?}");

    // Agents that run on demand wait for mail.
    host.hive.operate(&["agent", "create", "cy"]).await;
    host.reported("cy", HarnessReport::Started).await;
    host.hive.operate(&["agent", "stop", "cy"]).await;
    host.reported("cy", HarnessReport::Stopped).await;
    host.hive.operate(&["agent", "start", "cy", "--on-demand"]).await;
    host.hive.operate(&["agent", "create", "dee"]).await;
    host.reported("dee", HarnessReport::Started).await;
    assert_eq!(host.orders("cy"), ["start", "stop"]);
    host.hive.operate(&["send", "cy", "Hello."]).await;
    host.reported("cy", HarnessReport::Started).await;

    // The next launcher finds all as it is.
    end(launcher).await;
    let launcher = host.supervise();
    host.hive.operate(&["agent", "create", "eve"]).await;
    host.reported("eve", HarnessReport::Started).await;
    assert_eq!(host.orders("bob"), orders);
    assert_eq!(host.orders("cy"), ["start", "stop", "start"]);
    end(launcher).await;
}

#[tokio::test]
async fn a_launcher_that_is_killed_neither_loses_nor_doubles_a_restart() {
    let host = Host::new(CONFIG);
    let mut launcher = host.supervise();
    host.reported("bob", HarnessReport::Started).await;
    let points = ["before stop", "after stop", "before start", "after start"];
    for (round, point) in (1..).zip(points) {
        host.write("kill", point);
        host.restart_bob().await;
        assert!(!launcher.wait().await.expect("it ends").success(), "{point}");
        launcher = host.supervise();
        let started = host.reported("bob", HarnessReport::Started).await;
        assert_eq!(started.restart_count, round, "{point}");
    }
    end(launcher).await;
    let orders = host.orders("bob");
    let counted = |order: &str| orders.iter().filter(|given| *given == order).count();
    assert_eq!((counted("start"), counted("stop")), (1 + points.len(), points.len()), "{orders:?}");
}

#[tokio::test]
async fn crashes_are_reported_with_their_last_words_and_a_missing_unit_is_started() {
    let host = Host::new("[agents.ada]\n");
    let launcher = host.supervise();
    host.reported("ada", HarnessReport::Started).await;
    for round in 1..4 {
        let id = format!("InvocationID=crash{round}\nNRestarts={round}");
        let waiting = "ActiveState=activating\nSubState=auto-restart";
        host.unit("ada", &format!("{waiting}\nExecMainCode=2\nExecMainStatus=9\n{id}"));
        let crash = host.reported("ada", HarnessReport::Crashed).await;
        let words = "words of _SYSTEMD_UNIT=hive@ada.service";
        assert_eq!(crash.text, format!("signal: 9 (SIGKILL)\n    {words}"));
    }
    host.unit("ada", "ActiveState=active\nInvocationID=well\nNRestarts=4");
    host.reported("ada", HarnessReport::Started).await;
    assert_eq!(host.orders("ada"), ["start"]);
    // An administrator stopped it.
    std::fs::remove_file(host.path("units/hive@ada.service")).expect("it is up");
    host.reported("ada", HarnessReport::Started).await;
    assert_eq!(host.orders("ada"), ["start", "start"]);
    end(launcher).await;
}

#[tokio::test]
async fn the_directories_of_a_purged_agent_are_deleted_once_its_unit_has_ended() {
    let host = Host::new("[agents.ada]\n");
    let launcher = host.supervise();
    for (agent, expected) in [
        ("bob", &["start", "stop", "clean"][..]),
        ("cy", &["start", "stop", "reset-failed", "clean"]),
    ] {
        host.hive.operate(&["agent", "create", agent]).await;
        host.reported(agent, HarnessReport::Started).await;
        assert!(host.path(&format!("records/{agent}.json")).exists());
        if agent == "cy" {
            host.write("stubborn", "");
        }
        host.hive.operate(&["agent", "retire", agent, "--purge", "--yes"]).await;
        let finish = |call: &Recorded| call.request::<FinishPurgeRequest>("FinishPurge");
        host.hive.next("the purge is finished", finish).await;
        assert_eq!(host.orders(agent), expected);
    }
    std::fs::remove_file(host.path("stubborn")).expect("it is there");
    // The name is free, and its next agent begins without a record of the earlier one.
    host.hive.operate(&["agent", "create", "bob"]).await;
    host.reported("bob", HarnessReport::Started).await;
    end(launcher).await;
    assert!(!host.path("records/cy.json").exists());
}

#[tokio::test]
async fn a_masked_unit_is_left_alone_until_it_is_not_masked() {
    let host = Host::new("[agents.ada]\n");
    host.write("load", "masked");
    let mut launcher = host.supervise();
    let stderr = launcher.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(stderr).lines();
    let line = lines.next_line().await.expect("text").expect("a line");
    assert_contains(&line, "ada is not started: hive@ada.service is masked");
    assert!(host.orders("ada").is_empty());
    host.write("load", "loaded");
    host.reported("ada", HarnessReport::Started).await;
    assert_eq!(host.orders("ada"), ["start"]);
    signal(&launcher, Signal::TERM);
    let line = lines.next_line().await.expect("text").expect("a line");
    assert_contains(&line, "the launcher ends");
    assert!(launcher.wait().await.expect("it ends").success());
}

#[tokio::test]
async fn without_systemd_the_other_launcher_is_named() {
    let host = Host::new("[agents.ada]\n");
    let nowhere = Path::new("/nonexistent");
    let ran = ended(host.command().env("PATH", nowhere).spawn().expect("the binary runs")).await;
    assert_eq!(ran.code, 3);
    assert_contains(&ran.err, "there is no `systemctl` on PATH");
    assert_contains(&ran.err, "`hivectl up` is the launcher");
}
