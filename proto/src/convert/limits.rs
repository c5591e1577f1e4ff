//! The limits of the hive, as the broker shows them: no request sets them. A harness reads the
//! backoff.
//!
//! Invariant: each limit that a client can meet has a field with the name of its constant; a test
//! compares the source of `hive-core` with the contract.

use std::time::Duration;

use hive_core::limits::{Backoff, Limits};
use hive_core::{agent, limits, name, tree};

use super::time::{duration, span};
use super::{FromWire, IntoWire, Invalid, required};
use crate::v1;

impl IntoWire for &Limits {
    type Wire = v1::Limits;
    fn into_wire(self) -> v1::Limits {
        let Limits {
            body_bytes_max,
            inbox_depth_max,
            sender_stored_bytes_max,
            sends_per_minute_max,
            attempts_max,
            harness_grace_ms: _,
            // The broker's own intervals are not part of the contract.
            retry_backoff_base_ms: _,
            retry_backoff_max_ms: _,
            park_backoff_base_ms: _,
            park_backoff_max_ms: _,
            on_demand_idle_ms: _,
            rate_limit_park_ms: _,
            request_id_hours,
            turn_events_hours: _,
            turn_events_bytes_max: _,
            questions_open_max,
            reminders_pending_max,
            children_max,
            schedules_max,
        } = self;
        let mut wire = v1::Limits {
            body_bytes_max: *body_bytes_max,
            inbox_depth_max: *inbox_depth_max,
            sender_stored_bytes_max: *sender_stored_bytes_max,
            sends_per_minute_max: *sends_per_minute_max,
            attempts_max: *attempts_max,
            harness_grace: Some(duration(self.harness_grace())),
            questions_open_max: *questions_open_max,
            reminders_pending_max: *reminders_pending_max,
            children_max: *children_max,
            schedules_max: *schedules_max,
            request_id_retention: Some(duration(hours(*request_id_hours))),
            ..v1::Limits::default()
        };
        set_constants(&mut wire);
        wire
    }
}

fn hours(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 3600)
}

