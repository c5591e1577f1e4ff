//! Sums of turns: their number, kinds, outcomes, durations, costs and triggers.
//!
//! Invariant: each turn that ended in the window counts once in the sum of its agent and
//! once in the total. Percentiles go by nearest rank, so each is the duration of one of the turns.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use hive_core::caller::Caller;
use hive_core::limits::{
    STATS_LABELS_MAX, STATS_SLICES, STATS_TOOLS_MAX, STATS_WINDOW_MAX, STATS_WINDOW_MIN,
};
use hive_core::time::WallTime;
use hive_core::turn::{Kind, Outcome, ToolUse, Usage};
use rusqlite::Connection;

use super::history;
use crate::engine::{Engine, Refusal};
use crate::store::turn_stats::{self, EndedTurn};
use crate::store::{AgentKey, agent, question, reminder, turn_tool};

pub use crate::store::turn_stats::{Waker, Window};

/// The statistics of a set of turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of ended turns.
    pub turns: u64,
    /// The number of turns of each kind that occurred.
    pub kinds: Vec<(Kind, u64)>,
    /// The number of turns with each outcome that occurred.
    pub outcomes: Vec<(Outcome, u64)>,
    /// The tokens and the cost of the turns.
    pub usage: Usage,
    /// Half of the turns took at most this long.
    pub duration_p50: Option<Duration>,
    /// 95 % of the turns took at most this long.
    pub duration_p95: Option<Duration>,
    /// Turns that ran a compaction.
    pub compactions: u64,
    /// The tools called most; empty in the statistics of one agent among all.
    pub tools: Vec<ToolUse>,
    /// The triggers, most frequent first.
    pub wakes: Vec<(Waker, u64)>,
    /// The window in equal slices, oldest first; empty in the statistics of one agent among all.
    pub slices: Vec<Slice>,
}

/// A part of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The start of the slice.
    pub start: WallTime,
    /// Turns that ended in the slice.
    pub turns: u64,
    /// Turns of the slice that did not end OK.
    pub not_ok: u64,
    /// Cost of all turns of the slice, in millionths of a US dollar.
    pub cost_micro_usd: u64,
    /// Output tokens of all turns of the slice.
    pub output_tokens: u64,
}

/// The answer to `GetTurnStats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnStats {
    /// The window of the sums.
    pub window: Window,
    /// The sum of all turns.
    pub total: Stats,
    /// The sum of each agent that had turns, by name; only if all agents were asked for.
    pub agents: Vec<(String, Stats)>,
    /// The open items now.
    pub open: Open,
}

/// The numbers of open items, of one agent or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// Open questions; of one agent, those that it asked.
    pub questions_asked: u64,
    /// Open questions to the agent; 0 if the numbers are of all agents together.
    pub questions_owed: u64,
    /// Pending reminders.
    pub reminders_pending: u64,
}

impl Open {
    fn read(conn: &Connection, agent: Option<AgentKey>) -> Result<Self, Refusal> {
        Ok(match agent {
            None => Self {
                questions_asked: question::open_count(conn)?,
                questions_owed: 0,
                reminders_pending: reminder::pending_count(conn)?,
            },
            Some(key) => Self {
                questions_asked: question::open_asked(conn, key)?.into(),
                questions_owed: question::open_owed(conn, key)?,
                reminders_pending: reminder::pending(conn, key)?.into(),
            },
        })
    }
}

/// Adds up turns one by one.
#[derive(Clone, Debug, Default)]
struct Sum {
    kinds: HashMap<Kind, u64>,
    outcomes: HashMap<Outcome, u64>,
    usage: Usage,
    /// Milliseconds of each turn.
    durations: Vec<u64>,
    compactions: u64,
    wakers: HashMap<Waker, u64>,
}

impl Sum {
    fn add(&mut self, turn: EndedTurn) {
        let EndedTurn { agent: _, kind, outcome, start_time, end_time, usage, compacted, waker } =
            turn;
        *self.kinds.entry(kind).or_default() += 1;
        *self.outcomes.entry(outcome).or_default() += 1;
        self.usage = add_usage(self.usage, usage);
        // `since` gives 0 if the wall clock was set back during the turn.
        self.durations
            .push(u64::try_from(end_time.since(start_time).as_millis()).unwrap_or(u64::MAX));
        self.compactions += u64::from(compacted);
        *self.wakers.entry(waker).or_default() += 1;
    }

