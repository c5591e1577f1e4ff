//! Changes that can be made from the screen, and their descriptions.
//!
//! Invariant: a change names its object by an id, never by a row, so that rows may move while a
//! person decides.

use super::item::Key;
use crate::connect::Settlement;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Answer {
        question: u64,
        choices: Vec<String>,
        text: String,
        /// The changes that were shown, for an approval; empty otherwise.
        diff_digest: String,
    },
    CancelQuestion {
        question: u64,
    },
    /// Cancels this turn of an agent, and no other.
    CancelTurn {
        agent: String,
        turn: u64,
    },
    /// Compacts an agent's conversation, once no turn runs.
    Compact {
        agent: String,
    },
    /// Settles a dead letter or a held delivery.
    Settle {
        how: Settlement,
        agent: String,
        message: u64,
    },
    /// Marks mail of the operator as read.
    Ack {
        message: u64,
    },
}

impl Change {
    pub(crate) fn describe(&self) -> Description {
        match self {
            Self::Answer { question, .. } => {
                Description::new("answering", &format!("question {question}"), "answered")
            }
            Self::CancelQuestion { question } => {
                Description::new("cancelling", &format!("question {question}"), "cancelled")
            }
            Self::CancelTurn { agent, turn } => Description {
                done: format!("{agent} is told to cancel turn {turn}; its mail will be held"),
                ..Description::new("cancelling", &format!("turn {turn} of {agent}"), "cancelled")
            },
            Self::Compact { agent } => Description {
                doing: format!("telling {agent} to compact ..."),
                done: format!("{agent} is told to compact its conversation, once no turn runs"),
                failed: format!("{agent} not told to compact"),
            },
            Self::Settle { how, agent, message } => {
                let doing = match how {
                    Settlement::Drop => "dropping",
                    Settlement::Redrive => "redriving",
                    Settlement::Release => "releasing",
                };
                Description::new(doing, &format!("message {message} of {agent}"), how.done())
            }
            Self::Ack { message } => Description {
                doing: format!("marking message {message} as read ..."),
                ..Description::new("marking", &format!("message {message}"), "marked as read")
            },
        }
    }

    /// Returns the question to confirm it; `None` if it needs no confirmation.
    pub(crate) fn confirmation(&self) -> Option<String> {
        match self {
            Self::CancelQuestion { question } => {
                Some(format!("cancel question {question}? its asker is told (y/n)"))
            }
            Self::CancelTurn { agent, turn } => {
                Some(format!("cancel turn {turn} of {agent}? its mail is held (y/n)"))
            }
            Self::Compact { agent } => Some(format!(
                "compact the conversation of {agent}? its model goes on with a summary (y/n)"
            )),
            Self::Settle { how: Settlement::Drop, agent, message } => {
                Some(format!("drop message {message} of {agent}? it is never delivered (y/n)"))
            }
            Self::Answer { .. } | Self::Settle { .. } | Self::Ack { .. } => None,
        }
    }

