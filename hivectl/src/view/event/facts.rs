//! The facts of an event: a flat record for each kind that has some.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::time;
use crate::view::wire::same;
use crate::view::{Iso, Word, id, optional_word, word};

/// Defines the records, each field with its conversion, and the enum of them.
macro_rules! facts {
    ($(
        $(#[$about:meta])*
        $variant:ident($name:ident) {
            $($(#[$attribute:meta])* $field:ident: $type:ty = $convert:expr;)+
        }
    )+) => {
        $(
            $(#[$about])*
            #[derive(Clone, Debug, JsonSchema, Serialize)]
            pub(crate) struct $name {
                $($(#[$attribute])* $field: $type,)+
            }

            impl From<v1::$name> for $name {
                fn from(wire: v1::$name) -> Self {
                    let v1::$name { $($field),+ } = wire;
                    Self { $($field: ($convert)($field)),+ }
                }
            }
        )+

        /// What programs may know besides the ids, by the kind of the event.
        #[derive(Clone, Debug, JsonSchema, Serialize)]
        #[serde(untagged)]
        pub(crate) enum Facts {
            $($(#[$about])* $variant($name),)+
        }

        impl From<v1::event::Facts> for Facts {
            fn from(wire: v1::event::Facts) -> Self {
                match wire {
                    $(v1::event::Facts::$variant(facts) => Self::$variant(facts.into()),)+
                }
            }
        }
    };
}

facts! {
    /// Of `delivery_leased`.
    DeliveryLeased(DeliveryLeased) {
        /// The attempt that begins, from 1.
        attempt: u32 = same;
        /// Why the delivery was last requeued; none: it never was.
        #[schemars(with = "Word<v1::RedeliveryCause>")]
        cause: Option<String> = optional_word::<v1::RedeliveryCause>;
    }
    /// Of `delivery_acked`.
    DeliveryAcked(DeliveryAcked) {
        /// The attempt that held it last; 0 before the first.
        attempt: u32 = same;
        /// Who acked it.
        #[schemars(with = "Word<v1::Settler>")]
        settler: Option<String> = word::<v1::Settler>;
    }
    /// Of `delivery_returned`.
    DeliveryReturned(DeliveryReturned) {
        /// The attempt that ended.
        attempt: u32 = same;
        /// Why it was requeued.
        #[schemars(with = "Word<v1::RedeliveryCause>")]
        cause: Option<String> = word::<v1::RedeliveryCause>;
    }
    /// Of `delivery_dead`.
    DeliveryDead(DeliveryDead) {
        /// The attempt that ended.
        attempt: u32 = same;
        /// Why this attempt failed.
        #[schemars(with = "Word<v1::RedeliveryCause>")]
        cause: Option<String> = word::<v1::RedeliveryCause>;
    }
    /// Of `delivery_held`.
    DeliveryHeld(DeliveryHeld) {
        /// The attempt whose turn was cancelled.
        attempt: u32 = same;
    }
    /// Of `turn_begun`.
    TurnBegun(TurnBegun) {
        /// The kind of the turn.
        #[schemars(with = "Word<v1::TurnKind>")]
        kind: Option<String> = word::<v1::TurnKind>;
        /// The session epoch in which it began.
        session_epoch: u64 = same;
    }
    /// Of `turn_ended`.
    TurnEnded(TurnEnded) {
        /// How it ended.
        #[schemars(with = "Word<v1::TurnOutcome>")]
        outcome: Option<String> = word::<v1::TurnOutcome>;
        /// The session epoch in which it began.
        session_epoch: u64 = same;
    }
    /// Of `harness_attached`.
    HarnessAttached(HarnessAttached) {
        /// The new session epoch.
        session_epoch: u64 = same;
    }
    /// Of `harness_lost`.
    HarnessLost(HarnessLost) {
        /// The session epoch that ended.
        session_epoch: u64 = same;
        /// Why it ended.
        #[schemars(with = "Word<v1::HarnessLoss>")]
        loss: Option<String> = word::<v1::HarnessLoss>;
    }
    /// Of `agent_created`.
    AgentCreated(AgentCreated) {
        /// Who declared the agent.
        #[schemars(with = "Word<v1::AgentSource>")]
        source: Option<String> = word::<v1::AgentSource>;
    }
    /// Of `agent_changed`.
    AgentChanged(AgentChanged) {
        /// What changed.
        #[schemars(with = "Word<v1::AgentChange>")]
        change: Option<String> = word::<v1::AgentChange>;
    }
    /// Of `agent_parked`.
    AgentParked(AgentParked) {
        /// The outcome that caused the park.
        #[schemars(with = "Word<v1::TurnOutcome>")]
        cause: Option<String> = word::<v1::TurnOutcome>;
        /// The end of the park; none: it waits for a login.
        #[serde(with = "Iso")]
        until_time: Option<WallTime> = time::from_wire;
    }
    /// Of `command_given`.
    CommandGiven(CommandGiven) {
        /// What was asked of the harness.
        #[schemars(with = "Word<v1::CommandKind>")]
        kind: Option<String> = word::<v1::CommandKind>;
        /// The command; none for a login dialogue.
        command_id: Option<u64> = id;
    }
    /// Of `command_closed`.
    CommandClosed(CommandClosed) {
        /// Whether the command was carried out, or the login succeeded.
        done: bool = same;
        /// The command; none for a login dialogue.
        command_id: Option<u64> = id;
    }
    /// Of `refused`.
    Refused(CallRefused) {
        /// The reason of the refusal, one of those in docs/errors.
        #[schemars(with = "Word<v1::Reason>")]
        reason: Option<String> = word::<v1::Reason>;
    }
    /// Of `reminder_set`.
    ReminderSet(ReminderSet) {
        /// The time at which the reminder is due.
        #[serde(with = "Iso")]
        due_time: Option<WallTime> = time::from_wire;
    }
    /// Of `harness_state_changed`.
    HarnessStateChanged(HarnessStateChanged) {
        /// The new state.
        #[schemars(with = "Word<v1::HarnessState>")]
        state: Option<String> = word::<v1::HarnessState>;
    }
    /// Of `schedule_created`.
    ScheduleCreated(ScheduleCreated) {
        /// The schedule.
        schedule_id: u64 = same;
    }
    /// Of `schedule_changed`.
    ScheduleChanged(ScheduleChanged) {
        /// The schedule.
        schedule_id: u64 = same;
        /// What changed.
        #[schemars(with = "Word<v1::ScheduleChange>")]
        change: Option<String> = word::<v1::ScheduleChange>;
    }
    /// Of `schedule_fired`.
    ScheduleFired(ScheduleFired) {
        /// The schedule.
        schedule_id: u64 = same;
    }
    /// Of `schedule_ended`.
    ScheduleEnded(ScheduleEnded) {
        /// The schedule.
        schedule_id: u64 = same;
    }
}

impl Facts {
    /// Returns the schedule that the event is about.
    pub(super) fn schedule_id(&self) -> Option<u64> {
        match self {
            Self::ScheduleCreated(ScheduleCreated { schedule_id })
            | Self::ScheduleChanged(ScheduleChanged { schedule_id, .. })
            | Self::ScheduleFired(ScheduleFired { schedule_id })
            | Self::ScheduleEnded(ScheduleEnded { schedule_id }) => Some(*schedule_id),
            Self::DeliveryLeased(_)
            | Self::DeliveryAcked(_)
            | Self::DeliveryReturned(_)
            | Self::DeliveryDead(_)
            | Self::DeliveryHeld(_)
            | Self::TurnBegun(_)
            | Self::TurnEnded(_)
            | Self::HarnessAttached(_)
            | Self::HarnessLost(_)
            | Self::AgentCreated(_)
            | Self::AgentChanged(_)
            | Self::AgentParked(_)
            | Self::CommandGiven(_)
            | Self::CommandClosed(_)
            | Self::Refused(_)
            | Self::ReminderSet(_)
            | Self::HarnessStateChanged(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_a_flat_record_of_words_and_numbers() {
        let leased = v1::DeliveryLeased { attempt: 2, cause: Some(1) };
        let json = |facts: v1::event::Facts| {
            serde_json::to_string(&Facts::from(facts)).expect("a record is JSON")
        };
        assert_eq!(
            json(v1::event::Facts::DeliveryLeased(leased)),
            r#"{"attempt":2,"cause":"turn_failed"}"#
        );
        let refused = v1::CallRefused { reason: v1::Reason::CapabilityMissing.into() };
        assert_eq!(json(v1::event::Facts::Refused(refused)), r#"{"reason":"capability_missing"}"#);
        let closed = v1::CommandClosed { done: true, command_id: 0 };
        assert_eq!(
            json(v1::event::Facts::CommandClosed(closed)),
            r#"{"done":true,"command_id":null}"#
        );
        let mut changed = v1::ScheduleChanged { schedule_id: 12, change: 0 };
        changed.set_change(v1::ScheduleChange::Paused);
        assert_eq!(
            json(v1::event::Facts::ScheduleChanged(changed)),
            r#"{"schedule_id":12,"change":"paused"}"#
        );
    }
}
