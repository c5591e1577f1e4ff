//! Settings of shell tasks.

use clap::{ArgAction, Args};

/// Options of shell tasks.
#[derive(Clone, Debug, Args)]
pub struct TaskArgs {
    /// Timeout of a shell task that requests no other
    #[arg(long, env = "HIVE_BASH_TIMEOUT_SECS", default_value_t = 1800, value_name = "SECS")]
    pub bash_timeout_secs: u64,
    /// Longest timeout that a shell task may request
    #[arg(long, env = "HIVE_BASH_TIMEOUT_MAX_SECS", default_value_t = 86_400, value_name = "SECS")]
    pub bash_timeout_max_secs: u64,
    /// Maximum concurrent shell tasks
    #[arg(long, env = "HIVE_BASH_TASKS_MAX", default_value_t = 16, value_name = "COUNT")]
    pub bash_tasks_max: usize,
    /// Maximum stored output of a shell task; of further output only the end is kept
    #[arg(long, env = "HIVE_BASH_OUTPUT_MAX_MIB", default_value_t = 64, value_name = "MIB")]
    pub bash_output_max_mib: u64,
    /// Maximum writable memory of each process of a shell task [default: no limit]
    #[arg(long, env = "HIVE_BASH_MEMORY_MAX_MIB", value_name = "MIB")]
    pub bash_memory_max_mib: Option<u64>,
    /// Maximum processor time of each process of a shell task [default: no limit]
    #[arg(long, env = "HIVE_BASH_CPU_SECS_MAX", value_name = "SECS")]
    pub bash_cpu_secs_max: Option<u64>,
    /// Maximum processes of the user of a shell task when the task starts another; all processes of
    /// this user count [default: no limit]
    #[arg(long, env = "HIVE_BASH_PROCESSES_MAX", value_name = "COUNT")]
    pub bash_processes_max: Option<u64>,
    /// Largest file that a shell task may write [default: no limit]
    #[arg(long, env = "HIVE_BASH_FILE_MAX_MIB", value_name = "MIB")]
    pub bash_file_max_mib: Option<u64>,
    /// Let cargo print each message in one line when a shell task runs it, unless the command says
    /// otherwise
    #[arg(long, env = "HIVE_CARGO_SHORT_MESSAGES", default_value_t = true, action = ArgAction::Set, value_name = "BOOL")]
    pub cargo_short_messages: bool,
}
