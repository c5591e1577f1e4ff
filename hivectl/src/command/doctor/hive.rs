//! Agents, and what waits: for them, for a decision, or for the operator.

use std::time::Duration;

use hive_core::message::OPERATOR;
use hive_core::time::WallTime;
use hive_proto::v1::{GetBrokerStatusResponse, GetInboxStatusRequest, Question, QuestionState};

use super::list::List;
use super::reach::Reached;
use crate::error::Failure;
use crate::fetch::{self, Whose};
use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::output::time;
use crate::view::agent::Agent;
use crate::view::check::State;
use crate::view::counted;
use crate::view::isolation::{Lack, Lacking};
use crate::view::status::ACCEPT_ISOLATION;

/// Longest wait for the operator that is no finding.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// Checks the agents and their mail. A database that cannot be used is a finding of another check.
pub(super) async fn all(reached: &Reached, style: &Style, list: &mut List) {
    if !reached.status.storage_ok {
        return list.not_checked(
            "agents",
            "while the database cannot be used, nothing is known of agents and mail",
        );
    }
    let day_ago = WallTime(reached.here.as_millisecond()).before(WAIT_MAX);
    judge(
        list,
        "agents",
        fetch::agents(&reached.broker, false, fetch::ALL).await,
        |list, agents| {
            check_agents(&agents, style, list);
            check_launcher(&reached.status, &agents, list);
        },
    );
    check_isolation(&reached.status, list);
    check_background_tasks(&reached.status, list);
    check_counts(reached, list);
    let (whose, open) = (Whose::target(OPERATOR), [QuestionState::Open]);
    let questions = fetch::questions(&reached.broker, &whose, &open, fetch::ALL).await;
    judge(list, "questions", questions, |list, open: Vec<Question>| {
        check_questions(&open, day_ago, style, list);
    });
    let inbox = reached
        .broker
        .read(reached.broker.inbox().get_inbox_status(GetInboxStatusRequest::default()))
        .await;
    judge(list, "mail", inbox, |list, inbox| {
        check_mail(
            inbox.ready_count,
            time::from_wire(inbox.oldest_ready_time),
            day_ago,
            style,
            list,
        );
    });
}

/// Judges an answer; that there is none is a problem.
fn judge<T>(
    list: &mut List,
    name: &'static str,
    answer: Result<T, Failure>,
    check: impl FnOnce(&mut List, T),
) {
    match answer {
        Ok(answer) => check(list, answer),
        Err(failure) => list.failure(name, &failure, "`hivectl status` shows how the broker is"),
    }
}

fn check_background_tasks(status: &GetBrokerStatusResponse, list: &mut List) {
    const NAME: &str = "background";
    let tasks = &status.background_tasks;
    if tasks.is_empty() {
        return list.not_checked(NAME, "the broker has not reported the run of a task yet");
    }
    let failing: Vec<_> = tasks.iter().filter(|task| task.failure_count > 0).collect();
    for task in &failing {
        let (name, error) = (visible_line(&task.name), visible_line(&task.error));
        let runs = counted(task.failure_count, "failed run", "failed runs");
        let sentence = format!("{name} has had {runs} in a row: {error}");
        let next = match task.name.as_str() {
            "configuration" => "correct hive.toml, and have hived read it again (SIGHUP)",
            _ => "it retries by itself; the log of hived has more",
        };
        list.warning(NAME, sentence, next);
    }
    if failing.is_empty() {
        let tasks = counted(tasks.len(), "task", "tasks");
        list.ok(NAME, format!("{tasks}, and the last run of each succeeded"));
    }
}

fn check_agents(agents: &[Agent], style: &Style, list: &mut List) {
    const NAME: &str = "agents";
    let before = list.checks.len();
    // An agent that the operator stopped is no finding.
    for agent in agents.iter().filter(|agent| !agent.retired && !agent.stopped) {
        let (name, since) = (&agent.name, style.time(agent.state_time));
        if let Some(park) = &agent.park {
            let needs_login = park.needs_login();
            let sentence = format!("{name} starts no turns since {since}: {}", park.line(style));
            let (state, next) = if needs_login {
                (
                    State::Problem,
                    format!(
                        "`hivectl login {name}` logs claude in; a key does too, `hivectl up --help` explains how"
                    ),
                )
            } else if park.until_time.is_some() {
                (
                    State::Warning,
                    format!("it goes on by itself; `hivectl agent show {name}` shows more"),
                )
            } else {
                (
                    State::Warning,
                    format!(
                        "`hivectl agent show {name}` shows more; `hivectl agent restart {name}` tries again"
                    ),
                )
            };
            list.about_agent(NAME, state, name, sentence, next);
        } else if agent.state.as_deref() == Some("offline") && !agent.on_demand {
            let sentence =
                format!("{name} has no harness since {since}, and {} unread", agent.ready_count);
            let next = format!(
                "start its harness, or `hivectl agent retire {name}` if it is wanted no more; its log says why it ended"
            );
            list.about_agent(NAME, State::Warning, name, sentence, next);
        }
    }
    if list.checks.len() == before {
        let count = |stopped| {
            agents.iter().filter(|agent| !agent.retired && agent.stopped == stopped).count()
        };
        let sentence = match (count(false), count(true)) {
            (0, 0) => "there are none".to_owned(),
            (0, stopped) => format!("{stopped}, and all of them are stopped"),
            (active, 0) => format!("{active}, and each has a harness and starts turns"),
            (active, stopped) => {
                format!("{active} have a harness and start turns, and {stopped} are stopped")
            }
        };
        list.ok(NAME, sentence);
    }
}

