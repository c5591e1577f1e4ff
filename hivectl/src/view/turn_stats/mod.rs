//! The turns of a window of time in numbers, and how people see them: a table of agents, or all
//! about one, with bars.

mod numbers;
mod plot;

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use self::numbers::{Numbers, Slice};
use super::usage::{SELF_REPORTED, dollars};
use super::{Iso, cell, counted, fields, text};
use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::output::{Text, table, time};

/// Turns in numbers.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct TurnStats {
    /// The first moment that counts.
    #[serde(with = "Iso")]
    start_time: Option<WallTime>,
    /// The last moment that counts.
    #[serde(with = "Iso")]
    end_time: Option<WallTime>,
    /// The agent of these turns; none: all agents.
    agent: Option<String>,
    /// The numbers of all these turns.
    total: Numbers,
    /// Each agent that had one, by name; empty where one agent was asked for.
    agents: Vec<AgentNumbers>,
    /// Questions and reminders that are open now.
    open: Open,
}

/// Open questions and reminders, of one agent or of all.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct Open {
    /// Open questions; of one agent, those that it asked.
    questions_asked: u64,
    /// Open questions that were put to the agent; 0 for all agents.
    questions_owed: u64,
    /// Pending reminders.
    reminders_pending: u64,
}

/// The turns of one agent in numbers.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct AgentNumbers {
    /// The name of the agent.
    agent: String,
    /// The numbers; without tools and slices.
    stats: Numbers,
}

impl Open {
    fn summary(&self) -> String {
        let Self { questions_asked, questions_owed, reminders_pending } = self;
        let reminders = counted(*reminders_pending, "reminder", "reminders");
        format!(
            "{} asked, {questions_owed} owed, {reminders}",
            counted(*questions_asked, "question", "questions")
        )
    }
}

impl TurnStats {
    pub(crate) fn new(agent: Option<String>, response: v1::GetTurnStatsResponse) -> Self {
        let v1::GetTurnStatsResponse { start_time, end_time, total, agents, open } = response;
        let v1::OpenCounts { questions_asked, questions_owed, reminders_pending } =
            open.unwrap_or_default();
        let of_agent = |v1::AgentTurnStats { agent, stats }| AgentNumbers {
            agent,
            stats: stats.unwrap_or_default().into(),
        };
        Self {
            start_time: time::from_wire(start_time),
            end_time: time::from_wire(end_time),
            agent: agent.and_then(text),
            total: total.unwrap_or_default().into(),
            agents: agents.into_iter().map(of_agent).collect(),
            open: Open { questions_asked, questions_owed, reminders_pending },
        }
    }

    fn window(&self, style: &Style) -> String {
        format!(
            "turns that ended from {} to {}",
            style.time(self.start_time),
            style.time(self.end_time)
        )
    }

    fn table(&self, style: &Style) -> String {
        const HEADER: [&str; 10] = [
            "AGENT",
            "TURNS",
            "NOT OK",
            "COMPACTED",
            "P50",
            "P95",
            "IN*",
            "CACHED*",
            "OUT*",
            "COST*",
        ];
        let rows = self
            .agents
            .iter()
            .map(|row| (visible_line(&row.agent), &row.stats))
            .chain([(style.head("total"), &self.total)]);
        let rows = rows.map(|(name, stats)| {
            let not_ok = stats.not_ok();
            vec![
                name,
                stats.turn_count.to_string(),
                if not_ok == 0 { "0".to_owned() } else { style.bad(&not_ok.to_string()) },
                stats.compaction_count.to_string(),
                cell(stats.p50().as_ref()),
                cell(stats.p95().as_ref()),
                (stats.usage.input_tokens + stats.usage.cache_creation_tokens).to_string(),
                stats.usage.cache_read_tokens.to_string(),
                stats.usage.output_tokens.to_string(),
                dollars(stats.usage.cost_micro_usd),
            ]
        });
        let Open { questions_asked, questions_owed: _, reminders_pending } = self.open;
        let (questions, reminders) = (
            counted(questions_asked, "question", "questions"),
            counted(reminders_pending, "reminder", "reminders"),
        );
        let table = table::render(&HEADER, rows.collect(), style);
        format!("{}\n\nopen now: {questions}, {reminders}\n* {SELF_REPORTED}", table.trim_end())
    }

    fn one(&self, agent: &str, style: &Style) -> String {
        let total = &self.total;
        let outcomes = total.outcomes.iter().map(|row| {
            let words = format!("{} {}", row.count, row.outcome.as_deref().unwrap_or("-"));
            if row.outcome.as_deref() == Some("ok") {
                style.good(&words)
            } else {
                style.bad(&words)
            }
        });
        let kinds = total
            .kinds
            .iter()
            .map(|row| format!("{} {}", row.count, row.kind.as_deref().unwrap_or("-")));
        let took = match (total.p50(), total.p95()) {
            (Some(p50), Some(p95)) => format!("half within {p50}, 95 % within {p95}"),
            (_, _) => "-".to_owned(),
        };
        let calls = format!(
            "{} of the model, {} of tools",
            counted(total.usage.inference_count, "call", "calls"),
            total.usage.tool_call_count
        );
        let rows = [
            ("agent", visible_line(agent)),
            ("turns", total.turn_count.to_string()),
            ("outcomes", listed(outcomes)),
            ("kinds", listed(kinds)),
            ("compactions", total.compaction_count.to_string()),
            ("took", took),
            ("tokens*", total.usage.tokens()),
            ("calls*", calls),
            ("cost*", format!("{} USD", dollars(total.usage.cost_micro_usd))),
            ("open now", self.open.summary()),
        ];
        let mut text = format!("{}\n* {SELF_REPORTED}", fields(&rows));
        let tools: Vec<(String, u64)> =
            total.tools.iter().map(|tool| (visible_line(&tool.name), tool.count.into())).collect();
        let wakes: Vec<(String, u64)> =
            total.wakes.iter().map(|wake| (wake.summary(), wake.count)).collect();
        for (title, rows) in [("tools*", tools), ("woken by", wakes)] {
            if !rows.is_empty() {
                text.push_str(&format!("\n\n{}\n{}", style.head(title), plot::bars(&rows, style)));
            }
        }
        if total.turn_count > 0 && !total.slices.is_empty() {
            for (title, of, label) in PLOTS {
                let values: Vec<u64> = total.slices.iter().map(of).collect();
                let span = (self.start_time, self.end_time);
                text.push_str(&format!(
                    "\n\n{}\n{}",
                    style.head(title),
                    plot::columns(&values, label, span, style)
                ));
            }
        }
        text
    }
}

/// A plot over time: the title, the value of a slice, and its label.
type Plot = (&'static str, fn(&Slice) -> u64, fn(u64) -> String);
const PLOTS: [Plot; 2] = [
    ("turns over time", |slice| slice.turn_count, |count| count.to_string()),
    ("cost over time, USD*", |slice| slice.cost_micro_usd, dollars),
];

fn listed(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

impl Text for TurnStats {
    fn text(&self, style: &Style) -> String {
        let text = match &self.agent {
            Some(agent) => self.one(agent, style),
            None => self.table(style),
        };
        format!("{}\n\n{text}", self.window(style))
    }
}
