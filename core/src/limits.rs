//! Every limit of Hive, with its unit in its name. `hive.toml` may set those of [`Limits`] by name
//! under `[broker.limits]`.

use std::time::Duration;

use serde::Deserialize;

/// Longest request id, in characters.
pub const REQUEST_ID_CHARS_MAX: usize = 128;
/// Longest coalescing key, in characters.
pub const COALESCING_KEY_CHARS_MAX: usize = 128;
/// Shortest process token, in characters.
pub const PROCESS_TOKEN_CHARS_MIN: usize = 16;
/// Longest token of any kind, in characters.
pub const TOKEN_CHARS_MAX: usize = 128;
/// Maximum deliveries that one receive leases.
pub const RECEIVE_DELIVERIES_MAX: u32 = 32;
/// Longest wait of one receive.
pub const RECEIVE_WAIT_MAX: Duration = Duration::from_secs(180);
/// A consumer's lease, if it requests no other.
pub const LEASE_DEFAULT: Duration = Duration::from_secs(60);
/// Longest lease of a consumer.
pub const LEASE_MAX: Duration = Duration::from_secs(3600);
/// Maximum settlements of one request.
pub const SETTLEMENTS_MAX: usize = 256;
/// Maximum deliveries that a stream holds.
pub const STREAM_DELIVERIES_MAX: u32 = 256;
/// Maximum bytes of bodies that a stream holds; one delivery always fits.
pub const STREAM_BYTES_MAX: u32 = 3 * 1024 * 1024;
/// How long the leases of a broken stream live on, if the stream requests no other time.
pub const ORPHAN_GRACE_DEFAULT: Duration = Duration::from_secs(30);
/// Longest time that the leases of a broken stream live on.
pub const ORPHAN_GRACE_MAX: Duration = Duration::from_secs(3600);
/// Time in which the caller of a stream answers a ping.
pub const STREAM_PONG_MAX: Duration = Duration::from_secs(20);
/// Maximum streams of deliveries that an agent has open. Each is polled for each new message of the
/// agent, so many of them would hold up the commands of other agents.
pub const STREAMS_OPEN_MAX: usize = 8;
/// Maximum messages of a stream of messages without an answer.
pub const STREAM_UNANSWERED_MAX: usize = 64;
/// Maximum rows of one page.
pub const PAGE_ROWS_MAX: u32 = 500;
/// Rows of a page, if the caller requests no other number.
pub const PAGE_ROWS_DEFAULT: u32 = 50;
/// Maximum bytes of one page of a list, so that a reply stays well under the 4 MiB of a gRPC
/// message.
pub const PAGE_BYTES_MAX: usize = 3 * 1024 * 1024;
/// Longest error text kept with a turn or delivery, in bytes.
pub const ERROR_BYTES_MAX: usize = 4 * 1024;
/// Longest output tail kept with a turn or delivery, in bytes.
pub const OUTPUT_TAIL_BYTES_MAX: usize = 8 * 1024;
/// Longest line kept of a live turn, in bytes.
pub const TURN_EVENT_LINE_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of an effect that an agent asks for, in bytes of JSON.
pub const EFFECT_BYTES_MAX: usize = 8 * 1024;
/// Longest role, in characters.
pub const ROLE_CHARS_MAX: usize = 1000;
/// Longest model name, in characters.
pub const MODEL_CHARS_MAX: usize = 200;
/// Longest question, in bytes.
pub const QUESTION_BYTES_MAX: usize = 8 * 1024;
/// Maximum options of a question.
pub const QUESTION_OPTIONS_MAX: usize = 20;
/// Longest option of a question, in characters.
pub const OPTION_CHARS_MAX: usize = 200;
/// Longest free text of an answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// Shortest time that a question may be open, and shortest delay of a reminder.
pub const DUE_SPAN_MIN: Duration = Duration::from_secs(1);
/// Longest time that a question with a deadline may be open.
pub const QUESTION_TTL_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// Furthest time of a reminder.
pub const REMINDER_DELAY_MAX: Duration = Duration::from_secs(3660 * 24 * 3600);
/// Reminder bodies over this many bytes are stored in a file.
pub const REMINDER_INLINE_BYTES_MAX: usize = 4 * 1024;
/// Shortest time from one due time of a schedule to the next.
pub const SCHEDULE_INTERVAL_MIN: Duration = Duration::from_secs(60);
/// Shortest limit of the lateness of a schedule.
pub const SCHEDULE_LATE_MIN: Duration = Duration::from_secs(60);
/// Maximum lines of the text of a schedule.
pub const SCHEDULE_BODY_LINES_MAX: usize = 200;
/// Maximum targets of a schedule.
pub const SCHEDULE_TARGETS_MAX: usize = 16;
/// Maximum loose ends that one co-process publishes.
pub const PUBLISHED_LOOSE_ENDS_MAX: usize = 100;
/// Maximum co-processes that publish loose ends for one agent.
pub const LOOSE_END_LABELS_MAX: usize = 16;
/// Longest key of a published loose end, in characters.
pub const LOOSE_END_KEY_CHARS_MAX: usize = 128;
/// Longest text of a loose end, in characters.
pub const LOOSE_END_TEXT_CHARS_MAX: usize = 500;
/// Longest search, in characters.
pub const SEARCH_CHARS_MAX: usize = 256;
/// Maximum words of one search, words of phrases included: each costs time.
pub const SEARCH_WORDS_MAX: usize = 16;
/// Shortest prefix of a word in a search, in characters; shorter ones match a large part of all
/// words.
pub const SEARCH_BEGINNING_CHARS_MIN: usize = 2;
/// Rows of a page of a search, if the caller requests no other number.
pub const SEARCH_ROWS_DEFAULT: u32 = 20;
/// Maximum rows of a page of a search.
pub const SEARCH_ROWS_MAX: u32 = 50;
/// First attempt at which a delivery is served alone.
pub const ALONE_FROM_ATTEMPT: u32 = 3;
/// Maximum system deliveries in a row before one normal delivery is served.
pub const SYSTEM_RUN_MAX: u32 = 8;
/// Maximum tools that are counted in one turn.
pub const TURN_TOOLS_MAX: usize = 64;
/// Longest name of a tool, in characters.
pub const TOOL_NAME_CHARS_MAX: usize = 128;
/// Time over which turns are summed up, if the caller requests no other.
pub const STATS_WINDOW_DEFAULT: Duration = Duration::from_secs(24 * 3600);
/// Shortest time over which turns are summed up.
pub const STATS_WINDOW_MIN: Duration = Duration::from_secs(1);
/// Longest time over which turns are summed up.
pub const STATS_WINDOW_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// Maximum tools in a sum of turns.
pub const STATS_TOOLS_MAX: usize = 20;
/// Maximum labels of co-processes in a sum of turns; the rest is counted without labels.
pub const STATS_LABELS_MAX: usize = 20;
/// Number of equal slices of a sum of turns.
pub const STATS_SLICES: usize = 24;
/// Longest subject of a problem, in characters.
pub const PROBLEM_SUBJECT_CHARS_MAX: usize = 64;
/// Longest text of a problem, in bytes; longer ones are cut.
pub const PROBLEM_TEXT_BYTES_MAX: usize = 8 * 1024;
/// Maximum time in which a harness answers the request for a login dialogue.
pub const LOGIN_ANSWER_MAX: Duration = Duration::from_secs(10);
/// Maximum bytes of one step of a login dialogue.
pub const LOGIN_STEP_BYTES_MAX: usize = 64 * 1024;
/// Longest name of a terminal kind, in characters.
pub const TERMINAL_KIND_CHARS_MAX: usize = 64;
/// Longest path of a unix socket on Linux, in bytes.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Maximum notes on the isolation of one agent.
pub const ISOLATION_NOTES_MAX: usize = 32;
/// Maximum characters of such a note. Without control characters, all notes fit into one packet
/// from `hivectl up` to the broker.
pub const ISOLATION_NOTE_CHARS_MAX: usize = 400;

