//! The authority table: every RPC of `hive.v1`, where it is served, and what a call must show.
//!
//! Invariant: the table and the contract name the same RPCs (the tidy test compares them), so an
//! RPC cannot be added without saying here who may call it; the authority test then tries each row
//! as everybody.

/// What a call must carry besides coming through the right socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Nothing: the socket says it all.
    Socket,
    /// A live session token, in the request (for `Attach`: one to resume, where given).
    Session,
    /// The token of a claude process with an open turn, in the metadata: always.
    Process,
    /// The same, but only on an agent socket and only while a harness is attached to that agent.
    ProcessWhileAttached,
}

/// One RPC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its service, without the package.
    pub(crate) service: &'static str,
    /// Its name.
    pub(crate) method: &'static str,
    /// Whether agent sockets serve it.
    pub(crate) agent: bool,
    /// Whether the operator socket serves it.
    pub(crate) operator: bool,
    /// What a call must show.
    pub(crate) proof: Proof,
    /// Whether it changes what is on disk.
    pub(crate) mutates: bool,
}

/// Services that agent sockets do not have at all, not even in reflection.
pub(crate) const OPERATOR_ONLY: &[&str] = &["AdminService"];

/// Services that the operator socket does not have: a session belongs to an agent.
pub(crate) const AGENT_ONLY: &[&str] = &["TurnService", "WakeService", "StatusService"];

const fn both(service: &'static str, method: &'static str, proof: Proof, mutates: bool) -> Row {
    Row { service, method, agent: true, operator: true, proof, mutates }
}

const fn agent(service: &'static str, method: &'static str, proof: Proof, mutates: bool) -> Row {
    Row { service, method, agent: true, operator: false, proof, mutates }
}

const fn operator(method: &'static str, mutates: bool) -> Row {
    Row {
        service: "AdminService",
        method,
        agent: false,
        operator: true,
        proof: Proof::Socket,
        mutates,
    }
}

/// Every RPC there is.
pub(crate) const TABLE: &[Row] = &[
    both("MessageService", "SendMessage", Proof::ProcessWhileAttached, true),
    both("MessageService", "GetMessage", Proof::Socket, false),
    both("MessageService", "ListMessages", Proof::Socket, false),
    both("MessageService", "SearchMessages", Proof::Socket, false),
    both("InboxService", "ReceiveMessages", Proof::ProcessWhileAttached, true),
    both("InboxService", "AckDelivery", Proof::Socket, true),
    both("InboxService", "NackDelivery", Proof::Socket, true),
    both("InboxService", "ExtendLease", Proof::Socket, true),
    both("InboxService", "GetInboxStatus", Proof::Socket, false),
    both("InboxService", "ListDeliveries", Proof::Socket, false),
    both("QuestionService", "AskQuestion", Proof::ProcessWhileAttached, true),
    both("QuestionService", "AnswerQuestion", Proof::ProcessWhileAttached, true),
    both("QuestionService", "CancelQuestion", Proof::ProcessWhileAttached, true),
    both("QuestionService", "GetQuestion", Proof::Socket, false),
    both("QuestionService", "ListQuestions", Proof::Socket, false),
    both("QuestionService", "WatchQuestions", Proof::Socket, false),
    both("ReminderService", "CreateReminder", Proof::ProcessWhileAttached, true),
    both("ReminderService", "CancelReminder", Proof::ProcessWhileAttached, true),
    both("ReminderService", "ListReminders", Proof::Socket, false),
    both("LooseEndService", "ListLooseEnds", Proof::Socket, false),
    both("LooseEndService", "CancelLooseEnd", Proof::ProcessWhileAttached, true),
    both("LooseEndService", "ReplaceLooseEnds", Proof::Socket, true),
    agent("TurnService", "Attach", Proof::Session, true),
    agent("TurnService", "AckCommand", Proof::Session, true),
    agent("TurnService", "BeginTurn", Proof::Session, true),
    agent("TurnService", "OpenTurn", Proof::Session, true),
    agent("TurnService", "RequestNextTurn", Proof::Process, true),
    agent("TurnService", "Heartbeat", Proof::Session, false),
    agent("TurnService", "ReportTurnEvents", Proof::Session, false),
    agent("TurnService", "EndTurn", Proof::Session, true),
    agent("TurnService", "ReportProblem", Proof::Session, true),
    agent("TurnService", "ServeLogin", Proof::Session, false),
    both("TurnHistoryService", "ListTurns", Proof::Socket, false),
    both("TurnHistoryService", "GetTurn", Proof::Socket, false),
    both("TurnHistoryService", "WatchTurn", Proof::Socket, false),
    both("TurnHistoryService", "GetTurnStats", Proof::Socket, false),
    agent("WakeService", "Wake", Proof::Socket, true),
    both("TopologyService", "GetSelf", Proof::Socket, false),
    both("TopologyService", "GetAgent", Proof::Socket, false),
    both("TopologyService", "ListAgents", Proof::Socket, false),
    both("TopologyService", "ListChildren", Proof::Socket, false),
    both("TopologyService", "FindAgents", Proof::Socket, false),
    agent("StatusService", "SetStatusText", Proof::ProcessWhileAttached, true),
    agent("StatusService", "ReportHarnessStatus", Proof::Session, true),
    both("EventService", "ListEvents", Proof::Socket, false),
    both("EventService", "WatchEvents", Proof::Socket, false),
    operator("CreateAgent", true),
    operator("RemoveAgent", true),
    operator("StopAgent", true),
    operator("StartAgent", true),
    operator("ListPurges", false),
    operator("FinishPurge", true),
    operator("SetParent", true),
    operator("SetPolicy", true),
    operator("ListDeadLetters", false),
    operator("RedriveDelivery", true),
    operator("DropDelivery", true),
    operator("ReleaseDelivery", true),
    operator("SendCommand", true),
    operator("Login", true),
    operator("GetBrokerStatus", false),
    operator("Backup", false),
    operator("CheckIntegrity", false),
    operator("Drain", true),
    both("ServerInfoService", "GetServerInfo", Proof::Socket, false),
];
