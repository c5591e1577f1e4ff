//! The page: what the broker shows of itself, read from memory and by a connection that cannot
//! write.
//!
//! Invariant: the names of families are part of the documentation and of the packaged dashboard and
//! alerts; a test compares them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hive_core::version;
use hive_export::Counts;
use tokio::sync::Mutex;

use super::text::Kind::{Counter, Gauge};
use super::text::{Text, label};
use crate::engine::Engine;
use crate::engine::operator::levels::{Depth, Levels};
use crate::measures::Measures;

/// Inboxes that are shown with the names of their owners.
const NAMED_INBOXES: usize = 200;
/// The label of all other inboxes; no agent can have this name.
const OTHERS: &str = "(others)";
/// How long a page is sent again. Collectors that call without pause cost one page in this time.
const FRESH: Duration = Duration::from_secs(1);
/// Nanoseconds of a second.
const NANOS_PER_SECOND: f64 = 1e9;

/// The page of a broker.
#[derive(Debug)]
pub struct Page {
    engine: Arc<Engine>,
    measures: Arc<Measures>,
    traces: Arc<Counts>,
    last: Mutex<Option<(Instant, Arc<str>)>>,
}

impl Page {
    /// Returns the page of this engine, whose store counts in `measures`, and whose export of
    /// traces in `traces`.
    #[must_use]
    pub fn new(engine: Arc<Engine>, measures: Arc<Measures>, traces: Arc<Counts>) -> Self {
        Self { engine, measures, traces, last: Mutex::default() }
    }

    /// Returns the present text, or one that is younger than a second. Concurrent callers wait for
    /// one text.
    pub async fn text(&self) -> Arc<str> {
        let mut last = self.last.lock().await;
        if let Some((time, text)) = &*last
            && time.elapsed() < FRESH
        {
            return Arc::clone(text);
        }
        let text: Arc<str> = self.write().await.into();
        *last = Some((Instant::now(), Arc::clone(&text)));
        text
    }

    /// Writes the page. While the database cannot be read, the page has the rest, which shows that.
    async fn write(&self) -> String {
        let levels = self.engine.levels(NAMED_INBOXES).await;
        let mut text = Text::default();
        self.broker(&mut text);
        match &levels {
            Ok(levels) => inboxes(&mut text, levels),
            Err(error) => tracing::debug!(%error, "metrics have no inboxes at present"),
        }
        self.commits(&mut text);
        self.turns(&mut text);
        text.into_string()
    }

    fn broker(&self, text: &mut Text) {
        let commit = version::COMMIT.unwrap_or_default();
        text.family(Gauge, "hive_build_info", "The version of hived and its commit.")
            .sample(&[("version", version::VERSION), ("commit", commit)], 1);
        let start = Duration::from_millis(u64::try_from(self.engine.start_time().0).unwrap_or(0));
        text.family(Gauge, "hive_start_time_seconds", "When hived started, in seconds since 1970.")
            .sample(&[], start.as_secs_f64());
        text.family(Gauge, "hive_database_usable", "Whether the database can be used: 1 or 0.")
            .sample(&[], u8::from(self.engine.is_usable()));
        let mut tasks = text.family(
            Gauge,
            "hive_background_task_failures",
            "Failed runs of a background task since its last success.",
        );
        for task in self.engine.background_tasks() {
            tasks.sample(&[("task", task.name)], task.failure_count);
        }
        text.family(Gauge, "hive_waiting_calls", "Calls that wait for mail.")
            .sample(&[], self.measures.waiting());
        text.family(
            Gauge,
            "hive_inbox_limit_deliveries",
            "The most unsettled deliveries that an inbox may have.",
        )
        .sample(&[], self.engine.limits().inbox_depth_max);
    }

    fn commits(&self, text: &mut Text) {
        let Measures { commit, sync, items, .. } = &*self.measures;
        text.histogram(
            "hive_commit_duration_seconds",
            "Time from the begin of a batch until it is on disk.",
            commit,
            NANOS_PER_SECOND,
        );
        text.histogram(
            "hive_commit_sync_duration_seconds",
            "The part of a commit in which the disk syncs it (fsync).",
            sync,
            NANOS_PER_SECOND,
        );
        text.histogram("hive_commit_items", "Calls that were committed together.", items, 1.0);
    }

