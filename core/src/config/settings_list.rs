//! The settings of a harness that have a key in `hive.toml`.
//!
//! Invariant: this is the only list of these settings. Parsing, the environment that `hivectl up`
//! makes and the table in `docs/operations.md` are derived from it, so every accepted key has an
//! effect.

use std::ops::RangeInclusive;

use super::settings::Kind::{self, Flag, Number, Word};
use super::settings::Setting;

/// Seconds of a year: the longest duration of a setting.
const YEAR_SECS: u64 = 366 * 24 * 3600;
/// Maximum tokens of a window or a watermark.
const TOKENS_MAX: u64 = 100_000_000;
/// Maximum MiB of memory, output or files: a TiB.
const MIB_MAX: u64 = 1024 * 1024;
/// Valid windows, in tokens.
pub(super) const WINDOW_TOKENS: RangeInclusive<u64> = 1_000..=TOKENS_MAX;
/// The only key that exists for agents alone: for all agents, `context_windows` sets windows by
/// model.
pub(super) const OF_AGENT: &str = "context_window_tokens";

const fn setting(
    key: &'static str,
    variable: &'static str,
    kind: Kind,
    default: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting { key, variable, kind, default, meaning }
}

/// All settings of a harness that have a key, in the order of the documentation.
pub const SETTINGS: &[Setting] = &[
    setting(
        "process",
        "HIVE_PROCESS",
        Word(&["per-turn", "resident"]),
        "per-turn",
        "`per-turn`: a claude process for each turn; `resident`: one process for many turns",
    ),
    setting(
        "resident_idle_secs",
        "HIVE_RESIDENT_IDLE_SECS",
        Number(0, YEAR_SECS),
        "900",
        "end a resident claude after so long without a turn; 0 never",
    ),
    setting(
        "resident_memory_mib",
        "HIVE_RESIDENT_MEMORY_MIB",
        Number(0, MIB_MAX),
        "768",
        "replace a resident claude that has grown beyond this; 0 never",
    ),
    setting(
        "max_retries",
        "HIVE_CLAUDE_MAX_RETRIES",
        Number(0, 100),
        "2",
        "how often claude itself repeats a failing API call",
    ),
    setting(
        "turn_idle_timeout_secs",
        "HIVE_TURN_IDLE_TIMEOUT_SECS",
        Number(0, YEAR_SECS),
        "1800",
        "end a turn that has shown nothing for this long; 0 never",
    ),
    setting(
        "turn_max_secs",
        "HIVE_TURN_MAX_SECS",
        Number(0, YEAR_SECS),
        "0",
        "end a turn that has run for this long; 0 never",
    ),
    setting(
        "rate_limit_sleep_secs",
        "HIVE_RATE_LIMIT_SLEEP_SECS",
        Number(1, YEAR_SECS),
        "the broker's `rate_limit_park_ms`",
        "how long to rest at a rate limit that does not say when it ends",
    ),
    setting(
        "drain_grace_secs",
        "HIVE_DRAIN_GRACE_SECS",
        Number(0, 86_400),
        "20",
        "how long a running turn may go on after SIGTERM",
    ),
    setting(
        "kill_grace_ms",
        "HIVE_KILL_GRACE_MS",
        Number(0, 600_000),
        "5000",
        "how long claude has to obey a signal before a stronger one follows",
    ),
    setting(
        "heartbeat_secs",
        "HIVE_HEARTBEAT_SECS",
        Number(1, 30),
        "10",
        "how often the harness tells the broker that it lives",
    ),
    setting(
        OF_AGENT,
        "HIVE_AGENT_CONTEXT_WINDOW_TOKENS",
        Number(1_000, TOKENS_MAX),
        "see [conversations](#conversations)",
        "the model's window; the size that claude reports holds where it is smaller. Only in `[agents.NAME]`",
    ),
    setting(
        "auto_compact",
        "HIVE_AUTO_COMPACT",
        Flag,
        "true",
        "whether the conversation is compacted before the window is full",
    ),
    setting(
        "compact_watermark_tokens",
        "HIVE_COMPACT_WATERMARK_TOKENS",
        Number(0, TOKENS_MAX),
        "75 % of the window",
        "compact after a turn that leaves so many tokens; 0 never",
    ),
    setting(
        "auto_reset_watermark_tokens",
        "HIVE_AUTO_RESET_WATERMARK_TOKENS",
        Number(0, TOKENS_MAX),
        "50 % of the window",
        "start a new conversation where so many tokens meet a cold cache; 0 never",
    ),
    setting(
        "auto_reset_checkpoint",
        "HIVE_AUTO_RESET_CHECKPOINT",
        Flag,
        "false",
        "ask for notes in the old conversation first, which reads all of it once more",
    ),
    setting(
        "cache_ttl_secs",
        "HIVE_CACHE_TTL_SECS",
        Number(0, YEAR_SECS),
        "3600",
        "how long after a turn the model's prompt cache is warm",
    ),
    setting(
        "reset.daily_at",
        "HIVE_RESET_DAILY_AT",
        Kind::Time,
        "never",
        "start a new conversation with the first mail after this local time of each day",
    ),
    setting(
        "reset.idle_minutes",
        "HIVE_RESET_IDLE_MINUTES",
        Number(0, YEAR_SECS / 60),
        "0",
        "start a new conversation with the first mail after so long without a turn; 0 never",
    ),
    setting(
        "reset.notes",
        "HIVE_RESET_NOTES",
        Flag,
        "false",
        "ask for notes in the old conversation before `reset` ends it",
    ),
    setting(
        "system_prompt",
        "HIVE_SYSTEM_PROMPT",
        Kind::File,
        "the built-in prompt",
        "a system prompt in place of the built-in one; read at every turn",
    ),
    setting(
        "plugins_auto_update",
        "HIVE_PLUGINS_AUTO_UPDATE",
        Flag,
        "false",
        "read the marketplaces again before plugins are installed",
    ),
    setting(
        "cargo_short_messages",
        "HIVE_CARGO_SHORT_MESSAGES",
        Flag,
        "true",
        "whether cargo in shell tasks prints each message on one line",
    ),
    setting(
        "bash_timeout_secs",
        "HIVE_BASH_TIMEOUT_SECS",
        Number(1, YEAR_SECS),
        "1800",
        "how long a shell task may run that asks for no other time",
    ),
    setting(
        "bash_timeout_max_secs",
        "HIVE_BASH_TIMEOUT_MAX_SECS",
        Number(1, YEAR_SECS),
        "86400",
        "the longest time that a shell task may ask for",
    ),
    setting(
        "bash_tasks_max",
        "HIVE_BASH_TASKS_MAX",
        Number(1, 10_000),
        "16",
        "shell tasks at the same time",
    ),
    setting(
        "bash_output_max_mib",
        "HIVE_BASH_OUTPUT_MAX_MIB",
        Number(1, MIB_MAX),
        "64",
        "kept output of a shell task",
    ),
    setting(
        "bash_memory_max_mib",
        "HIVE_BASH_MEMORY_MAX_MIB",
        Number(1, MIB_MAX),
        "no limit",
        "writable memory of each process of a shell task",
    ),
    setting(
        "bash_cpu_secs_max",
        "HIVE_BASH_CPU_SECS_MAX",
        Number(1, YEAR_SECS),
        "no limit",
        "processor time of each process of a shell task",
    ),
    setting(
        "bash_processes_max",
        "HIVE_BASH_PROCESSES_MAX",
        Number(1, 4_194_304),
        "no limit",
        "processes of the agent's user while a shell task runs",
    ),
    setting(
        "bash_file_max_mib",
        "HIVE_BASH_FILE_MAX_MIB",
        Number(1, MIB_MAX),
        "no limit",
        "size of a file that a shell task writes",
    ),
];
