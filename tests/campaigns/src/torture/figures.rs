//! The figures of a run.
//!
//! Invariant: figures only grow, and those of two runs can be added.

use std::collections::BTreeMap;
use std::fmt;

use hive_history::{Answer, Event, Final, History, Op, Reply};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures(pub BTreeMap<String, u64>);

impl Figures {
    /// Adds one to this figure.
    pub(crate) fn count(&mut self, name: &str) {
        self.add(name, 1);
    }

    pub(crate) fn add(&mut self, name: &str, number: u64) {
        *self.0.entry(name.to_owned()).or_default() += number;
    }

    /// Returns the value of this figure.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub fn kills(&self) -> u64 {
        self.0.iter().filter(|(name, _)| name.starts_with("kill ")).map(|(_, number)| number).sum()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, number) in &other.0 {
            self.add(name, *number);
        }
    }

    /// Adds the counts of a tape and of the hive.
    pub(crate) fn take(&mut self, history: &History, last: &Final) {
        let length = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.add("messages", length(last.messages.len()));
        self.add("deliveries", length(last.deliveries.len()));
        self.add("questions", length(last.questions.len()));
        self.add("reminders", length(last.reminders.len()));
        self.add("turns", length(last.turns.len()));
        self.add(
            "redelivered",
            length(last.deliveries.iter().filter(|delivery| delivery.cause.is_some()).count()),
        );
        self.add("observations", length(history.observations.len()));
        let mut rpcs = BTreeMap::new();
        for observation in &history.observations {
            if let Event::Invoked { call, op, .. } = &observation.event {
                rpcs.insert(*call, op.rpc());
            }
            if let Event::Answered { call, answer: Answer::Ok(_) } = &observation.event {
                self.count(&format!("rpc {}", rpcs[call]));
            }
            match &observation.event {
                Event::Answered { answer: Answer::Unknown(_), .. } => self.count("answers lost"),
                Event::Answered { answer: Answer::Refused(_), .. } => self.count("refused"),
                Event::Answered { answer: Answer::Ok(reply), .. } => {
                    self.count("answered");
                    if matches!(reply, Reply::Sent { already: true, .. }) {
                        self.count("not doubled");
                    }
                }
                Event::Invoked { op: Op::Attach { .. }, .. } => self.count("attachments"),
                Event::Invoked { .. } | Event::Saw(_) | Event::Mark(_) => {}
            }
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, number) in &self.0 {
            writeln!(f, "{number:>10}  {name}")?;
        }
        Ok(())
    }
}
