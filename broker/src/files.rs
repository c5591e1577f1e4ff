//! Open files: the limit of this process, and how many of them agents may have.
//!
//! The broker raises its soft limit to the hard one when it starts. Invariant: a program that it
//! starts begins with the soft limit that the broker began with.

use std::fmt;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::kernel;

/// Files of each agent: its socket and a connection.
pub const FILES_PER_AGENT: usize = 2;
/// Files that the broker keeps for itself: the operator's connections, the database, a backup, a
/// notification.
const RESERVE: usize = 320;
/// The same if the limit is low.
const RESERVE_MIN: usize = 64;
/// More is never needed, and some hosts have no limit at all.
const LIMIT_MAX: usize = 1 << 24;

/// The limits before they were raised.
static GIVEN: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit of this process to the hard one. To be called once, at its start.
pub fn raise() {
    let given = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: given.maximum, maximum: given.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => drop(GIVEN.set(given)),
        Err(error) => {
            tracing::warn!(%error, limit = limit(), "the limit of open files was not raised");
        }
    }
}

/// Returns how many files this process may have open.
#[must_use]
pub fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(LIMIT_MAX).min(LIMIT_MAX)
}

/// Gives a program that is started the soft limit that this process had before [`raise`]: some
/// programs cannot handle more, or go through all numbers below it.
pub(crate) fn give_back(command: &mut tokio::process::Command) {
    if let Some(given) = GIVEN.get() {
        kernel::limit_files(command, *given);
    }
}

/// How a limit is divided: the files that agents may have open, and those of the broker itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    limit: usize,
    reserve: usize,
}

impl Budget {
    /// Divides a limit.
    #[must_use]
    pub fn of(limit: usize) -> Self {
        let reserve = (limit / 4).clamp(RESERVE_MIN, RESERVE);
        Self { limit, reserve }
    }

    /// Returns how many files agents may have open.
    #[must_use]
    pub fn for_agents(self) -> usize {
        self.limit.saturating_sub(self.reserve)
    }

    /// Returns what so many agents lack.
    #[must_use]
    pub fn shortage(self, agents: usize) -> Shortage {
        let Self { limit, reserve } = self;
        let needed = agents.saturating_mul(FILES_PER_AGENT).saturating_add(reserve);
        Shortage { agents, needed, reserve, limit }
    }
}

/// Too few files for the sockets and connections of agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    agents: usize,
    /// The files that these agents and the broker need at least.
    pub needed: usize,
    reserve: usize,
    /// The limit of the broker.
    pub limit: usize,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agents, needed, reserve, limit } = self;
        write!(
            f,
            "sockets and connections of agents have all files open that they may have: {agents} agents need at least {needed} \
             ({FILES_PER_AGENT} each, and {reserve} for the broker), and the limit of hived is {limit}; raise its hard limit \
             (`LimitNOFILE` in its unit, `ulimit -Hn` in a shell) and start it again"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_a_reserve_for_the_broker_and_the_rest_is_for_agents() {
        let rest = |limit| Budget::of(limit).for_agents();
        assert_eq!([0, 64, 128, 1024, 20_000].map(rest), [0, 0, 64, 768, 19_680]);
        let short = Budget::of(1024).shortage(400);
        assert_eq!((short.needed, short.limit), (1056, 1024));
        assert!(short.to_string().contains("400 agents need at least 1056"), "{short}");
    }
}
