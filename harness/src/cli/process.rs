//! Settings of the process that claude runs in.

use clap::{Args, ValueEnum};

/// The lifetime of a claude process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProcessMode {
    /// A process for each turn.
    #[default]
    PerTurn,
    /// One process for many turns.
    Resident,
}

/// Options of the claude process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct ProcessArgs {
    /// A claude process for each turn, or one that stays between turns
    #[arg(long = "process", env = "HIVE_PROCESS", value_enum, default_value_t = ProcessMode::PerTurn, value_name = "MODE")]
    pub mode: ProcessMode,
    /// Longest time without a turn before a resident claude is ended; 0: no limit
    #[arg(long, env = "HIVE_RESIDENT_IDLE_SECS", default_value_t = 900, value_name = "SECS")]
    pub resident_idle_secs: u64,
    /// Memory above which a resident claude is replaced between turns; 0: no limit
    #[arg(long, env = "HIVE_RESIDENT_MEMORY_MIB", default_value_t = 768, value_name = "MIB")]
    pub resident_memory_mib: u64,
}
