//! Logs: who may read which, what a launcher is asked, and what becomes of a request without an
//! answer.

use std::sync::Arc;

use hive_core::agent::{DIAGNOSTICS, MANAGE_SUBTREE, PolicyPart, READ_HOST_JOURNAL};
use hive_core::time::WallTime;
use tokio::task::JoinHandle;

use super::*;
use crate::engine::launch::lines::{LINES_DEFAULT, LINES_MAX, Lines};
use crate::launches::Launcher;
use crate::launches::asked::{Answer, Source};

fn policy(capabilities: &[&str]) -> Policy {
    Policy {
        tool_groups: vec![DIAGNOSTICS.to_owned()],
        capabilities: capabilities.iter().map(|&name| name.to_owned()).collect(),
        ..Policy::default()
    }
}

/// `boss` above `kid` above `grandkid`, and `other` beside them. Agents may read one unit.
async fn family(capabilities: &[&str]) -> Hive {
    let hive = Hive::new(&["other"]).await;
    hive.create("boss", None, policy(capabilities)).await;
    hive.create("kid", Some("boss"), Policy::default()).await;
    hive.create("grandkid", Some("kid"), Policy::default()).await;
    hive
}

fn of(agent: &str) -> Source {
    Source::Harness(name(agent))
}

fn journal(unit: &str) -> Source {
    Source::Journal { unit: unit.to_owned(), since: Some(WallTime(5_000)) }
}

/// Asks for logs; the call waits until there is an answer.
fn ask(
    hive: &Hive,
    actor: Actor,
    source: Source,
    lines: u32,
) -> JoinHandle<Result<Lines, Refusal>> {
    let engine = Arc::clone(hive.engine());
    tokio::spawn(async move { engine.read_logs(actor, source, lines).await })
}

/// Returns the next request that a launcher gets: its number, its source and its lines.
async fn next(launcher: &Launcher) -> (u64, Source, u32) {
    loop {
        let mut asked = launcher.take_asked();
        assert!(asked.len() <= 1, "one request at a time: {asked:?}");
        match asked.pop() {
            Some(first) => return first,
            None => launcher.changed().await,
        }
    }
}

/// Returns the agent and the words of the last event of a read.
async fn last_read(hive: &Hive) -> (String, String) {
    let events = hive.events().await;
    let last = events.into_iter().rfind(|event| event.kind() == EventKind::LogsRead);
    last.map(|event| (event.agent, event.detail)).expect("a read is an event")
}

async fn refused(hive: &Hive, who: &str, source: Source) -> Reason {
    reason(hive.engine().read_logs(actor(who), source, 5).await)
}

#[tokio::test]
async fn an_agent_reads_the_log_of_its_child_through_the_launcher() {
    let hive = family(&[]).await;
    let launcher = hive.engine().attach_launcher().expect("there is none");
    let asked = ask(&hive, actor("boss"), of("kid"), 2);
    let (id, source, lines) = next(&launcher).await;
    assert_eq!((source, lines), (of("kid"), 2));
    let text = "zero\n\u{1b}[31mone\u{1b}[0m\ntwo\u{7}\n".to_owned();
    hive.engine().answer_logs(id, Answer { text, truncated: true, ..Answer::default() });
    let read = asked.await.expect("it runs").expect("read");
    assert_eq!((read.lines, read.truncated), (vec!["one".to_owned(), "two".to_owned()], true));
    let (agent, detail) = last_read(&hive).await;
    assert_eq!((agent.as_str(), detail.as_str()), ("kid", "2 lines of its log, by boss"));

    let asked = ask(&hive, actor("boss"), of("kid"), 0);
    let (id, _, lines) = next(&launcher).await;
    assert_eq!(lines, LINES_DEFAULT);
    let problem = "the log\u{1b} cannot be\nread".to_owned();
    hive.engine().answer_logs(id, Answer { problem, ..Answer::default() });
    let refusal = asked.await.expect("it runs").expect_err("a problem");
    assert_eq!(refusal.reason(), Reason::LauncherOffline);
    assert!(refusal.to_string().ends_with("for logs: the log\\u{1b} cannot be read"), "{refusal}");
    let too_many = hive.engine().read_logs(actor("boss"), of("kid"), LINES_MAX + 1).await;
    assert_eq!(reason(too_many), Reason::FieldInvalid);
}

#[tokio::test]
async fn nobody_reads_what_it_may_not_start_or_stop() {
    let hive = family(&[READ_HOST_JOURNAL]).await;
    let launcher = hive.engine().attach_launcher().expect("there is none");
    for about in ["boss", "grandkid", "other"] {
        assert_eq!(refused(&hive, "boss", of(about)).await, Reason::NotYourChild);
    }
    assert_eq!(refused(&hive, "kid", of("grandkid")).await, Reason::CapabilityMissing);
    assert_eq!(refused(&hive, "boss", of("nobody")).await, Reason::AgentNotFound);
    assert_eq!(refused(&hive, "operator", of("kid")).await, Reason::NotAnAgent);
    for unit in ["", "nginx", "sshd.service", "-u", "*.service", "nginx.service\n", "NGINX.service"]
    {
        assert_eq!(refused(&hive, "boss", journal(unit)).await, Reason::FieldInvalid, "{unit}");
    }
    hive.set_policy("boss", policy(&[MANAGE_SUBTREE]), &[PolicyPart::Capabilities])
        .await
        .expect("set");
    let refusal =
        hive.engine().read_logs(actor("boss"), journal(JOURNAL_UNIT), 5).await.expect_err("none");
    assert_eq!(refusal.reason(), Reason::CapabilityMissing);
    assert!(refusal.to_string().contains("`read_host_journal`"), "{refusal}");
    assert_eq!(launcher.take_asked(), [], "nothing was asked of the launcher");
    assert_eq!(hive.count_events(EventKind::LogsRead).await, 0);
    let asked = ask(&hive, actor("boss"), of("grandkid"), 5);
    let (id, source, _) = next(&launcher).await;
    assert_eq!(source, of("grandkid"), "with the capability");
    hive.engine().answer_logs(id, Answer::default());
    assert_eq!(asked.await.expect("it runs").expect("read"), Lines::default());
}

