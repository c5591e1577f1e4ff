//! What each RPC answers to those who are not its owner.

use hive_core::reason::Reason;

use crate::authority_table::{Proof, Row};

/// What a stranger gets who asks about another's things, and shows the other's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// This refusal.
    Refused(Reason),
    /// This refusal, and the operator sees an event of it.
    Logged(Reason),
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
    use Stranger::{Absent, Logged, OnOwn, Public, Refused};
    if !row.agent {
        return Absent;
    }
    match (row.service, row.method, row.proof) {
        ("TurnService", "Attach", _)
        | ("WakeService", "Wake", _)
        | ("LooseEndService", "ReplaceLooseEnds", _) => OnOwn,
        // Whose question or reminder it is comes before the turn in which somebody would close it.
        ("QuestionService", "AnswerQuestion", _) => Logged(Reason::NotTheTarget),
        ("QuestionService", "CancelQuestion", _)
        | ("ReminderService", "CancelReminder", _)
        | ("LooseEndService", "CancelLooseEnd", _) => Logged(Reason::NotYours),
        ("LooseEndService", "ListLooseEnds", _) => Logged(Reason::NotYourChild),
        (_, _, Proof::Process | Proof::ProcessWhileAttached) => Refused(Reason::TurnEnded),
        (_, _, Proof::Session) => Refused(Reason::LeaseLost),
        ("MessageService", "GetMessage", _) => Refused(Reason::MessageNotFound),
        ("InboxService", "AckDelivery" | "NackDelivery" | "ExtendLease", _) => {
            Refused(Reason::LeaseLost)
        }
        ("TurnHistoryService", "GetTurn" | "WatchTurn", _) => Refused(Reason::TurnNotFound),
        ("QuestionService", "GetQuestion" | "WatchQuestions", _) => {
            Refused(Reason::QuestionNotFound)
        }
        ("MessageService", "ListMessages" | "SearchMessages", _)
        | ("ReminderService", "ListReminders", _)
        | ("InboxService", "GetInboxStatus" | "ListDeliveries", _)
        | ("TurnHistoryService", "ListTurns" | "GetTurnStats", _)
        | ("EventService", "ListEvents" | "WatchEvents", _) => Refused(Reason::NotYours),
        // Of another's questions a stranger sees those that they share, and here there are none.
        ("TopologyService" | "ServerInfoService", _, _)
        | ("QuestionService", "ListQuestions", _) => Public,
        (service, method, _) => panic!("{service}.{method} is new: say here what a stranger gets"),
    }
}

/// Why an owner is refused who has all that a call must show: what it is about is not there. What
/// it does where it is, has tests of its own.
pub(crate) fn of_owner(row: &Row) -> Option<Reason> {
    match (row.service, row.method) {
        // Nobody waits for a login dialogue.
        ("TurnService", "ServeLogin") => Some(Reason::LoginNotFound),
        _ => None,
    }
}

/// Why the operator is refused, where they are, on their own socket.
pub(crate) fn of_operator(row: &Row) -> Option<Reason> {
    match (row.service, row.method) {
        // The operator's mail is never leased, and nobody's lease is theirs.
        ("InboxService", "ReceiveMessages") | ("TopologyService", "GetSelf") => {
            Some(Reason::NotAnAgent)
        }
        ("InboxService", "AckDelivery" | "NackDelivery" | "ExtendLease") => Some(Reason::LeaseLost),
        // Nobody is reminded of what somebody else wants to remember, and only an agent has
        // co-processes.
        ("ReminderService", "CreateReminder") | ("LooseEndService", "ReplaceLooseEnds") => {
            Some(Reason::NotAnAgent)
        }
        // Nobody is attached who could serve it.
        ("AdminService", "Login") => Some(Reason::HarnessOffline),
        // A loose end is closed by whose it is; the operator withdraws another's question by its
        // name.
        ("LooseEndService", "CancelLooseEnd") => Some(Reason::NotYours),
        _ => None,
    }
}

/// The tool group that an agent needs for a call; none where every agent may.
///
/// # Panics
///
/// If nothing is said of this RPC: then it belongs here.
pub(crate) fn group_of(row: &Row) -> Option<&'static str> {
    match (row.service, row.method) {
        ("MessageService", "SendMessage")
        | ("InboxService", "ReceiveMessages")
        | ("QuestionService", "AskQuestion" | "AnswerQuestion") => Some("messaging"),
        ("LooseEndService", "ListLooseEnds" | "CancelLooseEnd")
        | ("QuestionService", "CancelQuestion")
        | ("ReminderService", "CreateReminder" | "CancelReminder")
        | ("TurnService", "RequestNextTurn") => Some("inbox"),
        ("StatusService", "SetStatusText")
        | ("TopologyService", "GetAgent" | "ListAgents" | "ListChildren" | "FindAgents") => {
            Some("meta")
        }
        // What reads back one's own, what a harness does, and what a co-process does.
        ("MessageService", "GetMessage" | "ListMessages" | "SearchMessages")
        | ("QuestionService", "GetQuestion" | "ListQuestions" | "WatchQuestions")
        | ("ReminderService", "ListReminders")
        | ("LooseEndService", "ReplaceLooseEnds")
        | ("TopologyService", "GetSelf")
        | ("StatusService", "ReportHarnessStatus")
        | (
            "InboxService" | "TurnService" | "TurnHistoryService" | "WakeService" | "EventService"
            | "ServerInfoService",
            _,
        ) => None,
        (service, method) => {
            panic!("{service}.{method} is new: say here which tool group it needs")
        }
    }
}
