//! Reasons: the stable machine words of all refusals on the wire.
//!
//! Invariant: each has a help page `docs/errors/<REASON>.md` (a test checks it), and its text never
//! changes.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        /// Why a call was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])* $variant,)+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Reason] = &[$(Self::$variant,)+];

            /// Returns the word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// Returns the reason with this word.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

reasons! {
    /// The socket does not serve this method.
    MethodNotServed = "METHOD_NOT_SERVED",
    /// The request is compressed.
    RequestCompressed = "REQUEST_COMPRESSED",
    /// A field of the request is not valid.
    FieldInvalid = "FIELD_INVALID",
    /// There is no agent of that name.
    AgentNotFound = "AGENT_NOT_FOUND",
    /// The agent was retired.
    AgentRetired = "AGENT_RETIRED",
    /// There is no such message, or the caller may not see it.
    MessageNotFound = "MESSAGE_NOT_FOUND",
    /// There is no such delivery.
    DeliveryNotFound = "DELIVERY_NOT_FOUND",
    /// There is no such question, or the caller may not see it.
    QuestionNotFound = "QUESTION_NOT_FOUND",
    /// There is no such reminder, or the caller may not see it.
    ReminderNotFound = "REMINDER_NOT_FOUND",
    /// There is no such turn, or the caller may not see it.
    TurnNotFound = "TURN_NOT_FOUND",
    /// There is no such command.
    CommandNotFound = "COMMAND_NOT_FOUND",
    /// The request id was used for another request.
    RequestIdReused = "REQUEST_ID_REUSED",
    /// There is an agent of that name already.
    AgentExists = "AGENT_EXISTS",
    /// The sender's policy does not allow that recipient.
    RecipientNotAllowed = "RECIPIENT_NOT_ALLOWED",
    /// The item belongs to another caller.
    NotYours = "NOT_YOURS",
    /// The question was put to another target.
    NotTheTarget = "NOT_THE_TARGET",
    /// The agent is not the caller's direct child.
    NotYourChild = "NOT_YOUR_CHILD",
    /// The call is for agents, and came from the operator's socket.
    NotAnAgent = "NOT_AN_AGENT",
    /// The agent's policy lacks the right.
    CapabilityMissing = "CAPABILITY_MISSING",
    /// The peer may not use this socket, or not for this call.
    PeerNotTrusted = "PEER_NOT_TRUSTED",
    /// The lease or session is no longer the caller's.
    LeaseLost = "LEASE_LOST",
    /// The calling process has no open turn.
    TurnEnded = "TURN_ENDED",
    /// The session has an open turn.
    TurnOpen = "TURN_OPEN",
    /// A harness is attached.
    AlreadyAttached = "ALREADY_ATTACHED",
    /// No harness is attached, or it does not answer.
    HarnessOffline = "HARNESS_OFFLINE",
    /// A login dialogue with the agent is open already.
    LoginOpen = "LOGIN_OPEN",
    /// There is no such login dialogue, or it is over.
    LoginNotFound = "LOGIN_NOT_FOUND",
    /// The agent starts no turns for now.
    AgentParked = "AGENT_PARKED",
    /// The operator stopped the agent.
    AgentStopped = "AGENT_STOPPED",
    /// The directories of a purged agent of that name are not deleted yet.
    AgentPurging = "AGENT_PURGING",
    /// The delivery's state does not allow it.
    WrongState = "WRONG_STATE",
    /// The question has its outcome already.
    QuestionClosed = "QUESTION_CLOSED",
    /// The move would make an agent its own ancestor.
    TopologyCycle = "TOPOLOGY_CYCLE",
    /// The status text is too long.
    StatusTooLong = "STATUS_TOO_LONG",
    /// The recipient's inbox is full.
    InboxFull = "INBOX_FULL",
    /// The body is too large.
    BodyTooLarge = "BODY_TOO_LARGE",
    /// The sender sends too fast.
    RateLimited = "RATE_LIMITED",
    /// The sender has too many bytes waiting.
    StorageFull = "STORAGE_FULL",
    /// The asker has too many open questions.
    QuestionLimit = "QUESTION_LIMIT",
    /// The agent has too many pending reminders.
    ReminderLimit = "REMINDER_LIMIT",
    /// The agent has too many calls under way.
    CallLimit = "CALL_LIMIT",
    /// The broker does not know yet which sandbox belongs to the agent.
    Starting = "STARTING",
    /// The broker shuts down.
    Draining = "DRAINING",
    /// The database cannot be written now.
    StorageUnavailable = "STORAGE_UNAVAILABLE",
    /// A fault of the broker.
    Internal = "INTERNAL",
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(*reason));
        }
        assert_eq!(Reason::parse("NO_SUCH_REASON"), None);
    }
}
