//! `[broker.limits]`: the limits of [`Limits`] by their field names; and `[agents.NAME.limits]`,
//! the few that an agent may override.
//!
//! Invariant: every field can be set; a new field breaks this build until it can.

use std::ops::RangeInclusive;

use toml::de::DeTable;

use super::error::Findings;
use super::section::Section;
use super::values::AgentLimits;
use crate::limits::Limits;

/// Largest limit for a body: a reply with it must stay well under the 4 MiB of a gRPC message.
const BODY_BYTES_MAX_MAX: u64 = 1024 * 1024;

/// Reads the table; a key that is absent keeps its default. No limit may be zero: none of them can
/// mean "unlimited", and a zero would stop all mail or make retries spin.
pub(super) fn read(path: String, table: &DeTable<'_>, findings: &mut Findings<'_>) -> Limits {
    let mut limits = Limits::default();
    let mut section = Section::new(path, table, findings);
    let Limits {
        body_bytes_max,
        inbox_depth_max,
        sender_stored_bytes_max,
        sends_per_minute_max,
        attempts_max,
        harness_grace_ms,
        retry_backoff_base_ms,
        retry_backoff_max_ms,
        park_backoff_base_ms,
        park_backoff_max_ms,
        on_demand_idle_ms,
        rate_limit_park_ms,
        request_id_hours,
        turn_events_hours,
        turn_events_bytes_max,
        questions_open_max,
        reminders_pending_max,
        children_max,
        schedules_max,
    } = &mut limits;
    narrow(&mut section, "body_bytes_max", 1..=BODY_BYTES_MAX_MAX, body_bytes_max);
    narrow(&mut section, "inbox_depth_max", NARROW, inbox_depth_max);
    wide(&mut section, "sender_stored_bytes_max", sender_stored_bytes_max);
    narrow(&mut section, "sends_per_minute_max", NARROW, sends_per_minute_max);
    narrow(&mut section, "attempts_max", NARROW, attempts_max);
    wide(&mut section, "harness_grace_ms", harness_grace_ms);
    wide(&mut section, "retry_backoff_base_ms", retry_backoff_base_ms);
    wide(&mut section, "retry_backoff_max_ms", retry_backoff_max_ms);
    wide(&mut section, "park_backoff_base_ms", park_backoff_base_ms);
    wide(&mut section, "park_backoff_max_ms", park_backoff_max_ms);
    wide(&mut section, "on_demand_idle_ms", on_demand_idle_ms);
    wide(&mut section, "rate_limit_park_ms", rate_limit_park_ms);
    narrow(&mut section, "request_id_hours", NARROW, request_id_hours);
    narrow(&mut section, "turn_events_hours", NARROW, turn_events_hours);
    wide(&mut section, "turn_events_bytes_max", turn_events_bytes_max);
    narrow(&mut section, "questions_open_max", NARROW, questions_open_max);
    narrow(&mut section, "reminders_pending_max", NARROW, reminders_pending_max);
    narrow(&mut section, "children_max", NARROW, children_max);
    narrow(&mut section, "schedules_max", NARROW, schedules_max);
    let Limits { retry_backoff_base_ms, retry_backoff_max_ms, .. } = limits;
    let Limits { park_backoff_base_ms, park_backoff_max_ms, .. } = limits;
    order(
        &mut section,
        ["retry_backoff_base_ms", "retry_backoff_max_ms"],
        [retry_backoff_base_ms, retry_backoff_max_ms],
    );
    order(
        &mut section,
        ["park_backoff_base_ms", "park_backoff_max_ms"],
        [park_backoff_base_ms, park_backoff_max_ms],
    );
    section.finish();
    limits
}

/// Refuses a backoff that begins above its maximum.
fn order(section: &mut Section<'_, '_, '_>, keys: [&'static str; 2], [base, max]: [u64; 2]) {
    if base > max {
        let [base_key, max_key] = keys;
        let value = section.value(base_key).or_else(|| section.value(max_key));
        let span = value.map_or(0..0, toml::Spanned::span);
        let problem = format!("`{base_key}` ({base}) is greater than `{max_key}` ({max})");
        section.object(span, base_key, problem, None);
    }
}

/// Reads the table of one agent. No limit may be zero here either: an agent that may not send lacks
/// the tool group.
pub(super) fn of_agent(
    path: String,
    table: &DeTable<'_>,
    findings: &mut Findings<'_>,
) -> AgentLimits {
    let mut section = Section::new(path, table, findings);
    let mut narrow = |key| {
        section
            .number(key, NARROW)
            .map(|number| u32::try_from(number).expect("the bounds end at u32::MAX"))
    };
    let sends_per_minute_max = narrow("sends_per_minute_max");
    let questions_open_max = narrow("questions_open_max");
    let reminders_pending_max = narrow("reminders_pending_max");
    let children_max = narrow("children_max");
    let schedules_max = narrow("schedules_max");
    let sender_stored_bytes_max = section.number("sender_stored_bytes_max", WIDE);
    section.finish();
    AgentLimits {
        sends_per_minute_max,
        sender_stored_bytes_max,
        questions_open_max,
        reminders_pending_max,
        children_max,
        schedules_max,
    }
}

const NARROW: RangeInclusive<u64> = 1..=u32::MAX as u64;
/// TOML's own limit; times far beyond it would also overflow the clocks.
const WIDE: RangeInclusive<u64> = 1..=i64::MAX as u64;

fn narrow(
    section: &mut Section<'_, '_, '_>,
    key: &'static str,
    bounds: RangeInclusive<u64>,
    field: &mut u32,
) {
    if let Some(number) = section.number(key, bounds) {
        *field = u32::try_from(number).expect("the bounds end at u32::MAX");
    }
}

fn wide(section: &mut Section<'_, '_, '_>, key: &'static str, field: &mut u64) {
    if let Some(number) = section.number(key, WIDE) {
        *field = number;
    }
}