    /// Returns whether the change removes this row.
    pub(crate) fn settles(&self, key: &Key) -> bool {
        match (self, key) {
            (
                Self::Answer { question, .. } | Self::CancelQuestion { question },
                Key::Question(id),
            ) => question == id,
            (Self::Ack { message }, Key::Mail(id)) => message == id,
            (Self::Settle { how, agent, message }, Key::DeadLetter(inbox, id)) => {
                *how != Settlement::Release && agent == inbox && message == id
            }
            (Self::Settle { how, agent, message }, Key::Held(inbox, id)) => {
                *how != Settlement::Redrive && agent == inbox && message == id
            }
            _ => false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Description {
    /// A description while the change is made.
    pub(crate) doing: String,
    pub(crate) done: String,
    pub(crate) failed: String,
}

impl Description {
    fn new(doing: &str, thing: &str, done: &str) -> Self {
        Self {
            doing: format!("{doing} {thing} ..."),
            done: format!("{thing} {done}"),
            failed: format!("{thing} not {done}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// The broker refused it, for this reason.
    Refused(String),
    /// The outcome is unknown: no answer came, for this reason.
    Unknown(String),
}

/// A change with the request id that it keeps until its outcome is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) change: Change,
    pub(crate) request_id: String,
}

/// Changes that are under way, and those of unknown outcome.
///
/// Invariant: a change that is repeated while its outcome is unknown keeps its request id.
#[derive(Debug)]
pub(crate) struct Changes {
    seed: String,
    count: u64,
    under_way: Vec<Asked>,
    unknown: Vec<Asked>,
    /// The last changes of this screen; their rows may disappear without a note.
    done: Vec<Change>,
}

/// Most past changes that are kept.
const MEMORY: usize = 64;

impl Changes {
    /// `seed` makes request ids that no other process makes.
    pub(crate) fn new(seed: String) -> Self {
        Self { seed, count: 0, under_way: Vec::new(), unknown: Vec::new(), done: Vec::new() }
    }

    /// Begins a change; `None` if it is under way already.
    pub(crate) fn begin(&mut self, change: Change) -> Option<Asked> {
        if self.under_way.iter().any(|asked| asked.change == change) {
            return None;
        }
        let asked = match self.unknown.iter().position(|asked| asked.change == change) {
            Some(index) => self.unknown.remove(index),
            None => {
                self.count += 1;
                Asked { change, request_id: format!("{}-{}", self.seed, self.count) }
            }
        };
        self.under_way.push(asked.clone());
        Some(asked)
    }

    pub(crate) fn end(&mut self, asked: &Asked, outcome: &Outcome) {
        self.under_way.retain(|other| other != asked);
        match outcome {
            Outcome::Done => remember(&mut self.done, asked.change.clone()),
            Outcome::Unknown(_) => remember(&mut self.unknown, asked.clone()),
            Outcome::Refused(_) => {}
        }
    }

    /// Returns whether a row disappeared, or will disappear, by a change of this screen.
    pub(crate) fn settle(&self, key: &Key) -> bool {
        let asked = self.under_way.iter().chain(&self.unknown).map(|asked| &asked.change);
        asked.chain(&self.done).any(|change| change.settles(key))
    }
}

fn remember<T>(past: &mut Vec<T>, one: T) {
    if past.len() >= MEMORY {
        past.remove(0);
    }
    past.push(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_unknown_outcome_keeps_its_request_id_and_others_get_their_own() {
        let mut changes = Changes::new("s".to_owned());
        let redrive =
            |message| Change::Settle { how: Settlement::Redrive, agent: "bob".to_owned(), message };
        let first = changes.begin(redrive(12)).expect("it begins");
        assert_eq!(first.request_id, "s-1");
        assert_eq!(changes.begin(redrive(12)), None, "it is under way");
        changes.end(&first, &Outcome::Unknown("gone".to_owned()));
        assert_eq!(changes.begin(redrive(13)).expect("another").request_id, "s-2");
        assert_eq!(changes.begin(redrive(12)).expect("again").request_id, "s-1");
        changes.end(&first, &Outcome::Done);
        // A dead letter may die again, and is redriven with a new id.
        assert_eq!(changes.begin(redrive(12)).expect("anew").request_id, "s-3");
    }

    #[test]
    fn an_answer_with_another_text_is_another_change() {
        let mut changes = Changes::new("s".to_owned());
        let answer = |text: &str| Change::Answer {
            question: 5,
            choices: Vec::new(),
            text: text.to_owned(),
            diff_digest: String::new(),
        };
        let first = changes.begin(answer("yes")).expect("it begins");
        changes.end(&first, &Outcome::Unknown("gone".to_owned()));
        assert_eq!(changes.begin(answer("no")).expect("another").request_id, "s-2");
    }

    #[test]
    fn only_what_it_is_about_goes_by_a_change() {
        let mut changes = Changes::new("s".to_owned());
        let drop = Change::Settle { how: Settlement::Drop, agent: "bob".to_owned(), message: 12 };
        let asked = changes.begin(drop).expect("it begins");
        changes.end(&asked, &Outcome::Done);
        assert!(changes.settle(&Key::DeadLetter("bob".to_owned(), 12)));
        assert!(changes.settle(&Key::Held("bob".to_owned(), 12)));
        for other in [
            Key::DeadLetter("ada".to_owned(), 12),
            Key::Held("bob".to_owned(), 13),
            Key::Mail(12),
            Key::Question(12),
        ] {
            assert!(!changes.settle(&other), "{other:?}");
        }
    }
}
