//! The size of the conversation, and the decisions that depend on it.
//!
//! Invariant: no conversation is compacted or replaced without a measured size, and a compaction
//! that did not help is not repeated before the conversation has grown.

use std::time::Duration;

use hive_core::agent::Agent;
use hive_core::time::WallTime;

use crate::turn::reset_rule::ResetRule;
use crate::turn::windows::Windows;

/// When a conversation is compacted or replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// Size at which to compact, in tokens; `None`: 75 % of the window; 0: never.
    pub compact: Option<u64>,
    /// Size at which to start a new conversation if the cache is cold, in tokens; `None`: 50 % of
    /// the window; 0: never.
    pub reset: Option<u64>,
    /// Time after a turn for which the cache is warm.
    pub cache_ttl: Duration,
    /// Whether the agent writes its notes in the old conversation before a new one starts.
    pub reset_checkpoint: bool,
    /// When a new conversation starts regardless of size.
    pub reset_rule: ResetRule,
    /// The configured windows.
    pub windows: Windows,
}

/// The measured size of the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    tokens: u64,
    window: u64,
    /// When it was measured.
    time: Option<WallTime>,
    /// When the last turn about mail began in it, if this program knows.
    began: Option<WallTime>,
    /// The size after the last compaction.
    floor: Option<u64>,
}

impl Context {
    /// Applies the broker's values if they are newer. The broker receives a size shortly after the
    /// machine measured it, so only whole seconds count.
    pub(crate) fn remembered(&mut self, agent: &Agent) {
        let time = agent.context_time.map(|time| WallTime(time.0 - time.0.rem_euclid(1000)));
        if time > self.time {
            *self = Self {
                tokens: agent.context_tokens,
                window: agent.context_window_tokens,
                time,
                began: None,
                floor: None,
            };
        }
    }

    /// Records the size at the last inference and the window, as claude reported them; 0 if it did
    /// not.
    pub(crate) fn measured(&mut self, tokens: u64, window: u64, now: WallTime) {
        if tokens > 0 {
            (self.tokens, self.time) = (tokens, Some(now));
        }
        if window > 0 {
            self.window = window;
        }
    }

    /// Records a compaction to this number of tokens, or a failed one.
    pub(crate) fn compacted(&mut self, tokens: Option<u64>, now: WallTime) {
        if let Some(tokens) = tokens {
            (self.tokens, self.time) = (tokens, Some(now));
        }
        self.floor = Some(self.tokens);
    }

    /// Records that a turn about mail begins.
    pub(crate) fn turn_begins(&mut self, now: WallTime) {
        self.began = Some(now);
    }

    /// Records that a new conversation began.
    pub(crate) fn replaced(&mut self) {
        (self.tokens, self.time, self.floor) = (0, None, None);
    }

    /// Forgets the window, because another model has another one.
    pub(crate) fn forget_window(&mut self) {
        self.window = 0;
    }

    fn window(&self, watermarks: &Watermarks, model: &str) -> u64 {
        watermarks.windows.effective(model, self.window)
    }

    /// Returns whether it is time to compact, before the window is full.
    pub(crate) fn is_due_for_compaction(&self, watermarks: &Watermarks, model: &str) -> bool {
        let window = self.window(watermarks, model);
        let watermark = watermarks.compact.unwrap_or(window / 4 * 3);
        let has_grown =
            self.floor.is_none_or(|floor| self.tokens >= floor.saturating_add(window / 20));
        watermark > 0 && self.tokens >= watermark && has_grown
    }

    /// Returns whether continuing would only read a large conversation into a cold cache.
    pub(crate) fn is_due_for_reset(
        &self,
        watermarks: &Watermarks,
        model: &str,
        now: WallTime,
    ) -> bool {
        let watermark = watermarks.reset.unwrap_or(self.window(watermarks, model) / 2);
        let is_cold = self.time.is_some_and(|time| now.since(time) > watermarks.cache_ttl);
        watermark > 0 && self.tokens >= watermark && is_cold
    }

    /// Returns why the operator's rule ends it; `None`: it continues, or there is none yet.
    pub(crate) fn reset_reason(
        &self,
        watermarks: &Watermarks,
        now: WallTime,
    ) -> Option<&'static str> {
        let measured = self.time.filter(|_| self.tokens > 0)?;
        let began = self.began.map_or(measured, |began| began.min(measured));
        watermarks.reset_rule.reason(began, measured, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(tokens: u64, window: u64) -> Context {
        let mut context = Context::default();
        context.measured(tokens, window, WallTime(0));
        context
    }

    #[test]
    fn the_watermark_is_three_quarters_of_the_measured_window() {
        let marks = |compact| Watermarks { compact, ..Watermarks::default() };
        for (context, compact, is_due) in [
            (measured(749_999, 1_000_000), None, false),
            (measured(750_000, 1_000_000), None, true),
            (measured(10, 1_000_000), Some(10), true),
            (measured(999_999, 1_000_000), Some(0), false),
            (Context::default(), Some(10), false),
        ] {
            assert_eq!(
                context.is_due_for_compaction(&marks(compact), "haiku"),
                is_due,
                "{context:?}"
            );
        }
    }

    #[test]
    fn a_window_that_was_set_lowers_the_watermarks_below_the_reported_one() {
        let windows = Windows { of_agent: Some(400), ..Windows::default() };
        let marks =
            Watermarks { windows, cache_ttl: Duration::from_secs(1), ..Watermarks::default() };
        let is_due_for_reset = |context: &Context, marks: &Watermarks| {
            context.is_due_for_reset(marks, "haiku", WallTime(2_000))
        };
        assert!(!measured(299, 1000).is_due_for_compaction(&marks, "haiku"));
        assert!(measured(300, 1000).is_due_for_compaction(&marks, "haiku"));
        assert!(is_due_for_reset(&measured(200, 1000), &marks));
        assert!(!is_due_for_reset(&measured(200, 1000), &Watermarks::default()));
        let mut context = measured(100, 200);
        assert!(is_due_for_reset(&context, &marks), "claude's window is the smaller one");
        context.forget_window();
        assert!(!is_due_for_reset(&context, &marks));
    }

    #[test]
    fn a_compaction_that_did_not_help_is_not_tried_again_at_once() {
        let marks = Watermarks::default();
        let mut context = measured(800, 1000);
        context.compacted(None, WallTime(0));
        context.measured(849, 0, WallTime(0));
        assert!(!context.is_due_for_compaction(&marks, "haiku"));
        context.measured(850, 0, WallTime(0));
        assert!(context.is_due_for_compaction(&marks, "haiku"));
        context.compacted(Some(760), WallTime(0));
        assert!(!context.is_due_for_compaction(&marks, "haiku"));
        context.replaced();
        context.measured(760, 0, WallTime(0));
        assert!(context.is_due_for_compaction(&marks, "haiku"));
    }

    #[test]
    fn a_reset_needs_size_and_a_cold_cache() {
        let marks = Watermarks { cache_ttl: Duration::from_secs(3600), ..Watermarks::default() };
        let context = measured(500, 1000);
        assert!(!context.is_due_for_reset(&marks, "haiku", WallTime(3_600_000)));
        assert!(context.is_due_for_reset(&marks, "haiku", WallTime(3_600_001)));
        assert!(!measured(499, 1000).is_due_for_reset(&marks, "haiku", WallTime(i64::MAX)));
        let off = Watermarks { reset: Some(0), ..marks };
        assert!(!context.is_due_for_reset(&off, "haiku", WallTime(i64::MAX)));
    }
}
