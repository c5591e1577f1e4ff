//! The model's window: the configured one, and the one that claude reports.
//!
//! Invariant: the window is never larger than either of the two.

use std::collections::BTreeMap;

/// The window if none is configured and claude has reported none, in tokens.
const FALLBACK: u64 = 200_000;

/// The configured windows, in tokens. The first one that matches the model applies, in the order of
/// the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// For this agent, with any model.
    pub of_agent: Option<u64>,
    /// For models with this in their name, from variables of this harness.
    pub by_key: Parts,
    /// For every model, from a variable of this harness.
    pub of_harness: Option<u64>,
    /// For models with this in their name, in the whole hive.
    pub by_model: Parts,
}

/// Windows by a part of a model's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts(Vec<(String, u64)>);

impl Parts {
    /// Orders the windows so that the longest matching part applies.
    pub fn new(windows: BTreeMap<String, u64>) -> Self {
        let mut parts: Vec<(String, u64)> =
            windows.into_iter().map(|(part, tokens)| (part.to_lowercase(), tokens)).collect();
        parts.sort_by(|(left, _), (right, _)| {
            right.len().cmp(&left.len()).then_with(|| left.cmp(right))
        });
        Self(parts)
    }

    fn window_of(&self, model: &str) -> Option<u64> {
        self.0.iter().find(|(part, _)| model.contains(part)).map(|(_, tokens)| *tokens)
    }
}

impl Windows {
    /// Returns the window of a model for which claude reported `reported` tokens; 0 if it has not.
    pub fn effective(&self, model: &str, reported: u64) -> u64 {
        match (self.set(&model.to_lowercase()), reported) {
            (None, 0) => FALLBACK,
            (None, reported) => reported,
            (Some(set), 0) => set,
            (Some(set), reported) => set.min(reported),
        }
    }

    fn set(&self, model: &str) -> Option<u64> {
        self.of_agent
            .or_else(|| self.by_key.window_of(model))
            .or(self.of_harness)
            .or_else(|| self.by_model.window_of(model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(windows: &[(&str, u64)]) -> Parts {
        Parts::new(windows.iter().map(|(part, tokens)| ((*part).to_owned(), *tokens)).collect())
    }

    #[test]
    fn the_first_configured_window_applies() {
        let mut windows = Windows {
            of_agent: Some(1),
            by_key: parts(&[("opus", 2)]),
            of_harness: Some(3),
            by_model: parts(&[("opus", 4), ("haiku", 5)]),
        };
        assert_eq!(windows.effective("claude-OPUS-5", 0), 1);
        windows.of_agent = None;
        assert_eq!((windows.effective("claude-OPUS-5", 0), windows.effective("haiku", 0)), (2, 3));
        windows.of_harness = None;
        assert_eq!((windows.effective("opus", 0), windows.effective("haiku", 0)), (2, 5));
        windows.by_key = Parts::default();
        assert_eq!((windows.effective("opus", 0), windows.effective("sonnet", 0)), (4, FALLBACK));
    }

    #[test]
    fn the_smaller_of_the_setting_and_the_report_applies() {
        let set = Windows { of_agent: Some(100_000), ..Windows::default() };
        assert_eq!(
            (set.effective("opus", 200_000), set.effective("opus", 50_000)),
            (100_000, 50_000)
        );
        let unset = Windows::default();
        assert_eq!(
            (unset.effective("opus", 1_000_000), unset.effective("opus", 0)),
            (1_000_000, FALLBACK)
        );
    }

    #[test]
    fn the_longest_part_of_the_name_applies() {
        let windows = Windows {
            by_key: parts(&[("opus", 1), ("OPUS-5[1m]", 2), ("claude", 3)]),
            ..Windows::default()
        };
        assert_eq!(
            (windows.effective("claude-opus-5[1M]", 0), windows.effective("claude-opus-4", 0)),
            (2, 3)
        );
    }
}
