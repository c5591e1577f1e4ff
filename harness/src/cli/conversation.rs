//! Settings of the conversation: its size, and when it is compacted or replaced.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use hive_core::config::NEVER;
use hive_core::time_of_day::TimeOfDay;

/// A time of day, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyAt(pub Option<TimeOfDay>);

fn daily_at(text: &str) -> Result<DailyAt, String> {
    match TimeOfDay::parse(text) {
        None if text != NEVER => Err(format!("write a time of day as 04:00, or `{NEVER}`")),
        time => Ok(DailyAt(time)),
    }
}

/// When a conversation is compacted or replaced.
#[derive(Clone, Debug, Args)]
pub struct ConversationArgs {
    /// Compact the conversation after a turn that leaves at least this many tokens in it; 0: never
    /// [default: 75 % of the model's window]
    #[arg(long, env = "HIVE_COMPACT_WATERMARK_TOKENS", value_name = "TOKENS")]
    pub compact_watermark_tokens: Option<u64>,
    /// Whether to compact before the window is full; `false` is the same as a watermark of 0
    #[arg(long, env = "HIVE_AUTO_COMPACT", default_value_t = true, action = clap::ArgAction::Set, value_parser = BoolishValueParser::new(), value_name = "BOOL")]
    pub auto_compact: bool,
    /// Start a new conversation before a turn that finds at least this many tokens in the old one
    /// and a cold cache; 0: never [default: 50 % of the model's window]
    #[arg(long, env = "HIVE_AUTO_RESET_WATERMARK_TOKENS", value_name = "TOKENS")]
    pub auto_reset_watermark_tokens: Option<u64>,
    /// Time after a turn for which the model's prompt cache is warm
    #[arg(long, env = "HIVE_CACHE_TTL_SECS", default_value_t = 3600, value_name = "SECS")]
    pub cache_ttl_secs: u64,
    /// Let the agent write its notes in the old conversation before it is replaced; this reads the
    /// whole cold conversation once
    #[arg(long, env = "HIVE_AUTO_RESET_CHECKPOINT", default_value_t = false, action = clap::ArgAction::Set, value_parser = BoolishValueParser::new(), value_name = "BOOL")]
    pub auto_reset_checkpoint: bool,
    /// The window of any model; a smaller size that claude reports applies
    #[arg(long, env = "HIVE_AGENT_CONTEXT_WINDOW_TOKENS", value_name = "TOKENS")]
    pub agent_context_window_tokens: Option<u64>,
    /// The same, after HIVE_CONTEXT_WINDOW_TOKENS_KEY, which is for models with KEY in their name;
    /// 0 is no setting
    #[arg(long, env = "HIVE_CONTEXT_WINDOW_TOKENS", value_name = "TOKENS")]
    pub context_window_tokens: Option<u64>,
    /// The same, after all of these, by a part of the model's name: a JSON object of numbers
    #[arg(long, env = "HIVE_CONTEXT_WINDOWS", default_value = "{}", value_name = "JSON")]
    pub context_windows: String,
    /// Start a new conversation with the first mail after this local time of each day, as 04:00;
    /// `never` for not at all
    #[arg(long, env = "HIVE_RESET_DAILY_AT", default_value = NEVER, value_parser = daily_at, value_name = "HH:MM")]
    pub reset_daily_at: DailyAt,
    /// Start a new conversation with the first mail after this time without a turn; 0: never
    #[arg(long, env = "HIVE_RESET_IDLE_MINUTES", default_value_t = 0, value_name = "MINUTES")]
    pub reset_idle_minutes: u64,
    /// Let the agent write its notes in the old conversation before one of these two ends it
    #[arg(long, env = "HIVE_RESET_NOTES", default_value_t = false, action = clap::ArgAction::Set, value_parser = BoolishValueParser::new(), value_name = "BOOL")]
    pub reset_notes: bool,
    /// A system prompt of your own in place of the built-in one; read at every turn
    #[arg(long, env = "HIVE_SYSTEM_PROMPT", value_name = "FILE")]
    pub system_prompt: Option<PathBuf>,
}