/// Maximum connections to one agent's socket at once; a further one is closed. So the broker's file
/// descriptors last for all its agents.
pub const AGENT_CONNECTIONS_MAX: usize = 64;
/// Maximum calls under way on one agent's socket, including answers that the agent does not read; a
/// further one is refused. The longest request of its kind and a page of [`PAGE_BYTES_MAX`] limit
/// the memory of each call.
pub const AGENT_CALLS_MAX: usize = 64;
/// Maximum concurrent calls of one agent's socket. Further calls queue behind others of their kind,
/// so an agent that calls at full speed delays other agents by at most these calls.
pub const AGENT_CALLS_AT_WORK_MAX: usize = 4;
/// Longest request of an agent without a body or a list, in bytes.
pub const REQUEST_BYTES_MAX: usize = 128 * 1024;
/// Maximum bytes of a request besides the body of a message.
pub const REQUEST_FIELDS_BYTES_MAX: usize = 64 * 1024;
/// Longest request of an agent that is a list, in bytes: turn lines, all tool calls of a turn, a
/// co-process's whole set of loose ends.
pub const REQUEST_LIST_BYTES_MAX: usize = 512 * 1024;
/// Maximum bytes of the ids of tool calls at the end of a turn.
pub const RETURNED_TOOL_USES_BYTES_MAX: usize = 384 * 1024;
/// Longest request of the operator, in bytes.
pub const OPERATOR_REQUEST_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum connections to the operator's socket at once.
pub const OPERATOR_CONNECTIONS_MAX: usize = 256;
/// Maximum calls under way on the operator's socket.
pub const OPERATOR_CALLS_MAX: usize = 256;
/// Maximum concurrent calls of the operator's socket.
pub const OPERATOR_CALLS_AT_WORK_MAX: usize = 64;

