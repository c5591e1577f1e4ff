//! The names under which the service manager keeps the sockets of agents.
//!
//! At the next start systemd hands over the names of all of them in one variable of the
//! environment, and Linux starts no program with a variable of more than 128 KiB: with longer names
//! the broker would never start again. So a socket has the name of its agent as long as there is
//! room, and a number after that. Invariant: however many sockets are kept, up to ten thousand, and
//! whatever their names, the variable is shorter; and no two sockets have one name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hive_core::name::AgentName;

/// Bytes of the names of agents with what separates them. Ten thousand numbers have 60,000 more.
const AGENTS_BYTES_MAX: usize = 60_000;
/// Precedes a number. No name of an agent begins with it.
const NUMBER: char = '@';
/// Above any number that is given away: there are fewer sockets.
const NUMBERS_MAX: u32 = 100_000;

/// A name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// That of the agent.
    Agent(AgentName),
    /// A number; the path of the socket tells whose it is.
    Number(u32),
}

impl Name {
    /// Reads a name; `None` if it is none of this broker's.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix(NUMBER) {
            Some(number) => {
                let number = number.parse().ok().filter(|number| *number < NUMBERS_MAX)?;
                Some(Self::Number(number)).filter(|name| name.to_string() == text)
            }
            None => AgentName::parse(text).ok().map(Self::Agent),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(name) => write!(f, "{name}"),
            Self::Number(number) => write!(f, "{NUMBER}{number}"),
        }
    }
}

/// The names of all kept sockets.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The number of an agent; `None`: its socket has the agent's own name.
    numbers: BTreeMap<AgentName, Option<u32>>,
    agents_bytes: usize,
    /// Numbers below `next` that no socket has.
    free: BTreeSet<u32>,
    next: u32,
}

impl Names {
    /// Returns the name for the socket of an agent; the same one if it has one.
    pub(super) fn give(&mut self, agent: &AgentName) -> Name {
        if let Some(number) = self.numbers.get(agent) {
            return name(agent, *number);
        }
        let number = if self.agents_bytes + bytes(agent) <= AGENTS_BYTES_MAX {
            self.agents_bytes += bytes(agent);
            None
        } else {
            Some(self.free.pop_first().unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            }))
        };
        self.numbers.insert(agent.clone(), number);
        name(agent, number)
    }

    /// Notes a name that the last broker gave. Returns false if the agent has another.
    pub(super) fn found(&mut self, agent: &AgentName, given: &Name) -> bool {
        if let Some(number) = self.numbers.get(agent) {
            return name(agent, *number) == *given;
        }
        let number = match *given {
            Name::Agent(_) => {
                self.agents_bytes += bytes(agent);
                None
            }
            Name::Number(number) => {
                self.free.extend(self.next..number);
                self.next = self.next.max(number + 1);
                self.free.remove(&number);
                Some(number)
            }
        };
        self.numbers.insert(agent.clone(), number);
        true
    }

    /// Returns whether sockets have to change their names for the others to fit.
    pub(super) fn are_too_long(&self) -> bool {
        self.agents_bytes > AGENTS_BYTES_MAX
    }

    /// Takes back the name of an agent's socket; `None` if it has none.
    pub(super) fn take_back(&mut self, agent: &AgentName) -> Option<Name> {
        let number = self.numbers.remove(agent)?;
        match number {
            None => self.agents_bytes -= bytes(agent),
            Some(number) => drop(self.free.insert(number)),
        }
        Some(name(agent, number))
    }
}

fn name(agent: &AgentName, number: Option<u32>) -> Name {
    number.map_or_else(|| Name::Agent(agent.clone()), Name::Number)
}

/// Bytes of an agent's name, with what separates it from the next.
fn bytes(agent: &AgentName) -> usize {
    agent.as_str().len() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Longest variable that a program can be started with, with its name and its end.
    const VARIABLE_BYTES_MAX: usize = 131_072;

    fn agent(number: usize, length: usize) -> AgentName {
        AgentName::parse(&format!("a{number:0width$}", width = length - 1)).expect("a name")
    }

    fn variable(names: &Names) -> String {
        let all = names.numbers.iter();
        let all: Vec<_> = all.map(|(agent, number)| name(agent, *number).to_string()).collect();
        format!("LISTEN_FDNAMES=hived.socket:{}", all.join(":"))
    }

    #[test]
    fn the_names_of_ten_thousand_sockets_fit_into_a_variable() {
        for length in [5, 6, 7, 12, 30, 63] {
            let mut names = Names::default();
            for number in 0..10_000 {
                names.give(&agent(number, length));
            }
            let variable = variable(&names);
            assert!(variable.len() < VARIABLE_BYTES_MAX, "{length}: {}", variable.len());
            let mut different: Vec<_> = variable.split(':').skip(1).collect();
            different.sort_unstable();
            different.dedup();
            assert_eq!(different.len(), 10_000);
        }
    }

    #[test]
    fn a_number_is_free_again_after_its_socket_also_for_the_next_broker() {
        let mut names = Names::default();
        let (first, last) = (agent(0, 63), agent(AGENTS_BYTES_MAX / 64, 63));
        assert_eq!(names.give(&first), Name::Agent(first.clone()));
        for number in 1..AGENTS_BYTES_MAX / 64 {
            names.give(&agent(number, 63));
        }
        assert_eq!(names.give(&last), Name::Number(0));
        assert_eq!(names.give(&last), Name::Number(0), "it has one");
        let others: Vec<_> = (2000..2005).map(|number| agent(number, 63)).collect();
        for (number, other) in (1..).zip(&others) {
            assert_eq!(names.give(other), Name::Number(number));
        }
        assert_eq!(names.take_back(&others[1]), Some(Name::Number(2)));
        assert_eq!(names.take_back(&others[1]), None);

        // The next broker finds them in any order.
        let mut next = Names::default();
        for (agent, number) in names.numbers.iter().rev() {
            assert!(next.found(agent, &name(agent, *number)));
        }
        assert!(!next.found(&last, &Name::Agent(last.clone())), "it has a number");
        assert_eq!(variable(&next), variable(&names));
        assert_eq!(next.give(&others[1]), Name::Number(2));
        assert_eq!(next.give(&agent(3000, 63)), Name::Number(6));
        // There is room for a name again.
        assert_eq!(next.take_back(&first), Some(Name::Agent(first.clone())));
        assert_eq!(next.give(&agent(3001, 63)), Name::Agent(agent(3001, 63)));
    }

    #[test]
    fn names_of_an_earlier_broker_that_are_too_long_get_shorter() {
        let mut names = Names::default();
        let all: Vec<_> = (0..2_000).map(|number| agent(number, 63)).collect();
        for agent in &all {
            assert!(names.found(agent, &Name::Agent(agent.clone())));
            if names.are_too_long() {
                names.take_back(agent);
                assert!(matches!(names.give(agent), Name::Number(_)));
            }
        }
        let numbered = names.numbers.values().flatten().count();
        assert_eq!(numbered, all.len() - AGENTS_BYTES_MAX / 64);
        assert!(!names.are_too_long());
    }

    #[test]
    fn a_name_is_read_as_it_was_written_and_others_are_not_read() {
        for name in [Name::Number(0), Name::Number(99_999), Name::Agent(agent(1, 9))] {
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        for other in ["", "@", "@100000", "@07", "@-1", "@x", "hived.socket", "connection", "Ada"] {
            let read = Name::parse(other);
            assert!(read.is_none() || other == "connection", "{other}: {read:?}");
        }
    }
}
