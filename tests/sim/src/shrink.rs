//! Shrinking: the smallest plan with the same seed that still breaks a promise.
//!
//! Invariant: a shrunk plan was run, and broke something.

use crate::log::Echo;
use crate::plan::{Fault, Plan};
use crate::run::{Report, run};

/// Maximum number of runs per shrinking.
const RUNS_MAX: u32 = 80;

struct Shrinker {
    best: Report,
    runs: u32,
}

impl Shrinker {
    /// Takes a smaller plan if it also fails.
    fn take(&mut self, plan: Plan) -> bool {
        if self.runs >= RUNS_MAX || plan == self.best.plan {
            return false;
        }
        self.runs += 1;
        let report = run(&plan, Echo::Hash);
        if report.violations.is_empty() {
            return false;
        }
        self.best = report;
        true
    }

    fn plan(&self) -> Plan {
        self.best.plan.clone()
    }
}

/// Shrinks a failed run: first its time, then classes of faults and agents, then single steps.
pub fn shrink(failed: Report) -> Report {
    let mut shrinker = Shrinker { best: failed, runs: 0 };
    while shrinker.plan().minutes > 1
        && shrinker.take(Plan { minutes: shrinker.plan().minutes / 2, ..shrinker.plan() })
    {}
    for fault in Fault::ALL {
        let mut plan = shrinker.plan();
        if plan.without.insert(fault) {
            shrinker.take(plan);
        }
    }
    for agents in [3, 4, 6, 8] {
        if agents < shrinker.plan().agents && shrinker.take(Plan { agents, ..shrinker.plan() }) {
            break;
        }
    }
    // The fewest steps before all is healed. This is a guess, because more steps need not fail if
    // fewer do.
    let (mut low, mut high) = (0, shrinker.best.figures.steps.min(shrinker.plan().steps));
    while high - low > high / 50 + 1 && shrinker.runs < RUNS_MAX {
        let steps = low + (high - low) / 2;
        if shrinker.take(Plan { steps, ..shrinker.plan() }) { high = steps } else { low = steps }
    }
    shrinker.best
}
