//! The status of the broker, and what needs attention.
//!
//! Invariant: `findings` is empty if and only if `hivectl status` ends with 0.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::agent::Agent;
use super::isolation::{Lack, Lacking};
use super::wire::{all, from_wire, same};
use super::{Iso, counted, fields, text};
use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::output::{Text, time};

/// The state of a hive.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Status {
    /// The broker's version.
    version: String,
    /// The id of its process.
    pid: u32,
    /// The start time of the broker.
    #[serde(with = "Iso")]
    start_time: Option<WallTime>,
    /// Whether the database can be written.
    storage_ok: bool,
    /// The error of the storage.
    storage_error: Option<String>,
    /// The path of the database.
    database_path: String,
    /// The size of the database, in bytes.
    database_bytes: u64,
    /// Agents, retired ones not counted.
    agent_count: u32,
    /// Agents with a harness.
    attached_count: u32,
    /// Deliveries that wait.
    ready_count: u64,
    /// Deliveries that a turn carries.
    leased_count: u64,
    /// Deliveries that are held after a cancelled turn.
    held_count: u64,
    /// Dead letters.
    dead_count: u64,
    /// The operator's unread mail.
    operator_unread_count: u64,
    /// Agents with a harness that are not isolated.
    not_isolated_agents: Vec<String>,
    /// The number of the newest event.
    last_event_sequence: u64,
    /// Whether the broker is shutting down.
    draining: bool,
    /// Open questions to the operator.
    operator_question_count: u64,
    /// Open questions of all agents.
    open_question_count: u64,
    /// Pending reminders.
    pending_reminder_count: u64,
    /// Agents with a harness that are partly isolated.
    partly_isolated_agents: Vec<String>,
    /// Agents with a harness whose isolation is what the configuration states: no finding.
    isolation_accepted_agents: Vec<String>,
    /// The broker's background tasks, by name.
    background_tasks: Vec<BackgroundTask>,
    /// Whether a launcher is attached: the program that starts and ends harnesses.
    launcher_attached: bool,
    /// The problems of the hive; empty if there are none.
    pub(crate) findings: Vec<Finding>,
}

/// A task that the broker runs by itself, and how its last run went.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct BackgroundTask {
    /// The name of the task.
    name: String,
    /// When its last run ended.
    #[serde(with = "Iso")]
    last_run_time: Option<WallTime>,
    /// The number of failed runs since the last success.
    failure_count: u32,
    /// Why the last run failed.
    error: Option<String>,
}

from_wire! {
    BackgroundTask => BackgroundTask {
        same => name, failure_count;
        time::from_wire => last_run_time;
        text => error;
    }
}

/// Something that is not as it should be.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Finding {
    /// The kind: `storage`, `draining`, `parked`, `unattended`, `held`, `dead_letters`,
    /// `not_isolated`, `partly_isolated`, `background_task`.
    kind: &'static str,
    /// The agent concerned.
    agent: Option<String>,
    /// The description of the problem.
    sentence: String,
    /// The command that helps next.
    command: Option<String>,
}

from_wire! {
    GetBrokerStatusResponse => Status {
        same => version, pid, storage_ok, database_path, database_bytes, agent_count, attached_count,
            ready_count, leased_count, held_count, dead_count, operator_unread_count,
            not_isolated_agents, last_event_sequence, draining, operator_question_count,
            open_question_count, pending_reminder_count, partly_isolated_agents,
            isolation_accepted_agents, launcher_attached;
        time::from_wire => start_time;
        text => storage_error;
        all => background_tasks;
    }
    with findings = |_| Vec::new()
}

impl Status {
    pub(crate) fn new(
        response: v1::GetBrokerStatusResponse,
        agents: &[Agent],
        style: &Style,
    ) -> Self {
        let mut status = Self::from(response);
        status.findings = findings(&status, agents, style);
        status
    }

    fn lacking(&self) -> Lacking<'_> {
        Lacking {
            not_isolated: &self.not_isolated_agents,
            partly_isolated: &self.partly_isolated_agents,
            accepted: &self.isolation_accepted_agents,
        }
    }
}

/// Tells the operator how to accept agents that are not isolated.
pub(crate) const ACCEPT_ISOLATION: &str =
    "`isolation = \"none\"` under [hive] in hive.toml accepts that";

