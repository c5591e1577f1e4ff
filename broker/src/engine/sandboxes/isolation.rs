//! The isolation of an agent as it is shown: the supervisor's report, or else what the connection
//! of its harness shows.
//!
//! Invariant: an agent in a sandbox whose harness has not reported is shown as not isolated,
//! because isolation is a result.

use hive_core::agent::Isolation;
use hive_core::limits::{ISOLATION_NOTE_CHARS_MAX, ISOLATION_NOTES_MAX};

use super::{Registration, Sandboxes};

/// The note of a sandbox whose harness has not reported.
const NOT_REPORTED: &str = "its harness has not reported yet what it can reach";
/// The note of each sandbox on kernels before Linux 6.5.
const RACE: &str = "the kernel does not say for certain which process connected (SO_PEERPIDFD needs Linux 6.5): a process that ends while it \
                    connects can be taken for a later one with the same number";

/// A report of the isolation of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The isolation that was reached.
    pub reached: Isolation,
    /// The gaps in the isolation, one sentence each.
    pub notes: Vec<String>,
    /// Whether the configuration states a level that this reaches.
    pub accepted: bool,
}

impl Report {
    /// Cuts a harness's notes to a length that can be shown.
    pub(super) fn truncated(mut self) -> Self {
        self.notes.truncate(ISOLATION_NOTES_MAX);
        for note in &mut self.notes {
            if let Some((end, _)) = note.char_indices().nth(ISOLATION_NOTE_CHARS_MAX) {
                note.truncate(end);
            }
        }
        self
    }
}

/// An isolation as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The isolation that was reached; `None`: unknown.
    pub isolation: Option<Isolation>,
    /// The gaps in the isolation, one sentence each.
    pub notes: Vec<String>,
    /// Whether the configuration states this isolation; `None`: no supervisor has compared them.
    pub accepted: Option<bool>,
}

impl Sandboxes {
    /// Returns what to show of an agent; `seen` is what the connection of its harness shows.
    #[must_use]
    pub fn shown(&self, agent: &str, seen: Option<Isolation>) -> Shown {
        let knows_peers = self.supervised.get().is_none_or(|supervised| supervised.knows_peers);
        let table = self.read();
        let Some(Registration { sandbox, report, .. }) = table.agents.get(agent) else {
            return Shown { isolation: seen, ..Shown::default() };
        };
        let mut shown = match (report, sandbox) {
            (Some(Report { reached, notes, accepted }), _) => {
                Shown { isolation: Some(*reached), notes: notes.clone(), accepted: Some(*accepted) }
            }
            (None, Some(_)) => Shown {
                isolation: Some(Isolation::None),
                notes: vec![NOT_REPORTED.to_owned()],
                accepted: Some(false),
            },
            // A user id or a unit of its own isolates without a sandbox, too.
            (None, None) => Shown {
                isolation: seen
                    .filter(|seen| matches!(seen, Isolation::Uid | Isolation::Unit))
                    .or(Some(Isolation::None)),
                ..Shown::default()
            },
        };
        if sandbox.is_some() && !knows_peers {
            shown.notes.push(RACE.to_owned());
        }
        shown
    }
}
