//! Agents as services: under users of their own, with their settings from `hive.toml`.

use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::{CreateReminderRequest, EventKind, HarnessState, Isolation, TurnOutcome};
use hive_tests::rig::{Watch, fresh_id, soon};

use crate::bed::Bed;

const CONFIG: &str = "[broker]\nsocket_group = \"hive-operators\"\n\
    [claude]\ncommand = \"/usr/bin/scripted-claude\"\n[agents.ada]\nusers = [\"hive-ada\"]\n[agents.bob]\n";

/// Boots a container in which the services of the broker and of ada run.
async fn with_ada(config: &str) -> Option<Bed> {
    let bed = Bed::boot(config).await?;
    bed.run(&["useradd", "--system", "hive-ada"]).await;
    bed.run(&["systemctl", "start", "hived", "hive@ada"]).await;
    Some(bed)
}

#[tokio::test]
async fn an_agent_is_a_service_under_its_own_user() {
    let Some(bed) = with_ada(CONFIG).await else { return };
    let operator = bed.client(None).await;
    operator.does("ada", HarnessState::Idle).await;
    operator.send("ada", "Are you there?").await;
    Watch::new(bed.socket(None)).kind("ada", EventKind::TurnEnded).await;
    assert_eq!(operator.turns("ada").await[0].outcome(), TurnOutcome::Ok);
    let pid = bed.main_pid("hive@ada").await;
    let user = bed.run(&["stat", "--format=%U", &format!("/proc/{pid}")]).await;
    assert_eq!(user.trim_end(), "hive-ada");
    // The user of another agent's service has no right to its socket, and neither has the world.
    let (came_through, said) = bed
        .tries(&[
            "runuser",
            "-u",
            "nobody",
            "--",
            "hive",
            "wake",
            "--socket",
            "/run/hive/agents/ada/hive.sock",
            "--from",
            "x",
            "--body",
            "x",
        ])
        .await;
    assert!(!came_through && said.contains("this user may not connect to"), "{said}");

    bed.run(&["systemctl", "stop", "hive@ada"]).await;
    assert_eq!(bed.property("hive@ada", "Result").await, "success");
    // Both start with the host once they are enabled.
    bed.run(&["systemctl", "enable", "hived", "hive@ada"]).await;
    let enabled = bed.run(&["systemctl", "is-enabled", "hived", "hived.socket", "hive@ada"]).await;
    assert_eq!(enabled, "enabled\nenabled\nenabled\n");
    bed.end().await;
}

/// The unit cannot know how long a turn may go on: `drain_grace_secs` is a key of `hive.toml`.
#[tokio::test]
async fn a_stop_lets_a_turn_end_whatever_the_unit_allows() {
    let script = "env = { SCRIPTED_CLAUDE_FILE = \"/etc/hive/script.json\" }\n[agents.ada]";
    let Some(bed) = Bed::boot(&CONFIG.replace("[agents.ada]", script)).await else { return };
    bed.run(&["useradd", "--system", "hive-ada"]).await;
    let dropins = "/run/systemd/system/hive@.service.d";
    bed.run(&["mkdir", "--parents", dropins]).await;
    bed.write(&format!("{dropins}/short.conf"), "[Service]\nTimeoutStopSec=1\n");
    bed.run(&["systemctl", "daemon-reload"]).await;
    let go = "/var/lib/hive-agents/ada/state/go";
    let steps = format!(
        r#"[{{ "when": "time", "steps": [{{ "wait_file": "{go}" }}, {{ "text": "done" }}] }}]"#
    );
    bed.write("/etc/hive/script.json", &steps);
    bed.run(&["systemctl", "start", "hived", "hive@ada"]).await;
    let operator = bed.client(None).await;
    operator.does("ada", HarnessState::Idle).await;
    operator.send("ada", "Take your time.").await;
    operator.does("ada", HarnessState::Thinking).await;

    bed.run(&["systemctl", "stop", "--no-block", "hive@ada"]).await;
    // Longer than the unit allows, and less than the 20 seconds of `drain_grace_secs`.
    bed.run(&["systemd-run", "--on-active=2", "--timer-property=AccuracySec=1ms", "touch", go])
        .await;
    soon("the unit has stopped", async {
        while bed.property("hive@ada", "ActiveState").await != "inactive" {}
    })
    .await;
    assert_eq!(bed.property("hive@ada", "Result").await, "success");
    let turn = operator.turns("ada").await.remove(0);
    assert_eq!(turn.outcome(), TurnOutcome::Ok, "{turn:?}");
    bed.end().await;
}

