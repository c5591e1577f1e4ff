//! Request ids of clients that count their calls: which of them are certainly new.
//!
//! Nearly every request is new, and a query for it finds nothing. An id such as `client-17` is of
//! the series `client`. If the file had no id of a series when it was first looked at, memory knows
//! the highest number since then. Invariant: an id is called new only if no row can have it, even
//! if commands have failed in the meantime; after an aborted batch nothing is known.

use std::cell::RefCell;
use std::collections::HashMap;

use rusqlite::Result;

use crate::store::key::AgentKey;

/// Series in memory. If there are more, all are looked at again.
const SERIES_MAX: usize = 4096;

/// What is known of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    /// No id has a number above this one.
    UpTo(u64),
    /// The file had some of its ids before.
    Older,
}

/// The series of one caller and RPC, by name.
type Known = HashMap<String, Series>;

#[derive(Debug, Default)]
pub(in crate::store) struct RequestIds {
    callers: RefCell<HashMap<(AgentKey, &'static str), Known>>,
}

/// Returns the series and the number of an id.
fn parts(id: &str) -> Option<(&str, u64)> {
    let (series, number) = id.rsplit_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| is_number)?;
    Some((series, number))
}

impl RequestIds {
    /// Returns whether no row has this id of a caller; `has_any` returns whether the file has any
    /// of a series.
    pub(in crate::store) fn is_new(
        &self,
        caller: AgentKey,
        rpc: &'static str,
        id: &str,
        has_any: impl FnOnce(&str) -> Result<bool>,
    ) -> Result<bool> {
        let Some((series, number)) = parts(id) else { return Ok(false) };
        let mut callers = self.callers.borrow_mut();
        let known = callers.entry((caller, rpc)).or_default();
        if let Some(state) = known.get_mut(series) {
            return Ok(match state {
                Series::UpTo(highest) if number > *highest => {
                    *highest = number;
                    true
                }
                Series::UpTo(_) | Series::Older => false,
            });
        }
        let is_new = !has_any(series)?;
        let state = if is_new { Series::UpTo(number) } else { Series::Older };
        known.insert(series.to_owned(), state);
        Ok(is_new)
    }

    /// Notes that the batch is on disk.
    pub(super) fn committed(&self) {
        let count: usize = self.callers.borrow().values().map(HashMap::len).sum();
        if count > SERIES_MAX {
            self.clear();
        }
    }

    pub(super) fn clear(&self) {
        self.callers.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLER: AgentKey = AgentKey(2);

    #[test]
    fn only_a_higher_number_of_a_series_is_new() {
        let ids = RequestIds::default();
        let is_new = |id: &str| ids.is_new(CALLER, "Send", id, |_| Ok(false)).expect("no fault");
        assert_eq!(
            ["a-1", "a-3", "a-2", "a-3", "a-4"].map(is_new),
            [true, true, false, false, true]
        );
        assert_eq!(["b-7", "a-5", "b-07", "b-8"].map(is_new), [true, true, false, true]);
        assert_eq!(
            ["a", "a-", "a-x", "a-+6", "6", "a-99999999999999999999"].map(is_new),
            [false; 6]
        );
        let other = ids.is_new(CALLER, "Ask", "a-1", |_| Ok(false)).expect("no fault");
        let another = ids.is_new(AgentKey(3), "Send", "a-1", |_| Ok(false)).expect("no fault");
        assert!(other && another, "each caller and each RPC has series of its own");
    }

    #[test]
    fn nothing_is_new_in_a_series_that_the_file_had() {
        let ids = RequestIds::default();
        let is_new = |id: &str| {
            let has_any = |series: &str| Ok(series == "old");
            ids.is_new(CALLER, "Send", id, has_any).expect("no fault")
        };
        assert_eq!(["old-9", "old-10", "new-1"].map(is_new), [false, false, true]);
        ids.clear();
        assert!(is_new("new-1"), "it is looked at again");
    }
}
