//! Settings of shell tasks.

use clap::{ArgAction, Args};

/// How shell tasks are run.
#[derive(Clone, Debug, Args)]
pub struct TaskArgs {
    /// How long a shell task may run that asks for no other time
    #[arg(long, env = "HIVE_BASH_TIMEOUT_SECS", default_value_t = 1800, value_name = "SECS")]
    pub bash_timeout_secs: u64,
    /// The longest time that a shell task may ask for
    #[arg(long, env = "HIVE_BASH_TIMEOUT_MAX_SECS", default_value_t = 86_400, value_name = "SECS")]
    pub bash_timeout_max_secs: u64,
    /// How many shell tasks may run at the same time
    #[arg(long, env = "HIVE_BASH_TASKS_MAX", default_value_t = 16, value_name = "COUNT")]
    pub bash_tasks_max: usize,
    /// How much output of a shell task is kept; of what is more only the end is
    #[arg(long, env = "HIVE_BASH_OUTPUT_MAX_MIB", default_value_t = 64, value_name = "MIB")]
    pub bash_output_max_mib: u64,
    /// How much memory each process of a shell task may write to [default: as much as there is]
    #[arg(long, env = "HIVE_BASH_MEMORY_MAX_MIB", value_name = "MIB")]
    pub bash_memory_max_mib: Option<u64>,
    /// How much processor time each process of a shell task may use [default: any]
    #[arg(long, env = "HIVE_BASH_CPU_SECS_MAX", value_name = "SECS")]
    pub bash_cpu_secs_max: Option<u64>,
    /// How many processes the user of a shell task may have when the task starts another; others of
    /// the same user count too [default: any]
    #[arg(long, env = "HIVE_BASH_PROCESSES_MAX", value_name = "COUNT")]
    pub bash_processes_max: Option<u64>,
    /// How large a file a shell task may write [default: any]
    #[arg(long, env = "HIVE_BASH_FILE_MAX_MIB", value_name = "MIB")]
    pub bash_file_max_mib: Option<u64>,
    /// Let cargo tell each message in one line when a shell task runs it, unless the command says
    /// otherwise
    #[arg(long, env = "HIVE_CARGO_SHORT_MESSAGES", default_value_t = true, action = ArgAction::Set, value_name = "BOOL")]
    pub cargo_short_messages: bool,
}