/// The limits that a host may set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Longest body, in bytes.
    pub body_bytes_max: u32,
    /// Maximum unsettled deliveries in one inbox.
    pub inbox_depth_max: u32,
    /// Maximum bytes of unsettled bodies that one origin may have stored.
    pub sender_stored_bytes_max: u64,
    /// Messages that one origin may send per minute, in bursts of as many.
    pub sends_per_minute_max: u32,
    /// Attempts before a delivery becomes a dead letter.
    pub attempts_max: u32,
    /// Maximum absence of a harness before its turn is requeued, in milliseconds.
    pub harness_grace_ms: u64,
    /// Backoff of a delivery after its first failed attempt, in milliseconds; doubles with each
    /// further one.
    pub retry_backoff_base_ms: u64,
    /// Longest backoff of a delivery, in milliseconds.
    pub retry_backoff_max_ms: u64,
    /// Park of an agent after its first unavailable turn, in milliseconds; doubles with each
    /// further one.
    pub park_backoff_base_ms: u64,
    /// Longest such park, in milliseconds.
    pub park_backoff_max_ms: u64,
    /// Park of a rate-limited agent in milliseconds, if the model did not say when the limit ends.
    pub rate_limit_park_ms: u64,
    /// Time without work after which the harness of an agent that runs on demand leaves, in
    /// milliseconds.
    pub on_demand_idle_ms: u64,
    /// Retention of request ids, in hours.
    pub request_id_hours: u32,
    /// Retention of lines of live turns, in hours.
    pub turn_events_hours: u32,
    /// Maximum bytes of stored live turn lines, over all agents.
    pub turn_events_bytes_max: u64,
    /// Maximum open questions that one agent may have asked.
    pub questions_open_max: u32,
    /// Maximum pending reminders of one agent.
    pub reminders_pending_max: u32,
    /// Maximum agents below one agent, for creating by a grant.
    pub children_max: u32,
    /// Maximum schedules of one agent that have not ended.
    pub schedules_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 32 * 1024,
            inbox_depth_max: 10_000,
            sender_stored_bytes_max: 64 * 1024 * 1024,
            sends_per_minute_max: 600,
            attempts_max: 5,
            harness_grace_ms: 60_000,
            retry_backoff_base_ms: 5_000,
            retry_backoff_max_ms: 300_000,
            park_backoff_base_ms: 10_000,
            park_backoff_max_ms: 600_000,
            rate_limit_park_ms: 300_000,
            on_demand_idle_ms: 300_000,
            request_id_hours: 24 * 7,
            turn_events_hours: 24 * 14,
            turn_events_bytes_max: 256 * 1024 * 1024,
            questions_open_max: 50,
            reminders_pending_max: 50,
            children_max: 8,
            schedules_max: 20,
        }
    }
}

impl Limits {
    /// Returns how long a harness may stay away.
    #[must_use]
    pub fn harness_grace(&self) -> Duration {
        Duration::from_millis(self.harness_grace_ms)
    }

    /// Returns how long the harness of an agent that runs on demand stays without work.
    #[must_use]
    pub fn on_demand_idle(&self) -> Duration {
        Duration::from_millis(self.on_demand_idle_ms)
    }

    /// Returns how long a delivery waits after `failures` failed attempts.
    #[must_use]
    pub fn retry_backoff(&self, failures: u32) -> Duration {
        let (base, max) = (self.retry_backoff_base_ms, self.retry_backoff_max_ms);
        Backoff { base: Duration::from_millis(base), max: Duration::from_millis(max) }
            .after(failures)
    }

    /// Returns the backoff of an agent after turns in a row that could not run.
    #[must_use]
    pub fn park_backoff(&self) -> Backoff {
        Backoff {
            base: Duration::from_millis(self.park_backoff_base_ms),
            max: Duration::from_millis(self.park_backoff_max_ms),
        }
    }
}

/// A pause that doubles with each failure in a row. The default is that of agents that cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure.
    pub base: Duration,
    /// The longest pause.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Limits::default().park_backoff()
    }
}

impl Backoff {
    /// Returns the pause after `failures` in a row.
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        let exponent = failures.saturating_sub(1).min(30);
        self.base.saturating_mul(1 << exponent).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_bound() {
        let limits = Limits::default();
        let seconds: Vec<u64> =
            (1..=8).map(|failures| limits.retry_backoff(failures).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(limits.retry_backoff(u32::MAX).as_secs(), 300);
    }
}
