//! Request ids of clients that count their calls: which of them are certainly new.
//!
//! Nearly every request is new, and a query for it finds nothing. For each series memory knows the
//! highest number. Invariant: an id is called new only if no row can have it, even if commands have
//! failed in the meantime; after an aborted batch nothing is known.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use rusqlite::Result;

use crate::map::Map;
use crate::store::key::AgentKey;
use crate::store::row::request::Counted;

/// Series in memory. If there are more, all are looked at again.
const SERIES_MAX: usize = 4096;

/// What is known of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Known {
    /// No id has a number above this one.
    UpTo(u64),
    /// Some of its ids have rows of their own, whose numbers are not in order.
    Nothing,
}

/// The series of one caller and RPC, by name.
type KnownSeries = HashMap<String, Known>;

#[derive(Debug, Default)]
pub(in crate::store) struct RequestIds {
    callers: RefCell<Map<(AgentKey, &'static str), KnownSeries>>,
    /// The number of series.
    count: Cell<usize>,
}

impl RequestIds {
    /// Returns whether no row has this id of a caller; `look` returns what the rows say of its
    /// series.
    pub(in crate::store) fn is_new(
        &self,
        caller: AgentKey,
        rpc: &'static str,
        id: Counted<'_>,
        look: impl FnOnce() -> Result<Known>,
    ) -> Result<bool> {
        let mut callers = self.callers.borrow_mut();
        let series = callers.entry((caller, rpc)).or_default();
        let known = match series.get_mut(id.series) {
            Some(known) => known,
            None => {
                let known = look()?;
                self.count.set(self.count.get() + 1);
                series.entry(id.series.to_owned()).or_insert(known)
            }
        };
        Ok(match known {
            Known::UpTo(highest) if id.number > *highest => {
                *highest = id.number;
                true
            }
            Known::UpTo(_) | Known::Nothing => false,
        })
    }

    /// Notes that the batch is on disk.
    pub(super) fn committed(&self) {
        if self.count.get() > SERIES_MAX {
            self.clear();
        }
    }

    pub(super) fn clear(&self) {
        self.callers.borrow_mut().clear();
        self.count.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLER: AgentKey = AgentKey(2);

    fn is_new(ids: &RequestIds, id: &str, rows: Known) -> bool {
        let id = Counted::of(id).expect("it is counted");
        ids.is_new(CALLER, "Send", id, || Ok(rows)).expect("no fault")
    }

    #[test]
    fn only_a_higher_number_of_a_series_is_new() {
        let ids = RequestIds::default();
        let is_new = |id: &str| is_new(&ids, id, Known::UpTo(2));
        assert_eq!(
            ["a-3", "a-5", "a-4", "a-5", "a-6"].map(is_new),
            [true, true, false, false, true]
        );
        assert_eq!(["b-2", "a-7", "b-3", "b-3"].map(is_new), [false, true, true, false]);
        let id = Counted { series: "a", number: 3 };
        let other = ids.is_new(CALLER, "Ask", id, || Ok(Known::UpTo(0))).expect("no fault");
        let another = ids.is_new(AgentKey(3), "Send", id, || Ok(Known::UpTo(0))).expect("no fault");
        assert!(other && another, "each caller and each RPC has series of its own");
    }

    #[test]
    fn nothing_is_new_in_a_series_with_rows_that_have_no_order() {
        let ids = RequestIds::default();
        let old = ["old-9", "old-10"].map(|id| is_new(&ids, id, Known::Nothing));
        assert_eq!((old, is_new(&ids, "new-1", Known::UpTo(0))), ([false, false], true));
        ids.clear();
        assert!(is_new(&ids, "new-1", Known::UpTo(0)), "it is looked at again");
    }
}