#[tokio::test]
async fn the_journal_is_read_of_named_units_and_since_a_time() {
    let hive = family(&[READ_HOST_JOURNAL]).await;
    let launcher = hive.engine().attach_launcher().expect("there is none");
    let asked = ask(&hive, actor("boss"), journal(JOURNAL_UNIT), 7);
    let (id, source, lines) = next(&launcher).await;
    assert_eq!((source, lines), (journal(JOURNAL_UNIT), 7));
    let text = "started\n".to_owned();
    hive.engine().answer_logs(id, Answer { text, ..Answer::default() });
    assert_eq!(asked.await.expect("it runs").expect("read").lines, ["started"]);
    let (agent, detail) = last_read(&hive).await;
    assert_eq!(
        (agent.as_str(), detail.as_str()),
        ("boss", "7 lines of the journal of nginx.service")
    );
}

#[tokio::test]
async fn without_an_answer_the_caller_is_refused_and_nothing_waits() {
    let hive = family(&[]).await;
    assert_eq!(refused(&hive, "boss", of("kid")).await, Reason::LauncherOffline);
    assert_eq!(hive.count_events(EventKind::LogsRead).await, 0);
    let launcher = hive.engine().attach_launcher().expect("there is none");
    let asked = ask(&hive, actor("boss"), of("kid"), 5);
    next(&launcher).await;
    drop(launcher);
    let refusal = asked.await.expect("it runs").expect_err("it has ended");
    assert!(refusal.to_string().ends_with("it has ended before it answered"), "{refusal}");

    let launcher = hive.engine().attach_launcher().expect("the place is free");
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(ask(&hive, actor("boss"), of("kid"), 5));
        next(&launcher).await;
    }
    let refusal = hive.engine().read_logs(actor("boss"), of("kid"), 5).await.expect_err("too many");
    assert!(refusal.to_string().contains("has not answered earlier requests"), "{refusal}");
    for task in waiting {
        stop(task).await;
    }
    let asked = ask(&hive, actor("boss"), of("kid"), 5);
    next(&launcher).await;
    hive.engine().drain();
    assert_eq!(reason(asked.await.expect("it runs")), Reason::Draining);
}

#[tokio::test(start_paused = true)]
async fn a_launcher_that_hangs_is_not_waited_for_without_end() {
    let hive = family(&[]).await;
    let launcher = hive.engine().attach_launcher().expect("there is none");
    let refusal = hive.engine().read_logs(actor("boss"), of("kid"), 5).await.expect_err("it hangs");
    assert!(refusal.to_string().ends_with("it has not answered within 15 seconds"), "{refusal}");
    let asked = ask(&hive, actor("boss"), of("kid"), 5);
    next(&launcher).await;
    stop(asked).await;
}

#[tokio::test]
async fn a_right_that_is_taken_away_before_the_answer_is_none() {
    let hive = family(&[]).await;
    let launcher = hive.engine().attach_launcher().expect("there is none");
    let asked = ask(&hive, actor("boss"), of("kid"), 5);
    let (id, ..) = next(&launcher).await;
    hive.set_policy("boss", Policy::default(), &[PolicyPart::ToolGroups]).await.expect("set");
    let text = "secret\n".to_owned();
    hive.engine().answer_logs(id, Answer { text, ..Answer::default() });
    assert_eq!(reason(asked.await.expect("it runs")), Reason::CapabilityMissing);
}

#[tokio::test]
async fn a_call_counts_as_a_send_and_belongs_to_the_open_turn() {
    let limits = Limits { sends_per_minute_max: 1, ..Limits::default() };
    let hive = Hive::with_limits(&[], limits).await;
    hive.create("boss", None, policy(&[])).await;
    hive.create("kid", Some("boss"), Policy::default()).await;
    let launcher = hive.engine().attach_launcher().expect("there is none");
    let harness = hive.attach("boss").await;
    assert_eq!(refused(&hive, "boss", of("kid")).await, Reason::HarnessAttached);
    let run = hive.open(&harness, Kind::Continue).await.expect("it opens");
    let asked = ask(&hive, run.actor(), of("kid"), 5);
    let (id, ..) = next(&launcher).await;
    hive.engine().answer_logs(id, Answer::default());
    asked.await.expect("it runs").expect("read");
    let second = hive.engine().read_logs(run.actor(), of("kid"), 5).await;
    assert_eq!(reason(second), Reason::RateLimited);
    assert_eq!(hive.count_events(EventKind::LogsRead).await, 1);
}