fn findings(status: &Status, agents: &[Agent], style: &Style) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |kind, agent: Option<&str>, sentence: String, command: Option<String>| {
        findings.push(Finding { kind, agent: agent.map(str::to_owned), sentence, command });
    };
    if !status.storage_ok {
        let error = status.storage_error.as_deref().unwrap_or("no details");
        add(
            "storage",
            None,
            format!("the database cannot be written: {}", visible_line(error)),
            None,
        );
    }
    // A database that cannot be written makes every task fail, and is a separate finding.
    for task in status.background_tasks.iter().filter(|_| status.storage_ok) {
        if let Some(error) = &task.error {
            let failures = counted(task.failure_count, "failed run", "failed runs");
            let sentence = format!(
                "the background task {} has had {failures} in a row: {}",
                visible_line(&task.name),
                visible_line(error)
            );
            add("background_task", None, sentence, None);
        }
    }
    if status.draining {
        add("draining", None, "the broker is shutting down".to_owned(), None);
    }
    for agent in agents.iter().filter(|agent| !agent.retired && !agent.stopped) {
        let name = visible_line(&agent.name);
        if let Some(park) = &agent.park {
            let sentence = format!("{name} starts no turns: {}", park.line(style));
            let verb = if park.needs_login() { "login" } else { "agent show" };
            add("parked", Some(&agent.name), sentence, Some(format!("hivectl {verb} {name}")));
        } else if agent.state.as_deref() == Some("offline") && agent.ready_count > 0 {
            let sentence = format!("{name} has {} unread and no harness", agent.ready_count);
            add("unattended", Some(&agent.name), sentence, Some(format!("hivectl inbox {name}")));
        }
    }
    if status.held_count > 0 {
        let sentence = format!(
            "{} held after a cancelled turn",
            counted(status.held_count, "delivery", "deliveries")
        );
        add("held", None, sentence, Some("hivectl turn release AGENT --all".to_owned()));
    }
    if status.dead_count > 0 {
        let sentence = counted(status.dead_count, "dead letter", "dead letters");
        add("dead_letters", None, sentence, Some("hivectl dead-letters".to_owned()));
    }
    for Lack { kind, sentence, command } in status.lacking().findings() {
        let accept =
            if kind == "not_isolated" { format!("; {ACCEPT_ISOLATION}") } else { String::new() };
        add(kind, None, format!("{sentence}{accept}"), Some(command));
    }
    findings
}

impl Text for Status {
    fn text(&self, style: &Style) -> String {
        let rows = [
            (
                "broker",
                format!(
                    "{}, pid {}, since {}",
                    visible_line(&self.version),
                    self.pid,
                    style.time(self.start_time)
                ),
            ),
            (
                "database",
                format!(
                    "{}, {} KiB",
                    visible_line(&self.database_path),
                    self.database_bytes.div_ceil(1024)
                ),
            ),
            ("agents", format!("{}, {} with a harness", self.agent_count, self.attached_count)),
            (
                "deliveries",
                format!(
                    "{} ready, {} leased, {} held, {} dead",
                    self.ready_count, self.leased_count, self.held_count, self.dead_count
                ),
            ),
            (
                "operator",
                format!(
                    "{} unread, {} to answer",
                    self.operator_unread_count,
                    counted(self.operator_question_count, "question", "questions")
                ),
            ),
            ("questions", format!("{} open", self.open_question_count)),
            ("reminders", format!("{} pending", self.pending_reminder_count)),
            ("last event", self.last_event_sequence.to_string()),
        ];
        let accepted = self.lacking().accepted().map(|accepted| ("isolation", accepted));
        let rows: Vec<_> = rows.into_iter().chain(accepted).collect();
        let mut text = fields(&rows);
        if self.findings.is_empty() {
            return format!("{text}\n\n{}", style.good("nothing needs attention"));
        }
        text.push('\n');
        for finding in &self.findings {
            let command = finding
                .command
                .as_deref()
                .map(|command| format!("  ({command})"))
                .unwrap_or_default();
            text.push_str(&format!("\n{} {}{command}", style.bad("!"), finding.sentence));
        }
        text
    }
}
