//! The journal of a real systemd: the fields of the programs' events, found by their ids.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use hive_proto::v1::{EventKind, HarnessState};
use hive_tests::rig::Watch;
use serde_json::Value;

use crate::bed::Bed;

const CONFIG: &str = "[broker]\nsocket_group = \"hive-operators\"\n[broker.metrics]\nsocket = \"/run/hive/metrics/metrics.sock\"\n\
    [claude]\ncommand = \"/usr/bin/scripted-claude\"\n[agents.ada]\nusers = [\"hive-ada\"]\n";
/// More than the units log by themselves.
const DEBUG: &str = "[Service]\nEnvironment=HIVE_LOG=info,hive_broker=debug\n";

/// Prints the page of the metrics.
const SCRAPE: &str = "use IO::Socket::UNIX; \
    my $s = IO::Socket::UNIX->new(Peer => '/run/hive/metrics/metrics.sock') or die $!; \
    print $s \"GET /metrics HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n\"; print while <$s>;";

/// Returns what the journal has of these matches.
async fn found(bed: &Bed, matches: &[&str]) -> Vec<Value> {
    bed.run(&["journalctl", "--sync"]).await;
    let printed = bed.run(&[&["journalctl", "--output=json"], matches].concat()).await;
    let events = printed.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    events.collect()
}

fn text<'v>(event: &'v Value, field: &str) -> &'v str {
    event[field].as_str().unwrap_or_else(|| panic!("no {field} in {event:#}"))
}

#[tokio::test]
async fn events_are_found_by_turn_tool_use_and_request() {
    let Some(bed) = Bed::boot(CONFIG).await else { return };
    bed.run(&["useradd", "--system", "hive-ada"]).await;
    std::fs::create_dir_all(bed.path("/etc/systemd/system/hived.service.d")).expect("a directory");
    bed.write("/etc/systemd/system/hived.service.d/log.conf", DEBUG);
    bed.run(&["systemctl", "daemon-reload"]).await;
    bed.run(&["systemctl", "start", "hived", "hive@ada"]).await;
    let operator = bed.client(None).await;
    operator.does("ada", HarnessState::Idle).await;
    operator.send("ada", "Are you there?").await;
    Watch::new(bed.socket(None)).kind("ada", EventKind::TurnEnded).await;
    let turn = operator.turns("ada").await[0].id;

    let of_turn = [&format!("HIVE_TURN_ID={turn}"), "HIVE_AGENT=ada"];
    let events = found(&bed, &of_turn.map(|part| part as &str)).await;
    let messages: Vec<_> = events.iter().map(|event| text(event, "MESSAGE")).collect();
    for message in ["turn started", "tool call", "turn ended"] {
        assert!(messages.contains(&message), "{messages:?}");
    }
    let call = events.iter().find(|event| event["MESSAGE"] == "tool call").expect("a call");
    assert_eq!(text(call, "HIVE_SERVER"), "hive");
    assert_eq!(text(call, "_SYSTEMD_UNIT"), "hive@ada.service");
    assert_eq!((text(call, "SYSLOG_IDENTIFIER"), text(call, "PRIORITY")), ("hive", "5"));
    let tool_use = format!("HIVE_TOOL_USE_ID={}", text(call, "HIVE_TOOL_USE_ID"));
    let by_use = found(&bed, &[&tool_use]).await;
    assert_eq!(text(&by_use[0], "HIVE_REQUEST_ID"), text(call, "HIVE_REQUEST_ID"));
    // The broker has the same request.
    let id = format!("HIVE_REQUEST_ID={}", text(call, "HIVE_REQUEST_ID"));
    let arrived = found(&bed, &["_SYSTEMD_UNIT=hived.service", &id]).await;
    let arrived = arrived.first().expect("the broker has logged the request");
    assert_eq!(text(arrived, "MESSAGE"), "a request arrived");
    assert_eq!(text(arrived, "HIVE_AGENT"), "ada");

    // No event is there twice, as a line of text.
    let unit = "_SYSTEMD_UNIT=hived.service";
    let ready = found(&bed, &[unit]).await.into_iter();
    let ready: Vec<_> =
        ready.filter(|event| text(event, "MESSAGE").contains("hived is ready")).collect();
    assert_eq!(ready.len(), 1, "{ready:#?}");
    assert_eq!((text(&ready[0], "HIVE_AGENTS"), text(&ready[0], "PRIORITY")), ("1", "5"));

    // A program whose stderr is no journal prints lines, though it has the variable.
    let script = "JOURNAL_STREAM=1:1 timeout --preserve-status -s TERM 1 hived --config /etc/hive/hive.toml \
        --state-dir /tmp/s --runtime-dir /tmp/r 2>&1 || true";
    let printed = bed.run(&["sh", "-c", script]).await;
    assert!(printed.contains("the metrics cannot be offered"), "{printed}");
    // Where there is no journal, the format that wants it is refused.
    let (started, said) = bed
        .tries(&[
            "bwrap",
            "--bind",
            "/",
            "/",
            "--tmpfs",
            "/run",
            "hived",
            "--log-format=journald",
            "--config=/etc/hive/hive.toml",
        ])
        .await;
    assert!(!started && said.contains("choose another --log-format"), "{said}");

    // The socket of the metrics has a group of its own, which is let in to it and to nothing else;
    // elsewhere it cannot have that.
    let socket = bed.path("/run/hive/metrics/metrics.sock").metadata().expect("the socket");
    let group = bed.run(&["getent", "group", "hive-metrics"]).await;
    let gid = group.split(':').nth(2).expect("a number");
    assert_eq!(
        (socket.permissions().mode() & 0o777, socket.gid().to_string().as_str()),
        (0o660, gid)
    );
    bed.run(&["useradd", "--groups", "hive-metrics", "meter"]).await;
    let page = bed.run(&["runuser", "-u", "meter", "--", "perl", "-e", SCRAPE]).await;
    assert!(page.contains("hive_build_info"), "{page}");
    let (shown, said) = bed.tries(&["runuser", "-u", "meter", "--", "hivectl", "agents"]).await;
    assert!(!shown && said.contains("Permission denied"), "{said}");
    bed.write("/etc/hive/hive.toml", &CONFIG.replace("/metrics/metrics.sock", "/m.sock"));
    let (started, _) = bed.tries(&["systemctl", "restart", "hived"]).await;
    let printed = bed.run(&["journalctl", "--output=cat", "--unit=hived"]).await;
    assert!(!started && printed.contains("a directory of that group with mode 2750"), "{printed}");
    bed.end().await;
}
