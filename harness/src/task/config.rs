//! The configuration of the supervisor.
//!
//! Invariant: [`Settings`] that exist are usable.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::TaskArgs;
use crate::task::sandbox::Confinement;

const MIB: u64 = 1024 * 1024;
/// Longest timeout of a task, in seconds: a year.
const TIMEOUT_SECS_MAX: u64 = 366 * 24 * 3600;

/// The configuration of the supervisor.
#[derive(Clone, Debug)]
pub struct TaskConfig {
    /// The parent of the directory `tasks` with records and output.
    pub run_dir: PathBuf,
    pub state_dir: PathBuf,
    /// The socket for requests.
    pub socket: PathBuf,
    /// The environment of tasks, as [`super::environment::build`] makes it; each task also gets its
    /// mark.
    pub environment: BTreeMap<OsString, OsString>,
    pub settings: Settings,
    pub confinement: Confinement,
}

/// Settings of shell tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Timeout of a task that requests no other.
    pub timeout: Duration,
    /// The longest timeout that a task may request.
    pub timeout_max: Duration,
    /// Maximum concurrent tasks.
    pub running_max: usize,
    /// Maximum stored bytes of a task's output.
    pub output_bytes_max: u64,
    /// Limits that the kernel enforces.
    pub limits: Limits,
    /// Whether cargo prints each message in one line.
    pub cargo_short_messages: bool,
}

/// Limits that the kernel enforces for each process of a task; `None`: Hive sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of writable memory.
    pub memory_bytes: Option<u64>,
    /// Maximum seconds of processor time.
    pub cpu_secs: Option<u64>,
    /// Maximum processes of the user.
    pub processes: Option<u64>,
    /// Maximum bytes of a file.
    pub file_bytes: Option<u64>,
}

/// Why the settings are not usable.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSettings {
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    #[error(
        "HIVE_BASH_TIMEOUT_SECS ({timeout}) must not be more than HIVE_BASH_TIMEOUT_MAX_SECS ({max})"
    )]
    Timeout { timeout: u64, max: u64 },
    #[error("{name} must be at most {max}")]
    TooLarge { name: &'static str, max: u64 },
}

impl Settings {
    /// Checks the arguments.
    pub fn new(args: &TaskArgs) -> Result<Self, InvalidSettings> {
        let TaskArgs {
            bash_timeout_secs,
            bash_timeout_max_secs,
            bash_tasks_max,
            bash_output_max_mib,
            bash_memory_max_mib,
            bash_cpu_secs_max,
            bash_processes_max,
            bash_file_max_mib,
            cargo_short_messages,
        } = args.clone();
        let counts = [
            ("HIVE_BASH_TIMEOUT_SECS", Some(bash_timeout_secs)),
            ("HIVE_BASH_TASKS_MAX", u64::try_from(bash_tasks_max).ok()),
            ("HIVE_BASH_OUTPUT_MAX_MIB", Some(bash_output_max_mib)),
            ("HIVE_BASH_MEMORY_MAX_MIB", bash_memory_max_mib),
            ("HIVE_BASH_CPU_SECS_MAX", bash_cpu_secs_max),
            ("HIVE_BASH_PROCESSES_MAX", bash_processes_max),
            ("HIVE_BASH_FILE_MAX_MIB", bash_file_max_mib),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, value)| *value == Some(0)) {
            return Err(InvalidSettings::Zero(name));
        }
        if bash_timeout_max_secs > TIMEOUT_SECS_MAX {
            let name = "HIVE_BASH_TIMEOUT_MAX_SECS";
            return Err(InvalidSettings::TooLarge { name, max: TIMEOUT_SECS_MAX });
        }
        if bash_timeout_secs > bash_timeout_max_secs {
            let (timeout, max) = (bash_timeout_secs, bash_timeout_max_secs);
            return Err(InvalidSettings::Timeout { timeout, max });
        }
        let mib = |name, value: u64| {
            value.checked_mul(MIB).ok_or(InvalidSettings::TooLarge { name, max: u64::MAX / MIB })
        };
        let optional_mib =
            |name, value: Option<u64>| value.map(|value| mib(name, value)).transpose();
        Ok(Self {
            timeout: Duration::from_secs(bash_timeout_secs),
            timeout_max: Duration::from_secs(bash_timeout_max_secs),
            running_max: bash_tasks_max,
            output_bytes_max: mib("HIVE_BASH_OUTPUT_MAX_MIB", bash_output_max_mib)?,
            limits: Limits {
                memory_bytes: optional_mib("HIVE_BASH_MEMORY_MAX_MIB", bash_memory_max_mib)?,
                cpu_secs: bash_cpu_secs_max,
                processes: bash_processes_max,
                file_bytes: optional_mib("HIVE_BASH_FILE_MAX_MIB", bash_file_max_mib)?,
            },
            cargo_short_messages,
        })
    }
}

impl Limits {
    /// Returns a script that applies the limits and then becomes bash with the command that is its
    /// first argument; `None` without limits.
    ///
    /// If the host refuses to set a limit, a stricter one applies already.
    pub fn script(&self) -> Option<String> {
        const KIB: u64 = 1024;
        let Self { memory_bytes, cpu_secs, processes, file_bytes } = *self;
        let limits = [
            // Not the address space: many runtimes reserve far more of that than they use.
            ('d', memory_bytes.map(|bytes| bytes / KIB)),
            ('t', cpu_secs),
            ('u', processes),
            ('f', file_bytes.map(|bytes| bytes / KIB)),
        ];
        let lines: String = limits
            .iter()
            .filter_map(|(flag, value)| Some(format!("ulimit -{flag} {} 2>/dev/null; ", (*value)?)))
            .collect();
        (!lines.is_empty()).then(|| format!("{lines}exec bash -c \"$1\""))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        tasks: TaskArgs,
    }

    fn settings(args: &[&str]) -> Result<Settings, InvalidSettings> {
        let cli = Cli::try_parse_from(["x"].iter().chain(args)).expect("parses");
        Settings::new(&cli.tasks)
    }

    #[test]
    fn defaults_are_sound_and_nonsense_names_its_variable() {
        let defaults = settings(&[]).expect("sound");
        assert_eq!(
            (defaults.timeout.as_secs(), defaults.running_max, defaults.output_bytes_max),
            (1800, 16, 64 * MIB)
        );
        assert_eq!(defaults.limits.script(), None);
        for (flag, name) in [
            ("--bash-tasks-max", "HIVE_BASH_TASKS_MAX"),
            ("--bash-file-max-mib", "HIVE_BASH_FILE_MAX_MIB"),
        ] {
            let error = settings(&[flag, "0"]).expect_err("refused").to_string();
            assert!(error.starts_with(name), "{error}");
        }
        assert!(settings(&["--bash-timeout-secs", "60", "--bash-timeout-max-secs", "30"]).is_err());
        assert!(settings(&["--bash-output-max-mib", "99999999999999999"]).is_err());
        assert!(settings(&["--bash-timeout-max-secs", "99999999999999999"]).is_err());
    }

    #[test]
    fn limits_become_a_script() {
        let limits = settings(&["--bash-memory-max-mib", "1", "--bash-cpu-secs-max", "7"])
            .expect("sound")
            .limits;
        let script = "ulimit -d 1024 2>/dev/null; ulimit -t 7 2>/dev/null; exec bash -c \"$1\"";
        assert_eq!(limits.script().as_deref(), Some(script));
    }
}
