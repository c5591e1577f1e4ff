//! The schedule of reads: after each event, but at most four times a second.
//!
//! Invariant: one reading runs at a time, and whatever happened while it ran is read again after
//! it.

use std::collections::BTreeSet;
use std::time::Duration;

use hive_core::time::BootTime;

use super::hive::Part;

/// Least time from the beginning of a reading to the next.
pub(crate) const READ_PAUSE: Duration = Duration::from_millis(250);
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) parts: BTreeSet<Part>,
    /// Agents in whose inboxes something may be held.
    pub(crate) holders: BTreeSet<String>,
    /// Whether other agents may hold something, too: then all are asked.
    pub(crate) search_holders: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Read(Wanted),
    /// Ask again at this time.
    WakeAt(BootTime),
    Nothing,
}

/// The parts to read, and the earliest time.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    wanted: Wanted,
    running: Option<Wanted>,
    not_before: Option<BootTime>,
}

impl Reads {
    pub(crate) fn want(&mut self, parts: impl IntoIterator<Item = Part>) {
        self.wanted.parts.extend(parts);
    }

    /// Something may be held in this agent's inbox.
    pub(crate) fn want_holder(&mut self, agent: &str) {
        self.wanted.holders.insert(agent.to_owned());
    }

    pub(crate) fn want_all(&mut self) {
        self.want(Part::ALL);
        self.wanted.search_holders = true;
    }

    /// Returns the next step; `holders` are agents that are known to hold something.
    pub(crate) fn next(&mut self, holders: BTreeSet<String>, now: BootTime) -> Next {
        if self.running.is_some() || self.wanted.parts.is_empty() {
            return Next::Nothing;
        }
        if let Some(not_before) = self.not_before.filter(|not_before| *not_before > now) {
            return Next::WakeAt(not_before);
        }
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.holders.extend(holders);
        self.not_before = Some(now.after(READ_PAUSE));
        self.running = Some(wanted.clone());
        Next::Read(wanted)
    }

    pub(crate) fn end(&mut self, well: bool, now: BootTime) {
        let Some(Wanted { parts, holders, search_holders }) = self.running.take() else { return };
        if well {
            return;
        }
        self.wanted.parts.extend(parts);
        self.wanted.holders.extend(holders);
        self.wanted.search_holders |= search_holders;
        self.not_before = Some(now.after(RETRY_PAUSE));
    }

    /// Allows the next read at once.
    pub(crate) fn forgive(&mut self) {
        self.not_before = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(reads: &mut Reads, now: i64) -> Next {
        reads.next(BTreeSet::new(), BootTime(now))
    }

    fn read(parts: &[Part]) -> Next {
        Next::Read(Wanted { parts: parts.iter().copied().collect(), ..Wanted::default() })
    }

    #[test]
    fn a_burst_is_read_at_its_beginning_and_once_after_it() {
        let mut reads = Reads::default();
        assert_eq!(next(&mut reads, 0), Next::Nothing);
        reads.want([Part::Mail]);
        assert_eq!(next(&mut reads, 1000), read(&[Part::Mail]));
        for _ in 0..1000 {
            reads.want([Part::Agents]);
            assert_eq!(next(&mut reads, 1001), Next::Nothing, "one runs");
        }
        reads.end(true, BootTime(1010));
        assert_eq!(next(&mut reads, 1010), Next::WakeAt(BootTime(1250)));
        assert_eq!(next(&mut reads, 1250), read(&[Part::Agents]));
        reads.end(true, BootTime(1260));
        assert_eq!(next(&mut reads, 2000), Next::Nothing);
    }

    #[test]
    fn there_are_at_most_four_readings_a_second() {
        let mut reads = Reads::default();
        let mut count = 0;
        for now in 0..10_000 {
            reads.want([Part::Agents]);
            if let Next::Read(_) = next(&mut reads, now) {
                count += 1;
                reads.end(true, BootTime(now));
            }
        }
        assert_eq!(count, 40);
    }

    #[test]
    fn what_could_not_be_read_is_read_later_together_with_what_came_meanwhile() {
        let mut reads = Reads::default();
        reads.want_all();
        reads.want_holder("bob");
        let Next::Read(first) = next(&mut reads, 0) else { panic!("it is read") };
        assert!(first.search_holders);
        reads.want_holder("ada");
        reads.end(false, BootTime(10));
        assert_eq!(next(&mut reads, 10), Next::WakeAt(BootTime(1010)));
        reads.forgive();
        let Next::Read(again) = next(&mut reads, 20) else { panic!("it is read") };
        assert_eq!(again.parts, Part::ALL.into());
        assert!(
            again.search_holders
                && again.holders == BTreeSet::from(["ada".to_owned(), "bob".to_owned()])
        );
    }
}
