//! Events: committed facts, numbered by commit.
//!
//! Invariant: the facts of an event are those of its kind, because one enum has both.

mod facts;

pub use facts::{
    AgentChange, AgentChanged, AgentCreated, AgentParked, CallRefused, CommandClosed, CommandGiven,
    DeliveryAcked, DeliveryDead, DeliveryHeld, DeliveryLeased, DeliveryReturned, HarnessAttached,
    HarnessLoss, HarnessLost, HarnessStateChanged, ReminderSet, ScheduleChange, ScheduleChanged,
    ScheduleCreated, ScheduleEnded, ScheduleFired, Settler, TurnBegun, TurnEnded,
};

use crate::id::{MessageId, QuestionId, ReminderId, TurnId};
use crate::time::WallTime;

/// Defines the kinds of events, and with them the facts that the events of a kind have.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $(($facts:ident))?,)+) => {
        /// The kind of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)+
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// Returns whether its events have facts.
            #[must_use]
            pub fn has_facts(self) -> bool {
                match self { $(Self::$kind => kinds!(@has $($facts)?),)+ }
            }
        }

        /// The kind of an event with its facts. They are `None` in events that a broker wrote which
        /// did not store facts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Facts {
            $($(#[$doc])* $kind $((Option<$facts>))?,)+
        }

        impl Facts {
            /// Returns the kind.
            #[must_use]
            pub fn kind(&self) -> Kind {
                match self { $(kinds!(@pattern $kind $($facts)?) => Kind::$kind,)+ }
            }

            /// Returns a kind whose facts are not known.
            #[must_use]
            pub fn unknown(kind: Kind) -> Self {
                match kind { $(Kind::$kind => kinds!(@unknown $kind $($facts)?),)+ }
            }
        }

        $($(impl From<$facts> for Facts {
            fn from(facts: $facts) -> Self {
                Self::$kind(Some(facts))
            }
        })?)+
    };
    (@pattern $kind:ident) => { Self::$kind };
    (@pattern $kind:ident $facts:ident) => { Self::$kind(_) };
    (@has) => { false };
    (@has $facts:ident) => { true };
    (@unknown $kind:ident) => { Self::$kind };
    (@unknown $kind:ident $facts:ident) => { Self::$kind(None) };
}

kinds! {
    /// A message was accepted.
    MessageAccepted,
    /// A delivery was leased.
    DeliveryLeased(DeliveryLeased),
    /// A delivery was acked.
    DeliveryAcked(DeliveryAcked),
    /// A delivery was requeued.
    DeliveryReturned(DeliveryReturned),
    /// A delivery became a dead letter.
    DeliveryDead(DeliveryDead),
    /// A delivery was held.
    DeliveryHeld(DeliveryHeld),
    /// A held delivery was released.
    DeliveryReleased,
    /// A dead letter was redriven.
    DeliveryRedriven,
    /// A delivery was dropped.
    DeliveryDropped,
    /// A newer message superseded a delivery.
    DeliverySuperseded,
    /// A turn began.
    TurnBegun(TurnBegun),
    /// A turn ended.
    TurnEnded(TurnEnded),
    /// A harness attached with a new session epoch.
    HarnessAttached(HarnessAttached),
    /// A harness was fenced or its grace period expired.
    HarnessLost(HarnessLost),
    /// An agent was created.
    AgentCreated(AgentCreated),
    /// An agent was changed.
    AgentChanged(AgentChanged),
    /// An agent was retired.
    AgentRetired,
    /// An agent's status text changed.
    StatusChanged,
    /// An agent was parked.
    AgentParked(AgentParked),
    /// The operator gave a harness a command.
    CommandGiven(CommandGiven),
    /// A harness closed a command.
    CommandClosed(CommandClosed),
    /// A call was refused by policy.
    Refused(CallRefused),
    /// A question was asked.
    QuestionAsked,
    /// A question was answered.
    QuestionAnswered,
    /// A question's deadline passed.
    QuestionExpired,
    /// A question was withdrawn.
    QuestionCancelled,
    /// A reminder was set.
    ReminderSet(ReminderSet),
    /// A reminder fired.
    ReminderFired,
    /// A reminder was withdrawn.
    ReminderCancelled,
    /// An agent was stopped.
    AgentStopped,
    /// An agent was started, or is wanted in another way.
    AgentStarted,
    /// A restart of a harness was requested.
    RestartRequested,
    /// A harness ended by itself.
    HarnessCrashed,
    /// An agent asked for logs.
    LogsRead,
    /// A run of an approved action began.
    ActionBegun,
    /// An approved action has ended.
    ActionEnded,
    /// A schedule was created.
    ScheduleCreated(ScheduleCreated),
    /// A schedule was changed, paused or resumed.
    ScheduleChanged(ScheduleChanged),
    /// A schedule fired.
    ScheduleFired(ScheduleFired),
    /// A schedule ended.
    ScheduleEnded(ScheduleEnded),
    /// The operator purged a retired agent.
    AgentPurged,
    /// The directories of a purged agent were deleted.
    PurgeFinished,
    /// A harness reported another state.
    HarnessStateChanged(HarnessStateChanged),
    /// A backup has replaced the database.
    LogBegun,
}

/// A committed fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its position in the log.
    pub sequence: u64,
    /// The kind of fact, and what programs may know about it.
    pub facts: Facts,
    /// When it was committed.
    pub time: WallTime,
    /// The agent it concerns; empty for none.
    pub agent: String,
    /// The message it concerns.
    pub message_id: Option<MessageId>,
    /// The turn it concerns.
    pub turn_id: Option<TurnId>,
    /// Further text for people.
    pub detail: String,
    /// The question it concerns.
    pub question_id: Option<QuestionId>,
    /// The reminder it concerns.
    pub reminder_id: Option<ReminderId>,
}

impl Event {
    /// Returns the kind of fact.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.facts.kind()
    }
}