    fn turns(&self, text: &mut Text) {
        let measures = &*self.measures;
        let mut redeliveries = text.family(
            Counter,
            "hive_redeliveries_total",
            "Deliveries that became ready again, by cause.",
        );
        for (cause, count) in measures.redeliveries() {
            redeliveries.sample(&[("cause", &label(cause))], count);
        }
        text.family(Counter, "hive_dead_letters_total", "Deliveries that became dead letters.")
            .sample(&[], measures.dead_letters());
        let mut turns =
            text.family(Counter, "hive_turns_total", "Turns that have ended, by outcome.");
        for (outcome, count) in measures.turns() {
            turns.sample(&[("outcome", &label(outcome))], count);
        }
        let mut tokens = text.family(
            Counter,
            "hive_turn_tokens_total",
            "Tokens of ended turns, by type. Types do not overlap.",
        );
        for (kind, count) in measures.tokens() {
            tokens.sample(&[("type", kind)], count);
        }
        text.family(Counter, "hive_turn_cost_usd_total", "Cost of ended turns, in US dollars.")
            .sample(&[], dollars(measures.cost_micro_usd()));
        let (inferences, tool_calls) = measures.calls();
        text.family(Counter, "hive_turn_inferences_total", "Inferences of ended turns.")
            .sample(&[], inferences);
        text.family(Counter, "hive_turn_tool_calls_total", "Tool calls of ended turns.")
            .sample(&[], tool_calls);
        let mut spans = text.family(
            Counter,
            "hive_trace_spans_total",
            "Spans of traces: exported to the collector, or dropped.",
        );
        for (result, count) in self.traces.get() {
            spans.sample(&[("result", result)], count);
        }
    }
}

fn dollars(micro_usd: u64) -> String {
    let mut text = String::new();
    // Writing to a string succeeds.
    let _written = write!(text, "{}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000);
    text
}

/// A number of an inbox that is shown.
type Shown = fn(&Depth) -> f64;

fn inboxes(text: &mut Text, levels: &Levels) {
    let Levels { fullest, others: (others, other_count), states, deliveries } = levels;
    let mut agents =
        text.family(Gauge, "hive_agents", "Active agents, by the state of their harness.");
    for (state, count) in states {
        agents.sample(&[("state", &label(state))], count);
    }
    let mut family = text.family(
        Gauge,
        "hive_deliveries",
        "Unsettled deliveries of agents, by state: leased are the leases, dead the dead letters.",
    );
    for (state, count) in deliveries {
        family.sample(&[("state", state)], count);
    }
    let families: [(&'static str, &str, Shown); 3] = [
        (
            "hive_inbox_deliveries",
            "Unsettled deliveries of an inbox. The fullest inboxes have the names of their owners; (others) is the sum of the rest.",
            |depth| depth.unsettled as f64,
        ),
        ("hive_inbox_leased_deliveries", "Leased deliveries of an inbox.", |depth| {
            depth.leased as f64
        }),
        (
            "hive_inbox_oldest_ready_age_seconds",
            "Age of the oldest ready message of an inbox; 0 if there is none. (others) has the oldest one of the rest.",
            |depth| depth.oldest_ready.as_secs_f64(),
        ),
    ];
    for (name, help, shown) in families {
        let mut family = text.family(Gauge, name, help);
        for (agent, depth) in fullest {
            family.sample(&[("agent", agent)], shown(depth));
        }
        if *other_count > 0 {
            family.sample(&[("agent", OTHERS)], shown(others));
        }
    }
    let inboxes = other_count + u64::try_from(fullest.len()).unwrap_or(u64::MAX);
    text.family(Gauge, "hive_inboxes", "Inboxes of active agents and of the operator.")
        .sample(&[], inboxes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_exact() {
        assert_eq!(dollars(0), "0.000000");
        assert_eq!(dollars(1_234_005), "1.234005");
        assert_eq!(dollars(u64::MAX), "18446744073709.551615");
    }
}