#[tokio::test]
async fn a_long_reminder_is_a_file_that_the_agents_user_can_read() {
    let Some(bed) = with_ada(CONFIG).await else { return };
    let operator = bed.client(None).await;
    operator.does("ada", HarnessState::Idle).await;
    // Root is not ada's user, so bob's socket it is; the folder of both is made the same way.
    let bob = bed.client(Some("bob")).await;
    let body = "long ".repeat(2000);
    let request = CreateReminderRequest {
        request_id: fresh_id(),
        body: body.clone(),
        due: Some(hive_proto::v1::create_reminder_request::Due::Delay(prost_types::Duration {
            seconds: 1,
            nanos: 0,
        })),
    };
    let created = ReminderServiceClient::new(bob.channel()).create_reminder(request).await;
    let id = created.expect("accepted").into_inner().reminder.expect("a reminder").id;
    let fired = Watch::new(bed.socket(None)).kind("bob", EventKind::MessageAccepted).await;
    assert_eq!(fired.agent, "bob");
    let messages = bob.messages().await;
    assert!(messages[0].body.contains(&format!("`reminders/{id}.md`")), "{messages:?}");
    let file = format!("/var/lib/hive/reminders/bob/reminders/{id}.md");
    assert_eq!(std::fs::read_to_string(bed.path(&file)).expect("a file"), body);
    bed.write("/var/lib/hive/reminders/ada/reminders/7.md", "for ada");
    let pid = bed.main_pid("hive@ada").await;
    let read =
        ["nsenter", "--target", &pid, "--mount", "runuser", "-u", "hive-ada", "--", "sh", "-c"];
    let state = "/var/lib/hive-agents/ada/state/reminders";
    let (reads, writes) = (format!("cat {state}/7.md"), format!("echo x > {state}/8.md"));
    assert_eq!(bed.run(&[&read[..], &[&reads]].concat()).await, "for ada");
    let (wrote, _) = bed.tries(&[&read[..], &[&writes]].concat()).await;
    assert!(!wrote, "the agent can only read it");
    bed.end().await;
}

/// An agent that was created at run time has a user that systemd makes, whose number no file can
/// name: its unit proves who it is.
#[tokio::test]
async fn an_agent_of_run_time_is_trusted_by_its_unit() {
    let config = CONFIG.replace("[broker]", "[broker]\nagent_unit = \"hive@{name}.service\"");
    let config = config.replace("[agents.bob]", "[agents.bob]\nunit = \"bob.service\"");
    let Some(bed) = with_ada(&config).await else { return };
    bed.run(&["hivectl", "agent", "create", "eve", "--parent", "ada"]).await;
    bed.run(&["systemctl", "start", "hive@eve"]).await;
    let operator = bed.client(None).await;
    operator.does("eve", HarnessState::Idle).await;
    operator.does("ada", HarnessState::Idle).await;
    let isolation = async |agent: &str| operator.get_agent(agent).await.isolation();
    assert_eq!(isolation("eve").await, Isolation::Unit);
    assert_eq!(isolation("ada").await, Isolation::Uid);
    let shown = bed.run(&["hivectl", "agent", "show", "eve"]).await;
    assert!(shown.contains("isolated (unit)"), "{shown}");

    // The same program as the same user, or as root, in another unit.
    let wake = async |agent: &str, prefix: &[&str]| {
        let socket = format!("/run/hive/agents/{agent}/hive.sock");
        let command = ["hive", "wake", "--socket", &socket, "--from", "x", "--body", "x"];
        bed.tries(&[prefix, &command].concat()).await
    };
    let in_unit = |unit: &'static str| ["systemd-run", "--quiet", "--pipe", "--wait", unit, "--"];
    for (agent, prefix) in [
        ("eve", &[][..]),
        ("eve", &in_unit("--unit=other.service")),
        ("eve", &in_unit("--unit=eve-hive@eve.service")),
        ("bob", &in_unit("--unit=bob-more.service")),
    ] {
        let (accepted, said) = wake(agent, prefix).await;
        assert!(
            !accepted && said.contains("the configuration requires"),
            "{agent} {prefix:?}: {said}"
        );
    }
    let (accepted, said) = wake("bob", &in_unit("--unit=bob.service")).await;
    assert!(accepted, "{said}");
    bed.end().await;
}

#[tokio::test]
async fn one_user_may_start_and_stop_agents_and_nothing_else() {
    let Some(bed) = Bed::boot(CONFIG).await else { return };
    for user in ["hive-ada", "hive-bob"] {
        bed.run(&["useradd", "--system", user]).await;
    }
    bed.run(&["systemctl", "start", "hived"]).await;
    let may = async |user: &str, words: &[&str]| {
        let command =
            [&["runuser", "-u", user, "--", "systemctl", "--no-ask-password"], words].concat();
        bed.tries(&command).await.0
    };
    for verb in ["start", "restart", "stop"] {
        assert!(may("hive-launcher", &[verb, "hive@ada.service"]).await, "{verb}");
        assert!(!may("hive-ada", &[verb, "hive@ada.service"]).await, "{verb} by another user");
        for unit in [
            "hived.service",
            "hived.socket",
            "hive@.service",
            "hive@ada.socket",
            "hive@Ada.service",
            "dbus.service",
        ] {
            assert!(!may("hive-launcher", &[verb, unit]).await, "{verb} {unit}");
        }
    }
    // Once the agent is purged, its directories are deleted.
    let clean = |unit: &'static str| ["clean", "--what=state", unit];
    assert!(may("hive-launcher", &clean("hive@ada.service")).await);
    for unit in ["hived.service", "hive-launcher.service", "dbus.service"] {
        assert!(!may("hive-launcher", &clean(unit)).await, "{unit}");
    }
    assert!(!may("hive-ada", &clean("hive@ada.service")).await);
    for words in [
        &["enable", "hived.service"][..],
        &["reset-failed", "hived.service"],
        &["mask", "hive@ada.service"],
        &["daemon-reload"],
        &["kill", "hive@ada.service"],
        &["set-property", "hive@ada.service", "CPUQuota=1%"],
    ] {
        assert!(!may("hive-launcher", words).await, "{words:?}");
    }
    bed.end().await;
}