/// Checks that there is a launcher, if agents need one.
fn check_launcher(status: &GetBrokerStatusResponse, agents: &[Agent], list: &mut List) {
    const NAME: &str = "launcher";
    if status.launcher_attached {
        return list.ok(NAME, "one is attached, and starts and ends the harnesses".to_owned());
    }
    let needing: Vec<_> = agents.iter().filter(|agent| agent.needs_launcher()).collect();
    let Some(first) = needing.first() else {
        let sentence = "none is attached, and no agent needs one: the harnesses are started by hand or as units";
        return list.ok(NAME, sentence.to_owned());
    };
    let sentence = format!(
        "none is attached, and {} one, first {}: nobody starts a harness for mail, or restarts one that an agent wants restarted",
        counted(needing.len(), "agent needs", "agents need"),
        visible_line(&first.name)
    );
    let next = "`hivectl up` is one; if the agents are services, `systemctl enable --now hive-launcher` starts the other";
    list.warning(NAME, sentence, next);
}

fn check_isolation(status: &GetBrokerStatusResponse, list: &mut List) {
    const NAME: &str = "isolation";
    let lacking = Lacking {
        not_isolated: &status.not_isolated_agents,
        partly_isolated: &status.partly_isolated_agents,
        accepted: &status.isolation_accepted_agents,
    };
    let findings = lacking.findings();
    if findings.is_empty() {
        let sentence = lacking
            .accepted()
            .unwrap_or_else(|| "no agent with a harness can open another's socket".to_owned());
        return list.ok(NAME, sentence);
    }
    for Lack { kind, sentence, command } in findings {
        let next = if kind == "not_isolated" {
            format!(
                "`{command}` shows why; install bubblewrap and start again with `hivectl up`, or give each agent a user of its own; \
                 {ACCEPT_ISOLATION}"
            )
        } else {
            format!("`{command}` shows what is missing")
        };
        list.warning(NAME, sentence, &next);
    }
}

fn check_counts(reached: &Reached, list: &mut List) {
    match reached.status.dead_count {
        0 => list.ok("dead_letters", "there are none"),
        count => list.warning(
            "dead_letters",
            format!("{count} without attempts left"),
            "`hivectl dead-letters` lists them, with what went wrong",
        ),
    }
    match reached.status.held_count {
        0 => list.ok("held", "no mail is held"),
        count => {
            let next = "`hivectl turn release AGENT --all` puts it back, `hivectl turn drop AGENT --all` drops it";
            list.warning("held", format!("{count} after a cancelled turn"), next);
        }
    }
}

fn check_questions(open: &[Question], day_ago: WallTime, style: &Style, list: &mut List) {
    const NAME: &str = "questions";
    let asked = |question: &&Question| time::from_wire(question.create_time);
    let old: Vec<&Question> = open
        .iter()
        .filter(|question| asked(question).is_some_and(|asked| asked < day_ago))
        .collect();
    match old.iter().min_by_key(|question| (asked(question), question.id)) {
        Some(oldest) => {
            let sentence = format!(
                "{} of {} open to you {} asked more than a day ago; the oldest is {} of {}, since {}",
                old.len(),
                open.len(),
                if old.len() == 1 { "was" } else { "were" },
                oldest.id,
                oldest.asker,
                style.time(asked(oldest))
            );
            list.warning(
                NAME,
                sentence,
                "`hivectl questions` lists them, and `hivectl answer ID` answers",
            );
        }
        None if open.is_empty() => list.ok(NAME, "none waits on you"),
        None => list.ok(NAME, format!("{} open to you, none for longer than a day", open.len())),
    }
}

fn check_mail(
    unread: u32,
    oldest: Option<WallTime>,
    day_ago: WallTime,
    style: &Style,
    list: &mut List,
) {
    const NAME: &str = "mail";
    match oldest.filter(|oldest| *oldest < day_ago) {
        Some(oldest) => {
            let sentence =
                format!("{unread} unread, the oldest since {}", style.time(Some(oldest)));
            list.warning(
                NAME,
                sentence,
                "`hivectl inbox` lists it, and `hivectl inbox ack ID` marks it as read",
            );
        }
        None => list.ok(NAME, format!("{unread} unread")),
    }
}