    fn merge(&mut self, other: &Self) {
        add_counts(&mut self.kinds, &other.kinds);
        add_counts(&mut self.outcomes, &other.outcomes);
        add_counts(&mut self.wakers, &other.wakers);
        self.usage = add_usage(self.usage, other.usage);
        self.durations.extend_from_slice(&other.durations);
        self.compactions += other.compactions;
    }

    fn stats(self) -> Stats {
        let Self { kinds, outcomes, usage, mut durations, compactions, wakers } = self;
        Stats {
            turns: durations.len() as u64,
            kinds: most_first(kinds, |kind| kind as u8),
            outcomes: most_first(outcomes, |outcome| outcome as u8),
            usage,
            duration_p50: nearest_rank(&mut durations, 50),
            duration_p95: nearest_rank(&mut durations, 95),
            compactions,
            // Only the total has tools and slices; `turn_stats` adds them.
            tools: Vec::new(),
            wakes: wakes(wakers),
            slices: Vec::new(),
        }
    }
}

fn add_counts<K: Clone + Eq + Hash>(to: &mut HashMap<K, u64>, from: &HashMap<K, u64>) {
    for (key, count) in from {
        *to.entry(key.clone()).or_default() += count;
    }
}

fn add_usage(one: Usage, other: Usage) -> Usage {
    Usage {
        input_tokens: one.input_tokens.saturating_add(other.input_tokens),
        cache_read_tokens: one.cache_read_tokens.saturating_add(other.cache_read_tokens),
        cache_creation_tokens: one
            .cache_creation_tokens
            .saturating_add(other.cache_creation_tokens),
        output_tokens: one.output_tokens.saturating_add(other.output_tokens),
        cost_micro_usd: one.cost_micro_usd.saturating_add(other.cost_micro_usd),
        inference_count: one.inference_count.saturating_add(other.inference_count),
        tool_call_count: one.tool_call_count.saturating_add(other.tool_call_count),
    }
}

/// Sorts counts, largest first; equal ones by `rank`, so that the same turns give the same answer.
fn most_first<K, R: Ord>(counts: HashMap<K, u64>, rank: impl Fn(K) -> R) -> Vec<(K, u64)>
where
    K: Clone,
{
    let mut counts: Vec<(K, u64)> = counts.into_iter().collect();
    counts.sort_by_cached_key(|(key, count)| (std::cmp::Reverse(*count), rank(key.clone())));
    counts
}

/// Counts the triggers of the turns. Co-processes may use any number of labels, so only the most
/// frequent ones are listed; the others are counted together, under an empty label.
fn wakes(wakers: HashMap<Waker, u64>) -> Vec<(Waker, u64)> {
    let rank = |waker: Waker| match waker {
        Waker::Agent => (1, 0, String::new()),
        Waker::Operator => (2, 0, String::new()),
        Waker::System(kind) => (3, kind as u8, String::new()),
        Waker::External(label) => (4, 0, label),
        Waker::Turn(kind) => (5, kind as u8, String::new()),
    };
    let (mut labels, mut listed) = (0, HashMap::new());
    for (waker, count) in most_first(wakers, rank) {
        let waker = match waker {
            Waker::External(_) if labels >= STATS_LABELS_MAX => Waker::External(String::new()),
            Waker::External(label) => {
                labels += 1;
                Waker::External(label)
            }
            other @ (Waker::Agent | Waker::Operator | Waker::System(_) | Waker::Turn(_)) => other,
        };
        *listed.entry(waker).or_default() += count;
    }
    most_first(listed, rank)
}

/// Returns the smallest duration that at least `percent` of the turns did not exceed.
fn nearest_rank(durations: &mut [u64], percent: usize) -> Option<Duration> {
    let rank = (durations.len() * percent).div_ceil(100);
    let index = rank.checked_sub(1)?;
    Some(Duration::from_millis(*durations.select_nth_unstable(index).1))
}

