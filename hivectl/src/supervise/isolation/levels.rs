//! Which levels work on this host, as the trials show.
//!
//! Invariant: while confined agents run, a trial that fails proves nothing, because they may have
//! made it fail.

use std::collections::BTreeSet;

use hive_core::isolation::Level;

#[derive(Debug, Default)]
pub(super) struct Levels {
    reached: BTreeSet<Level>,
    /// Levels that a trial did not reach before any confined agent ran.
    missed: BTreeSet<Level>,
    agents_run: bool,
}

impl Levels {
    pub(super) fn reach(&mut self, level: Level) {
        self.reached.insert(level);
    }

    /// Notes that a trial did not reach a level; returns whether a weaker one may be used instead.
    pub(super) fn miss(&mut self, level: Level) -> bool {
        if !self.agents_run {
            self.missed.insert(level);
            return true;
        }
        self.missed.contains(&level) && !self.reached.contains(&level)
    }

    /// Notes that a confined agent has been started.
    pub(super) fn agent_runs(&mut self) {
        self.agents_run = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_runs_cannot_lower_the_level_of_another() {
        let mut levels = Levels::default();
        levels.reach(Level::Sandbox);
        assert!(levels.miss(Level::Sandbox), "no agent runs: it is the agent's own programs");
        levels.agent_runs();
        assert!(!levels.miss(Level::Sandbox) && !levels.miss(Level::SharedFiles));

        let mut levels = Levels::default();
        assert!(levels.miss(Level::Sandbox));
        levels.reach(Level::SharedFiles);
        levels.agent_runs();
        assert!(levels.miss(Level::Sandbox), "the host has none");
        assert!(!levels.miss(Level::SharedFiles));
    }
}
