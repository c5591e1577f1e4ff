//! The authority table: every RPC of `hive.v1`, which sockets serve it, and what a call must show.
//!
//! Invariant: the rows are those of the broker's own table, which a test there compares with the
//! contract. The authority test tries each row as every caller, so a row that is wrong fails.

use std::sync::LazyLock;

use hive_broker::rpc::method::{METHODS, Method};

/// The credential that a call needs besides the right socket.
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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// The service of the RPC, without the package.
    pub(crate) service: &'static str,
    /// The method's name in the contract.
    pub(crate) method: &'static str,
    /// Whether agent sockets serve it.
    pub(crate) agent: bool,
    /// Whether the operator socket serves it.
    pub(crate) operator: bool,
    /// The credential that a call must show.
    pub(crate) proof: Proof,
    /// Whether it changes what is on disk.
    pub(crate) mutates: bool,
}

/// Services that agent sockets do not have at all, not even in reflection.
pub(crate) const OPERATOR_ONLY: &[&str] = &["AdminService", "LauncherService"];

/// Services that the operator socket does not have: a session belongs to an agent, and the operator
/// starts and stops agents by `AdminService` and reads logs on the host.
pub(crate) const AGENT_ONLY: &[&str] = &[
    "TurnService",
    "WakeService",
    "StatusService",
    "LifecycleService",
    "DiagnosticsService",
    "ActionService",
];

/// Credentials that calls must show besides the socket; the other RPCs need nothing else.
const PROOFS: &[(&str, Proof)] = &[
    ("/hive.v1.MessageService/SendMessage", Proof::ProcessWhileAttached),
    ("/hive.v1.MessageService/StreamMessages", Proof::ProcessWhileAttached),
    ("/hive.v1.InboxService/ReceiveMessages", Proof::ProcessWhileAttached),
    ("/hive.v1.QuestionService/AskQuestion", Proof::ProcessWhileAttached),
    ("/hive.v1.QuestionService/AnswerQuestion", Proof::ProcessWhileAttached),
    ("/hive.v1.QuestionService/CancelQuestion", Proof::ProcessWhileAttached),
    ("/hive.v1.ReminderService/CreateReminder", Proof::ProcessWhileAttached),
    ("/hive.v1.ReminderService/CancelReminder", Proof::ProcessWhileAttached),
    ("/hive.v1.ScheduleService/FireSchedule", Proof::ProcessWhileAttached),
    ("/hive.v1.ScheduleService/CancelSchedule", Proof::ProcessWhileAttached),
    ("/hive.v1.LooseEndService/CancelLooseEnd", Proof::ProcessWhileAttached),
    ("/hive.v1.TurnService/Attach", Proof::Session),
    ("/hive.v1.TurnService/AckCommand", Proof::Session),
    ("/hive.v1.TurnService/BeginTurn", Proof::Session),
    ("/hive.v1.TurnService/RequestNextTurn", Proof::Process),
    ("/hive.v1.TurnService/Heartbeat", Proof::Session),
    ("/hive.v1.TurnService/ReportTurnEvents", Proof::Session),
    ("/hive.v1.TurnService/EndTurn", Proof::Session),
    ("/hive.v1.TurnService/ReportProblem", Proof::Session),
    ("/hive.v1.TurnService/ReportHarnessStatus", Proof::Session),
    ("/hive.v1.TurnService/Leave", Proof::Session),
    ("/hive.v1.TurnService/ServeLogin", Proof::Session),
    ("/hive.v1.StatusService/SetStatusText", Proof::ProcessWhileAttached),
    ("/hive.v1.LifecycleService/StartChild", Proof::ProcessWhileAttached),
    ("/hive.v1.LifecycleService/StopChild", Proof::ProcessWhileAttached),
    ("/hive.v1.LifecycleService/RestartChild", Proof::ProcessWhileAttached),
    ("/hive.v1.DiagnosticsService/GetLogs", Proof::ProcessWhileAttached),
    ("/hive.v1.DiagnosticsService/GetHostJournal", Proof::ProcessWhileAttached),
];

/// Every RPC of `hive.v1`: the broker's own table, with the proof that a call must show.
pub(crate) static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let rpcs = METHODS.iter().filter(|rpc| rpc.path.starts_with("/hive.v1."));
    let row = |rpc: &'static Method| {
        let proof = PROOFS.iter().find(|(path, _)| *path == rpc.path);
        Row {
            service: rpc.service().trim_start_matches("hive.v1."),
            method: rpc.name(),
            agent: rpc.agent,
            operator: rpc.operator,
            proof: proof.map_or(Proof::Socket, |(_, proof)| *proof),
            mutates: rpc.mutates,
        }
    };
    rpcs.map(row).collect()
});
