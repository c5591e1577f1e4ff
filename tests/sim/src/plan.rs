//! The plan of a run: a seed, and limits that make it smaller. All of it has command line options.
//!
//! Invariant: a plan determines its run completely.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A request never arrives.
    LostRequest,
    /// An answer never arrives.
    LostReply,
    /// A request arrives twice.
    Repeat,
    /// Requests and answers are delayed, and overtake one another.
    Delay,
    /// A client gives up a call that is under way.
    GiveUp,
    /// The broker is killed.
    Kill,
    /// The power is cut: what was not synced is lost or torn.
    PowerCut,
    /// The broker shuts down cleanly and starts again.
    Restart,
    /// The host reboots.
    Reboot,
    /// The disk refuses reads, writes or syncs.
    BadDisk,
    FullDisk,
    /// The wall clock is set.
    ClockSet,
    /// The host is too busy, or asleep.
    Lag,
    /// A harness loses its connection, freezes, or dies.
    Vanish,
    /// A second harness takes over.
    TakeOver,
    /// A claude outlives its turn.
    Zombie,
    /// Agents come and go.
    Topology,
    /// Old rows are pruned.
    Retention,
    /// Backups are made, and put in place of the database.
    Restore,
}

impl Fault {
    /// All classes.
    pub const ALL: [Self; 19] = [
        Self::LostRequest,
        Self::LostReply,
        Self::Repeat,
        Self::Delay,
        Self::GiveUp,
        Self::Kill,
        Self::PowerCut,
        Self::Restart,
        Self::Reboot,
        Self::BadDisk,
        Self::FullDisk,
        Self::ClockSet,
        Self::Lag,
        Self::Vanish,
        Self::TakeOver,
        Self::Zombie,
        Self::Topology,
        Self::Retention,
        Self::Restore,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::LostRequest => "lost_request",
            Self::LostReply => "lost_reply",
            Self::Repeat => "repeat",
            Self::Delay => "delay",
            Self::GiveUp => "give_up",
            Self::Kill => "kill",
            Self::PowerCut => "power_cut",
            Self::Restart => "restart",
            Self::Reboot => "reboot",
            Self::BadDisk => "bad_disk",
            Self::FullDisk => "full_disk",
            Self::ClockSet => "clock_set",
            Self::Lag => "lag",
            Self::Vanish => "vanish",
            Self::TakeOver => "take_over",
            Self::Zombie => "zombie",
            Self::Topology => "topology",
            Self::Retention => "retention",
            Self::Restore => "restore",
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|fault| fault.name() == text)
            .ok_or_else(|| format!("`{text}` is none of {names}"))
    }
}

/// The definition of a simulated run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    /// Maximum number of steps of the scheduler before all is healed.
    pub steps: u64,
    pub agents: u64,
    /// Minutes on the simulated clock before all is healed; longer in a calm hive.
    pub minutes: u64,
    /// Classes of faults that are left out.
    pub without: BTreeSet<Fault>,
}

impl Plan {
    /// Returns the plan of a seed without limits.
    pub fn of(seed: u64) -> Self {
        Self { seed, steps: u64::MAX, agents: 12, minutes: 60, without: BTreeSet::new() }
    }

    /// Returns whether this class of faults is on.
    pub fn has(&self, fault: Fault) -> bool {
        !self.without.contains(&fault)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, steps, agents, minutes, without } = self;
        let whole = Self::of(*seed);
        write!(f, "sim --seed {seed}")?;
        if *steps != whole.steps {
            write!(f, " --steps {steps}")?;
        }
        if *agents != whole.agents {
            write!(f, " --agents {agents}")?;
        }
        if *minutes != whole.minutes {
            write!(f, " --minutes {minutes}")?;
        }
        if !without.is_empty() {
            let names: Vec<&str> = without.iter().map(|fault| fault.name()).collect();
            write!(f, " --without {}", names.join(","))?;
        }
        Ok(())
    }
}
