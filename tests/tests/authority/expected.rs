//! What each RPC answers to those who are not its owner.

use hive_core::reason::Reason;

use crate::authority_table::{Proof, Row};

/// What a stranger gets who asks about another's things, and shows the other's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// This refusal.
    Refused(Reason),
    /// What everybody may know.
    Public,
    /// An act on the stranger's own things; the other's stay as they are.
    OnOwn,
    /// There is no such service on an agent's socket.
    Absent,
}

/// What a stranger gets.
///
/// # Panics
///
/// If nothing is said of this RPC: then it belongs here.
pub(crate) fn of_stranger(row: &Row) -> Stranger {
    use Stranger::{Absent, OnOwn, Public, Refused};
    if !row.agent {
        return Absent;
    }
    match (row.service, row.method, row.proof) {
        ("TurnService", "Attach", _) | ("WakeService", "Wake", _) => OnOwn,
        (_, _, Proof::Process | Proof::ProcessWhileAttached) => Refused(Reason::TurnEnded),
        (_, _, Proof::Session) => Refused(Reason::LeaseLost),
        ("MessageService", "GetMessage", _) => Refused(Reason::MessageNotFound),
        ("InboxService", "AckDelivery" | "NackDelivery" | "ExtendLease", _) => Refused(Reason::LeaseLost),
        ("TurnHistoryService", "GetTurn" | "WatchTurn", _) => Refused(Reason::TurnNotFound),
        ("MessageService", "ListMessages", _)
        | ("InboxService", "GetInboxStatus" | "ListDeliveries", _)
        | ("TurnHistoryService", "ListTurns", _)
        | ("EventService", "ListEvents" | "WatchEvents", _) => Refused(Reason::NotYours),
        ("TopologyService" | "ServerInfoService", _, _) => Public,
        (service, method, _) => panic!("{service}.{method} is new: say here what a stranger gets"),
    }
}

/// Why the operator is refused, where they are, on their own socket.
pub(crate) fn of_operator(row: &Row) -> Option<Reason> {
    match (row.service, row.method) {
        // The operator's mail is never leased, and nobody's lease is theirs.
        ("InboxService", "ReceiveMessages") | ("TopologyService", "GetSelf") => Some(Reason::NotAnAgent),
        ("InboxService", "AckDelivery" | "NackDelivery" | "ExtendLease") => Some(Reason::LeaseLost),
        _ => None,
    }
}
