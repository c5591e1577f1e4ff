//! Values of an enumeration as the words of JSON: `DELIVERY_STATE_READY` is `ready`.
//!
//! Invariant: each enumeration that is shown is in one list here, so that its JSON schema names its
//! words. A value that only a newer broker knows is `unknown_N`.

use std::borrow::Cow;
use std::marker::PhantomData;

use hive_proto::v1;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Numbers that an enumeration may have, beyond what any has.
const NUMBERS: std::ops::Range<i32> = 0..100;

pub(crate) trait Words: TryFrom<i32> {
    /// The prefix of the names of its values.
    const PREFIX: &'static str;
    fn name(&self) -> &'static str;
}

/// Names the enumerations and what their values begin with.
macro_rules! words {
    ($($enumeration:ident $prefix:literal,)*) => {
        $(impl Words for v1::$enumeration {
            const PREFIX: &'static str = $prefix;

            fn name(&self) -> &'static str {
                self.as_str_name()
            }
        })*
    };
}

words! {
    ActionRunState "ACTION_RUN_STATE_",
    AgentChange "AGENT_CHANGE_",
    AgentSource "AGENT_SOURCE_",
    CommandKind "COMMAND_KIND_",
    DeliveryState "DELIVERY_STATE_",
    EventKind "EVENT_KIND_",
    HarnessLoss "HARNESS_LOSS_",
    HarnessState "HARNESS_STATE_",
    Isolation "ISOLATION_",
    KickOnStart "KICK_ON_START_",
    Lane "LANE_",
    LooseEndKind "LOOSE_END_KIND_",
    OriginKind "ORIGIN_KIND_",
    QuestionState "QUESTION_STATE_",
    Reason "REASON_",
    RedeliveryCause "REDELIVERY_CAUSE_",
    ReminderState "REMINDER_STATE_",
    RunState "RUN_STATE_",
    ScheduleChange "SCHEDULE_CHANGE_",
    ScheduleState "SCHEDULE_STATE_",
    Settler "SETTLER_",
    SystemKind "SYSTEM_KIND_",
    TurnEventStream "TURN_EVENT_STREAM_",
    TurnKind "TURN_KIND_",
    TurnOutcome "TURN_OUTCOME_",
}

/// Returns the word for a value; `None` for the unspecified one.
pub(crate) fn word<E: Words>(value: i32) -> Option<String> {
    let Ok(known) = E::try_from(value) else { return Some(format!("unknown_{value}")) };
    let name = known.name();
    let word = name.strip_prefix(E::PREFIX).unwrap_or(name).to_ascii_lowercase();
    (word != "unspecified").then_some(word)
}

/// Returns the word for a value that may be unset.
pub(crate) fn optional_word<E: Words>(value: Option<i32>) -> Option<String> {
    value.and_then(word::<E>)
}

/// The JSON schema of such a word. It names the words there are and allows others, because there
/// will be more.
#[derive(Debug)]
pub(crate) struct Word<E>(PhantomData<E>);

impl<E: Words> JsonSchema for Word<E> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        E::PREFIX.trim_end_matches('_').to_ascii_lowercase().into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<String> =
            NUMBERS.filter(|number| E::try_from(*number).is_ok()).filter_map(word::<E>).collect();
        json_schema!({ "type": ["string", "null"], "pattern": "^[a-z][a-z0-9_]*$", "examples": words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_lower_case_and_newer_ones_are_numbers() {
        assert_eq!(word::<v1::DeliveryState>(1).as_deref(), Some("ready"));
        assert_eq!(word::<v1::DeliveryState>(0), None);
        assert_eq!(word::<v1::DeliveryState>(99).as_deref(), Some("unknown_99"));
    }

    #[test]
    fn every_prefix_is_that_of_its_names() {
        let none_is_left = |words: Schema| {
            let words = words
                .get("examples")
                .and_then(|words| words.as_array())
                .expect("a list of words")
                .clone();
            assert!(words.len() > 1, "{words:?}");
            assert!(
                words.iter().all(|word| word.as_str().is_some_and(|word| word.len() < 25)),
                "{words:?}"
            );
        };
        let mut generator = SchemaGenerator::default();
        none_is_left(Word::<v1::AgentChange>::json_schema(&mut generator));
        none_is_left(Word::<v1::AgentSource>::json_schema(&mut generator));
        none_is_left(Word::<v1::CommandKind>::json_schema(&mut generator));
        none_is_left(Word::<v1::DeliveryState>::json_schema(&mut generator));
        none_is_left(Word::<v1::EventKind>::json_schema(&mut generator));
        none_is_left(Word::<v1::HarnessLoss>::json_schema(&mut generator));
        none_is_left(Word::<v1::HarnessState>::json_schema(&mut generator));
        none_is_left(Word::<v1::Isolation>::json_schema(&mut generator));
        none_is_left(Word::<v1::Reason>::json_schema(&mut generator));
        none_is_left(Word::<v1::ScheduleChange>::json_schema(&mut generator));
        none_is_left(Word::<v1::ScheduleState>::json_schema(&mut generator));
        none_is_left(Word::<v1::Settler>::json_schema(&mut generator));
        none_is_left(Word::<v1::SystemKind>::json_schema(&mut generator));
        none_is_left(Word::<v1::TurnOutcome>::json_schema(&mut generator));
    }
}
