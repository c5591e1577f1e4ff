//! The expected answer of each RPC to callers that are not its owner.

use hive_core::reason::Reason;

use crate::authority_table::{Proof, Row};

/// The answer to a stranger that calls about another agent's objects, with that agent's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stranger {
    Refused(Reason),
    /// This refusal, and the operator sees an event of it.
    Logged(Reason),
    /// Information that every caller may read.
    Public,
    /// An act on the stranger's own objects; the other's stay unchanged.
    OnOwn,
    /// There is no such service on an agent's socket.
    Absent,
}

/// Returns whether this method of the inbox settles the delivery of a lease.
pub(crate) fn settles(method: &str) -> bool {
    let all =
        ["StreamDeliveries", "SettleDeliveries", "AckDelivery", "NackDelivery", "ExtendLease"];
    all.contains(&method)
}

/// Returns the answer to a stranger.
pub(crate) fn of_stranger(row: &Row) -> Stranger {
    use Stranger::{Absent, Logged, OnOwn, Public, Refused};
    if !row.agent {
        return Absent;
    }
    match (row.service, row.method, row.proof) {
        ("TurnService", "Attach", _)
        | ("WakeService", "Wake", _)
        | ("LooseEndService", "ReplaceLooseEnds", _) => OnOwn,
        // What a stranger may not read does not exist for any verb. That is checked before the turn
        // of the caller, and the log shows no difference either.
        ("QuestionService", "AnswerQuestion" | "CancelQuestion", _)
        | ("LooseEndService", "CancelLooseEnd", _) => Refused(Reason::QuestionNotFound),
        ("ReminderService", "CancelReminder", _) => Refused(Reason::ReminderNotFound),
        ("ScheduleService", "FireSchedule" | "CancelSchedule", _) => {
            Refused(Reason::ScheduleNotFound)
        }
        ("LooseEndService", "ListLooseEnds", _) => Logged(Reason::NotYourChild),
        (_, _, Proof::Process | Proof::ProcessWhileAttached) => Refused(Reason::TurnEnded),
        (_, _, Proof::Session) => Refused(Reason::SessionLost),
        ("MessageService", "GetMessage" | "ListRecipients", _) => Refused(Reason::MessageNotFound),
        ("InboxService", method, _) if settles(method) => Refused(Reason::LeaseLost),
        ("TurnHistoryService", "GetTurn" | "WatchTurn", _) => Refused(Reason::TurnNotFound),
        ("QuestionService", "GetQuestion" | "WatchQuestions", _) => {
            Refused(Reason::QuestionNotFound)
        }
        ("MessageService", "ListMessages" | "SearchMessages", _)
        | ("ReminderService", "ListReminders", _)
        | ("ScheduleService", "ListSchedules", _)
        | ("InboxService", "GetInboxStatus" | "ListDeliveries", _)
        | ("TurnHistoryService", "ListTurns" | "GetTurnStats", _)
        | ("TopologyService", "WatchAgents", _)
        | ("EventService", "ListEvents" | "WatchEvents", _) => Refused(Reason::NotYours),
        // A stranger sees only the questions shared with another agent, and here there are none.
        ("TopologyService" | "ServerInfoService" | "ActionService", _, _)
        | ("QuestionService", "ListQuestions", _) => Public,
        (service, method, _) => panic!("{service}.{method} is new: say here what a stranger gets"),
    }
}

/// Returns why an owner with all required tokens is refused: the object is missing. Separate tests
/// cover the RPC with the object present.
pub(crate) fn of_owner(row: &Row) -> Option<Reason> {
    match (row.service, row.method) {
        // No login dialogue is open.
        ("TurnService", "ServeLogin") => Some(Reason::LoginNotFound),
        // No launcher is attached.
        ("DiagnosticsService", _) => Some(Reason::LauncherOffline),
        _ => None,
    }
}

/// Returns why the operator is refused on the operator's own socket, if so.
pub(crate) fn of_operator(row: &Row) -> Option<Reason> {
    match (row.service, row.method) {
        // The operator's mail is never leased, and no other lease is the operator's.
        ("InboxService", "ReceiveMessages" | "StreamDeliveries")
        | ("TopologyService", "GetSelf") => Some(Reason::NotAnAgent),
        ("InboxService", method) if settles(method) => Some(Reason::LeaseLost),
        // Reminders are only for their own agent, and only an agent has co-processes.
        ("ReminderService", "CreateReminder") | ("LooseEndService", "ReplaceLooseEnds") => {
            Some(Reason::NotAnAgent)
        }
        // No harness is attached that could serve it.
        ("AdminService", "Login") => Some(Reason::HarnessOffline),
        // Only its owner closes a loose end; the operator withdraws another's question by its name.
        ("LooseEndService", "CancelLooseEnd") => Some(Reason::NotYours),
        _ => None,
    }
}

/// Returns the tool group that an agent needs for a call, or `None` if every agent may call it.
pub(crate) fn group_of(row: &Row) -> Option<&'static str> {
    match (row.service, row.method) {
        ("MessageService", "SendMessage" | "StreamMessages")
        | ("InboxService", "ReceiveMessages" | "StreamDeliveries")
        | ("QuestionService", "AskQuestion" | "AnswerQuestion") => Some("messaging"),
        ("LooseEndService", "ListLooseEnds" | "CancelLooseEnd")
        | ("QuestionService", "CancelQuestion")
        | ("ReminderService", "CreateReminder" | "CancelReminder")
        | ("TurnService", "RequestNextTurn") => Some("inbox"),
        ("LifecycleService", _) => Some("lifecycle"),
        ("DiagnosticsService", _) => Some("diagnostics"),
        ("ActionService", _) => Some("approvals"),
        ("ScheduleService", "FireSchedule" | "CancelSchedule") => Some("scheduling"),
        ("StatusService", "SetStatusText")
        | (
            "TopologyService",
            "GetAgent" | "ListAgents" | "ListChildren" | "FindAgents" | "WatchAgents",
        ) => Some("meta"),
        // Reads of an agent's own objects, and the calls of a harness and of a co-process.
        ("MessageService", "GetMessage" | "ListMessages" | "ListRecipients" | "SearchMessages")
        | ("QuestionService", "GetQuestion" | "ListQuestions" | "WatchQuestions")
        | ("ReminderService", "ListReminders")
        | ("ScheduleService", "ListSchedules")
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