fn count(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

/// Sets the fields of limits that no host sets.
macro_rules! constants {
    ($($kind:ident $field:ident = $module:ident::$constant:ident;)+) => {
        fn set_constants(wire: &mut v1::Limits) {
            $(wire.$field = constants!(@$kind $module::$constant);)+
        }

        #[cfg(test)]
        const CONSTANTS: &[(&str, &str)] = &[$((stringify!($field), stringify!($constant))),+];
    };
    (@count $constant:path) => { count($constant) };
    (@span $constant:path) => { Some(duration($constant)) };
}

constants! {
    count request_id_chars_max = limits::REQUEST_ID_CHARS_MAX;
    count coalescing_key_chars_max = limits::COALESCING_KEY_CHARS_MAX;
    count process_token_chars_min = limits::PROCESS_TOKEN_CHARS_MIN;
    count token_chars_max = limits::TOKEN_CHARS_MAX;
    count receive_deliveries_max = limits::RECEIVE_DELIVERIES_MAX;
    span receive_wait_max = limits::RECEIVE_WAIT_MAX;
    span lease_default = limits::LEASE_DEFAULT;
    span lease_max = limits::LEASE_MAX;
    count settlements_max = limits::SETTLEMENTS_MAX;
    count stream_deliveries_max = limits::STREAM_DELIVERIES_MAX;
    count stream_bytes_max = limits::STREAM_BYTES_MAX;
    span orphan_grace_default = limits::ORPHAN_GRACE_DEFAULT;
    span orphan_grace_max = limits::ORPHAN_GRACE_MAX;
    span stream_pong_max = limits::STREAM_PONG_MAX;
    count stream_unanswered_max = limits::STREAM_UNANSWERED_MAX;
    count streams_open_max = limits::STREAMS_OPEN_MAX;
    count page_rows_default = limits::PAGE_ROWS_DEFAULT;
    count page_rows_max = limits::PAGE_ROWS_MAX;
    count page_bytes_max = limits::PAGE_BYTES_MAX;
    count search_rows_default = limits::SEARCH_ROWS_DEFAULT;
    count search_rows_max = limits::SEARCH_ROWS_MAX;
    count search_chars_max = limits::SEARCH_CHARS_MAX;
    count search_words_max = limits::SEARCH_WORDS_MAX;
    count search_beginning_chars_min = limits::SEARCH_BEGINNING_CHARS_MIN;
    count name_chars_max = name::NAME_CHARS_MAX;
    count role_chars_max = limits::ROLE_CHARS_MAX;
    count model_chars_max = limits::MODEL_CHARS_MAX;
    count status_chars_max = agent::STATUS_CHARS_MAX;
    count find_text_chars_max = tree::FIND_TEXT_CHARS_MAX;
    count shown_role_chars_max = tree::SHOWN_ROLE_CHARS_MAX;
    count kin_children_max = tree::KIN_CHILDREN_MAX;
    count question_bytes_max = limits::QUESTION_BYTES_MAX;
    count effect_bytes_max = limits::EFFECT_BYTES_MAX;
    count question_options_max = limits::QUESTION_OPTIONS_MAX;
    count option_chars_max = limits::OPTION_CHARS_MAX;
    count answer_bytes_max = limits::ANSWER_BYTES_MAX;
    span due_span_min = limits::DUE_SPAN_MIN;
    span question_ttl_max = limits::QUESTION_TTL_MAX;
    span reminder_delay_max = limits::REMINDER_DELAY_MAX;
    count reminder_inline_bytes_max = limits::REMINDER_INLINE_BYTES_MAX;
    span schedule_interval_min = limits::SCHEDULE_INTERVAL_MIN;
    span schedule_late_min = limits::SCHEDULE_LATE_MIN;
    count schedule_body_lines_max = limits::SCHEDULE_BODY_LINES_MAX;
    count schedule_targets_max = limits::SCHEDULE_TARGETS_MAX;
    count published_loose_ends_max = limits::PUBLISHED_LOOSE_ENDS_MAX;
    count loose_end_labels_max = limits::LOOSE_END_LABELS_MAX;
    count loose_end_key_chars_max = limits::LOOSE_END_KEY_CHARS_MAX;
    count loose_end_text_chars_max = limits::LOOSE_END_TEXT_CHARS_MAX;
    count alone_from_attempt = limits::ALONE_FROM_ATTEMPT;
    count error_bytes_max = limits::ERROR_BYTES_MAX;
    count output_tail_bytes_max = limits::OUTPUT_TAIL_BYTES_MAX;
    count turn_event_line_bytes_max = limits::TURN_EVENT_LINE_BYTES_MAX;
    count turn_tools_max = limits::TURN_TOOLS_MAX;
    count tool_name_chars_max = limits::TOOL_NAME_CHARS_MAX;
    span stats_window_default = limits::STATS_WINDOW_DEFAULT;
    span stats_window_min = limits::STATS_WINDOW_MIN;
    span stats_window_max = limits::STATS_WINDOW_MAX;
    count problem_subject_chars_max = limits::PROBLEM_SUBJECT_CHARS_MAX;
    count problem_text_bytes_max = limits::PROBLEM_TEXT_BYTES_MAX;
    span login_answer_max = limits::LOGIN_ANSWER_MAX;
    count login_step_bytes_max = limits::LOGIN_STEP_BYTES_MAX;
    count terminal_kind_chars_max = limits::TERMINAL_KIND_CHARS_MAX;
    count agent_connections_max = limits::AGENT_CONNECTIONS_MAX;
    count agent_calls_max = limits::AGENT_CALLS_MAX;
    count agent_calls_at_work_max = limits::AGENT_CALLS_AT_WORK_MAX;
    count operator_connections_max = limits::OPERATOR_CONNECTIONS_MAX;
    count operator_calls_max = limits::OPERATOR_CALLS_MAX;
    count operator_calls_at_work_max = limits::OPERATOR_CALLS_AT_WORK_MAX;
    count request_bytes_max = limits::REQUEST_BYTES_MAX;
    count request_fields_bytes_max = limits::REQUEST_FIELDS_BYTES_MAX;
    count request_list_bytes_max = limits::REQUEST_LIST_BYTES_MAX;
    count operator_request_bytes_max = limits::OPERATOR_REQUEST_BYTES_MAX;
}

impl IntoWire for Backoff {
    type Wire = v1::Backoff;
    fn into_wire(self) -> v1::Backoff {
        let Backoff { base, max } = self;
        v1::Backoff { base: Some(duration(base)), max: Some(duration(max)) }
    }
}

impl FromWire for Backoff {
    type Wire = v1::Backoff;
    fn from_wire(wire: v1::Backoff) -> Result<Self, Invalid> {
        let v1::Backoff { base, max } = wire;
        Ok(Self {
            base: span(required(base, "base")?, "base")?,
            max: span(required(max, "max")?, "max")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use prost::Message as _;
    use prost_types::{FieldDescriptorProto, FileDescriptorSet};

    use super::*;

    /// Constants that no client meets, each with the reason.
    const INTERNAL: &[(&str, &str)] = &[
        ("NUMBER_MAX", "it is part of the contract, the same in every hive"),
        ("SYSTEM_RUN_MAX", "it orders an inbox and limits nothing"),
        ("ACTION_TIMEOUT", "the configuration states it, and an approval shows it"),
        ("APART_MAX", "it follows from the calendar"),
        ("STATS_TOOLS_MAX", "it shapes an answer"),
        ("STATS_LABELS_MAX", "it shapes an answer"),
        ("STATS_SLICES", "it shapes an answer"),
        ("SOCKET_PATH_BYTES_MAX", "it is a limit of Linux"),
        ("ISOLATION_NOTES_MAX", "it is between `hivectl up` and the broker"),
        ("ISOLATION_NOTE_CHARS_MAX", "it is between `hivectl up` and the broker"),
        ("SECRET_BYTES_MAX", "it is of files beside hive.toml, which no client sends"),
        ("RETURNED_TOOL_USES_BYTES_MAX", "it is the harness's share of a request"),
    ];

    /// Returns the names of the numeric constants of `hive-core`.
    fn constants() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
        let files = std::fs::read_dir(&folder).expect("the source of the core");
        let mut names = BTreeSet::new();
        for file in files.map(|file| file.expect("an entry").path()).filter(|path| path.is_file()) {
            let source = std::fs::read_to_string(&file).expect("a source");
            for line in source.lines() {
                let Some((name, kind)) =
                    line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": "))
                else {
                    continue;
                };
                let kind = kind.split(' ').next().unwrap_or_default();
                if ["u32", "u64", "usize", "Duration"].contains(&kind) {
                    names.insert(name.to_owned());
                }
            }
        }
        names
    }

    #[test]
    fn every_limit_that_a_client_meets_is_in_the_handshake() {
        let set = FileDescriptorSet::decode(crate::FILE_DESCRIPTOR_SET).expect("descriptors");
        let mut messages = set.file.iter().flat_map(|file| &file.message_type);
        let limits = messages.find(|message| message.name() == "Limits").expect("a message");
        let fields: BTreeSet<&str> = limits.field.iter().map(FieldDescriptorProto::name).collect();
        let internal: BTreeSet<&str> = INTERNAL.iter().map(|(name, _)| *name).collect();
        for name in constants() {
            let is_shown = fields.contains(name.to_lowercase().as_str());
            assert_ne!(
                is_shown,
                internal.contains(name.as_str()),
                "{name}: give it a field in `Limits`, or say why no client meets it"
            );
        }
        for (field, constant) in CONSTANTS {
            assert_eq!(*field, constant.to_lowercase());
        }
        let wire = Limits::default().into_wire().encode_to_vec();
        // A field that is not set is not encoded.
        let set = fields.len();
        assert_eq!(top_level_fields(&wire).len(), set, "some field of `Limits` is not set");
    }

    fn top_level_fields(mut bytes: &[u8]) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        while !bytes.is_empty() {
            let (number, kind) = prost::encoding::decode_key(&mut bytes).expect("a field");
            prost::encoding::skip_field(
                kind,
                number,
                &mut bytes,
                prost::encoding::DecodeContext::default(),
            )
            .expect("its content");
            found.insert(number);
        }
        found
    }
}