/// Cuts the window into empty slices.
fn slices_of(window: Window) -> Vec<Slice> {
    let count = i64::try_from(STATS_SLICES).expect("few slices");
    let span = window.end.0 - window.start.0;
    (0..count)
        .map(|index| Slice {
            start: WallTime(window.start.0 + span * index / count),
            ..Slice::default()
        })
        .collect()
}

/// Counts a turn in the slice in which it ended. A slice, like the window, excludes its start and
/// includes its end.
fn add_to(slices: &mut [Slice], turn: &EndedTurn) {
    let begun = slices.partition_point(|slice| slice.start < turn.end_time);
    let Some(slice) = slices.get_mut(begun.saturating_sub(1)) else { return };
    slice.turns += 1;
    slice.not_ok += u64::from(turn.outcome != Outcome::Ok);
    slice.cost_micro_usd = slice.cost_micro_usd.saturating_add(turn.usage.cost_micro_usd);
    slice.output_tokens = slice.output_tokens.saturating_add(turn.usage.output_tokens);
}

impl Engine {
    /// Sums up the turns that ended in the window: of the caller, of one agent, or of all.
    pub async fn turn_stats(
        &self,
        caller: Caller,
        agent: String,
        window: Duration,
    ) -> Result<TurnStats, Refusal> {
        if !(STATS_WINDOW_MIN..=STATS_WINDOW_MAX).contains(&window) {
            let problem =
                format!("it must be between 1 s and {} days", STATS_WINDOW_MAX.as_secs() / 86_400);
            return Err(Refusal::Field { field: "window", problem });
        }
        self.store
            .read(move |conn, now| {
                let scope = history::scope(conn, &caller, &agent)?;
                let window = Window { start: now.wall.before(window), end: now.wall };
                let (mut sums, mut slices) = (BTreeMap::<AgentKey, Sum>::new(), slices_of(window));
                turn_stats::each(conn, window, scope, |turn| {
                    add_to(&mut slices, &turn);
                    sums.entry(turn.agent).or_default().add(turn);
                })?;
                let mut all = Sum::default();
                sums.values().for_each(|sum| all.merge(sum));
                let tools =
                    turn_tool::most_called(conn, window, scope, STATS_TOOLS_MAX)?.into_iter();
                let tools = tools.map(|(name, count)| ToolUse {
                    name,
                    count: u32::try_from(count).unwrap_or(u32::MAX),
                });
                let total = Stats { tools: tools.collect(), slices, ..all.stats() };
                let mut agents = Vec::new();
                if scope.is_none() {
                    for (key, sum) in sums {
                        agents.push((agent::name_of(conn, key)?, sum.stats()));
                    }
                    agents.sort_by(|(one, _), (other, _)| one.cmp(other));
                }
                Ok(TurnStats { window, total, agents, open: Open::read(conn, scope)? })
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_rank_is_one_of_the_durations() {
        let of = |durations: &[u64], percent| {
            nearest_rank(&mut durations.to_vec(), percent).map(|span| span.as_millis())
        };
        assert_eq!(of(&[], 50), None);
        assert_eq!((of(&[7], 50), of(&[7], 95)), (Some(7), Some(7)));
        assert_eq!((of(&[9, 1], 50), of(&[9, 1], 95)), (Some(1), Some(9)));
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!((of(&hundred, 50), of(&hundred, 95)), (Some(50), Some(95)));
        assert_eq!((of(&[3, 1, 2], 50), of(&[3, 1, 2], 95)), (Some(2), Some(3)));
    }

    #[test]
    fn only_the_most_frequent_labels_are_listed_and_none_is_lost() {
        let labels = (1..=30).map(|number| (Waker::External(format!("label-{number:02}")), number));
        let listed = wakes(labels.chain([(Waker::Agent, 5)]).collect());
        assert_eq!(listed.iter().map(|(_, count)| count).sum::<u64>(), (1..=30).sum::<u64>() + 5);
        assert_eq!(listed.len(), STATS_LABELS_MAX + 2);
        let rest = (1..=10).sum();
        assert_eq!(
            listed[0],
            (Waker::External(String::new()), rest),
            "the other labels are counted together; their sum is the largest"
        );
        assert_eq!(listed[1], (Waker::External("label-30".to_owned()), 30));
    }
}
