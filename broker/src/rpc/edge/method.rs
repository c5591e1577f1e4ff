//! Methods: the properties of each RPC that the broker uses before it runs the handler.
//!
//! One row per RPC: the sockets that serve it, the programs that may call it, when its permit to
//! work is released, how long its messages may be, and whether it changes the database. The layer
//! in front of the handlers, reflection, the documentation and the tests of authority use it.
//! Invariant: the table and the descriptors name the same RPCs (a test compares them). A path that
//! is not in the table is treated as the strictest row would be, until it is refused.

use std::sync::LazyLock;

use Class::{ClientStream, Job, LongPoll, Page, Short, Stream, Watch};
use Size::{Answer, Body, List, Plain, Question};

use hive_core::name::nearest;

use super::conn::Owner;
use crate::engine::Refusal;
use crate::engine::sandboxes::Scope;
use crate::map::Map;

/// The part of an unknown path that its refusal shows, in characters.
const SHOWN_CHARS: usize = 128;

/// When a call's permit to work is released. A permit is also released after
/// [`super::fair::WORK_MAX`], because a stalled disk must not keep an agent's other calls waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// With the response.
    Short,
    /// With the response. The next page of the same agent waits until this response has been read,
    /// or until a timeout.
    Page,
    /// When its waiter is pending.
    LongPoll,
    /// When the stream of responses is open.
    Stream,
    /// With the same rule as a page, because the stream begins with one.
    Watch,
    /// When the first message of the client has been accepted.
    ClientStream,
    /// When it has been admitted; it may run for minutes.
    Job,
}

/// The size limit of a request message on an agent's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The limit for a request without long fields.
    Plain,
    /// A body, and room for the other fields.
    Body,
    /// A question and its options.
    Question,
    /// An answer.
    Answer,
    /// A list of entries.
    List,
}

/// An RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its path, as in `/hive.v1.WakeService/Wake`.
    pub path: &'static str,
    /// Whether agents' sockets serve it.
    pub agent: bool,
    /// Whether the operator's socket serves it.
    pub operator: bool,
    /// The scope that a program needs to call it on an agent's socket. With [`Scope::Everything`]
    /// only the agent's own programs may call it, with [`Scope::Limited`] also programs beside it.
    pub scope: Scope,
    /// When its permit is released.
    pub class: Class,
    /// The size limit of its messages.
    pub size: Size,
    /// Whether it changes the database, or ends the broker.
    pub mutates: bool,
}

impl Method {
    const fn new(path: &'static str, class: Class) -> Self {
        Self {
            path,
            agent: true,
            operator: true,
            scope: Scope::Everything,
            class,
            size: Plain,
            mutates: false,
        }
    }

    const fn agent_only(self) -> Self {
        Self { operator: false, ..self }
    }

    const fn operator_only(self) -> Self {
        Self { agent: false, ..self }
    }

    const fn mutating(self) -> Self {
        Self { mutates: true, ..self }
    }

    const fn sized(self, size: Size) -> Self {
        Self { size, ..self }
    }

    /// Allows programs beside the agent, too.
    const fn beside(self) -> Self {
        Self { scope: Scope::Limited, ..self }
    }

    /// Returns its service, as in `hive.v1.WakeService`.
    #[must_use]
    pub fn service(&self) -> &'static str {
        self.path[1..].split('/').next().unwrap_or_default()
    }

    /// Returns its name, as in `Wake`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns its class on a socket of this owner: the pages of the operator are not limited.
    #[must_use]
    pub fn class_on(&self, owner: &Owner) -> Class {
        match (self.class, owner) {
            (Page, Owner::Operator) => Short,
            (Watch, Owner::Operator) => Stream,
            (class, _) => class,
        }
    }

    /// Returns whether a socket of this owner serves it.
    #[must_use]
    pub fn is_served_to(&self, owner: &Owner) -> bool {
        match owner {
            Owner::Agent(_) => self.agent,
            Owner::Operator => self.operator,
        }
    }

    /// Refuses a call of this path, whose row this is, if a socket of this owner does not serve it;
    /// the refusal names the other socket, or the nearest name.
    pub(in crate::rpc) fn check_served(&self, path: &str, owner: &Owner) -> Result<(), Refusal> {
        if self.is_served_to(owner) && !self.path.is_empty() {
            return Ok(());
        }
        let method: String = path.trim_start_matches('/').chars().take(SHOWN_CHARS).collect();
        let (service, name) = method.split_once('/').unwrap_or((&method, ""));
        let of_service = || METHODS.iter().filter(|method| method.service() == service);
        let here = |method: &&Method| method.is_served_to(owner);
        if of_service().next().is_some() && !of_service().any(|method| here(&method)) {
            let other = match owner {
                Owner::Agent(_) => "operator",
                Owner::Operator => "agent",
            };
            return Err(Refusal::OtherSocket { method, other });
        }
        let names: Vec<&str> = of_service().map(Method::name).collect();
        let services: Vec<&str> = METHODS.iter().filter(here).map(Method::service).collect();
        let near = if names.is_empty() { nearest(service, services) } else { nearest(name, names) };
        let nearest = near.first().map(|name| (*name).to_owned());
        Err(Refusal::NoSuchMethod { method, nearest })
    }
}

/// Returns the row of a path; for an unknown one the strictest, which [`Method::check_served`]
/// refuses.
pub(in crate::rpc) fn of_path(path: &str) -> Method {
    static BY_PATH: LazyLock<Map<&str, Method>> =
        LazyLock::new(|| METHODS.iter().map(|method| (method.path, *method)).collect());
    BY_PATH.get(path).copied().unwrap_or(const { Method::new("", Short) })
}

const fn both(path: &'static str, class: Class) -> Method {
    Method::new(path, class)
}

const fn agent(path: &'static str, class: Class) -> Method {
    Method::new(path, class).agent_only()
}

const fn operator(path: &'static str, class: Class) -> Method {
    Method::new(path, class).operator_only()
}

/// Every RPC.
#[rustfmt::skip]
pub const METHODS: &[Method] = &[
    both("/hive.v1.MessageService/SendMessage", Short).mutating().sized(Body),
    both("/hive.v1.MessageService/GetMessage", Short),
    both("/hive.v1.MessageService/ListMessages", Page),
    both("/hive.v1.MessageService/ListRecipients", Page),
    both("/hive.v1.MessageService/SearchMessages", Page),
    both("/hive.v1.MessageService/StreamMessages", ClientStream).mutating().sized(Body),
    both("/hive.v1.InboxService/ReceiveMessages", LongPoll).mutating().sized(List),
    both("/hive.v1.InboxService/StreamDeliveries", ClientStream).mutating().sized(List),
    both("/hive.v1.InboxService/SettleDeliveries", Short).mutating().sized(List),
    both("/hive.v1.InboxService/AckDelivery", Short).mutating(),
    both("/hive.v1.InboxService/NackDelivery", Short).mutating(),
    both("/hive.v1.InboxService/ExtendLease", Short).mutating(),
    both("/hive.v1.InboxService/GetInboxStatus", Short),
    both("/hive.v1.InboxService/ListDeliveries", Page),
    both("/hive.v1.QuestionService/AskQuestion", LongPoll).mutating().sized(Question),
    both("/hive.v1.QuestionService/AnswerQuestion", Short).mutating().sized(Answer),
    both("/hive.v1.QuestionService/CancelQuestion", Short).mutating(),
    both("/hive.v1.QuestionService/GetQuestion", Short),
    both("/hive.v1.QuestionService/ListQuestions", Page),
    both("/hive.v1.QuestionService/WatchQuestions", Watch),
    both("/hive.v1.ReminderService/CreateReminder", Short).mutating().sized(Body),
    both("/hive.v1.ReminderService/CancelReminder", Short).mutating(),
    both("/hive.v1.ReminderService/ListReminders", Page),
    both("/hive.v1.ScheduleService/FireSchedule", Short).mutating(),
    both("/hive.v1.ScheduleService/CancelSchedule", Short).mutating(),
    both("/hive.v1.ScheduleService/ListSchedules", Page),
    both("/hive.v1.LooseEndService/ListLooseEnds", Page),
    both("/hive.v1.LooseEndService/CancelLooseEnd", Short).mutating(),
    both("/hive.v1.LooseEndService/ReplaceLooseEnds", Short).mutating().sized(List).beside(),
    agent("/hive.v1.TurnService/Attach", Stream).mutating(),
    agent("/hive.v1.TurnService/AckCommand", Short).mutating(),
    agent("/hive.v1.TurnService/BeginTurn", LongPoll).mutating(),
    agent("/hive.v1.TurnService/RequestNextTurn", Short).mutating(),
    agent("/hive.v1.TurnService/Heartbeat", Short),
    agent("/hive.v1.TurnService/ReportTurnEvents", ClientStream).sized(List),
    agent("/hive.v1.TurnService/EndTurn", Short).mutating().sized(List),
    agent("/hive.v1.TurnService/ReportProblem", Short).mutating(),
    agent("/hive.v1.TurnService/ReportHarnessStatus", Short).mutating(),
    agent("/hive.v1.TurnService/Leave", Short).mutating(),
    agent("/hive.v1.TurnService/ServeLogin", ClientStream),
    both("/hive.v1.TurnHistoryService/ListTurns", Page),
    both("/hive.v1.TurnHistoryService/GetTurn", Short),
    both("/hive.v1.TurnHistoryService/WatchTurn", Watch),
    both("/hive.v1.TurnHistoryService/GetTurnStats", Page),
    agent("/hive.v1.WakeService/Wake", Short).mutating().sized(Body).beside(),
    both("/hive.v1.TopologyService/GetSelf", Short),
    both("/hive.v1.TopologyService/GetAgent", Short),
    both("/hive.v1.TopologyService/ListAgents", Page),
    both("/hive.v1.TopologyService/ListChildren", Page),
    both("/hive.v1.TopologyService/FindAgents", Page),
    both("/hive.v1.TopologyService/WatchAgents", Watch),
    agent("/hive.v1.StatusService/SetStatusText", Short).mutating(),
    both("/hive.v1.EventService/ListEvents", Page),
    both("/hive.v1.EventService/WatchEvents", Watch),
    agent("/hive.v1.LifecycleService/StartChild", Short).mutating(),
    agent("/hive.v1.LifecycleService/StopChild", Short).mutating(),
    agent("/hive.v1.LifecycleService/RestartChild", Short).mutating(),
    agent("/hive.v1.ActionService/GetActions", Short),
    agent("/hive.v1.DiagnosticsService/GetLogs", LongPoll).mutating(),
    agent("/hive.v1.DiagnosticsService/GetHostJournal", LongPoll).mutating(),
    operator("/hive.v1.LauncherService/Launch", Stream),
    operator("/hive.v1.LauncherService/ReportHarness", Short).mutating(),
    operator("/hive.v1.LauncherService/AnswerLogs", Short),
    operator("/hive.v1.AdminService/CreateAgent", Short).mutating(),
    operator("/hive.v1.AdminService/RetireAgent", Short).mutating(),
    operator("/hive.v1.AdminService/StopAgent", Short).mutating(),
    operator("/hive.v1.AdminService/StartAgent", Short).mutating(),
    operator("/hive.v1.AdminService/ListPurges", Page),
    operator("/hive.v1.AdminService/FinishPurge", Short).mutating(),
    operator("/hive.v1.AdminService/SetParent", Short).mutating(),
    operator("/hive.v1.AdminService/SetPolicy", Short).mutating(),
    operator("/hive.v1.AdminService/ListDeadLetters", Page),
    operator("/hive.v1.AdminService/RedriveDelivery", Short).mutating(),
    operator("/hive.v1.AdminService/DropDelivery", Short).mutating(),
    operator("/hive.v1.AdminService/ReleaseDelivery", Short).mutating(),
    operator("/hive.v1.AdminService/SendCommand", Short).mutating(),
    operator("/hive.v1.AdminService/Login", ClientStream).mutating(),
    operator("/hive.v1.AdminService/GetBrokerStatus", Short),
    operator("/hive.v1.AdminService/Backup", Job),
    operator("/hive.v1.AdminService/CheckIntegrity", Job),
    operator("/hive.v1.AdminService/PauseSchedule", Short).mutating(),
    operator("/hive.v1.AdminService/ResumeSchedule", Short).mutating(),
    operator("/hive.v1.AdminService/Drain", Job).mutating(),
    both("/hive.v1.ServerInfoService/GetServerInfo", Short).beside(),
    both("/grpc.health.v1.Health/Check", Short).beside(),
    both("/grpc.health.v1.Health/Watch", Stream).beside(),
    both("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ClientStream),
    both("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", ClientStream),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    /// Returns the RPCs of all descriptors: path, whether the client streams, and whether the
    /// server does.
    fn described() -> BTreeMap<String, (bool, bool)> {
        let mut found = BTreeMap::new();
        for set in [
            hive_proto::FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ] {
            for file in FileDescriptorSet::decode(set).expect("descriptors").file {
                for service in &file.service {
                    for rpc in &service.method {
                        let (service, name) = (service.name(), rpc.name());
                        let path = format!("/{}.{service}/{name}", file.package());
                        found.insert(path, (rpc.client_streaming(), rpc.server_streaming()));
                    }
                }
            }
        }
        found
    }

    #[test]
    fn the_table_names_each_rpc_once_with_its_streams() {
        let mut described = described();
        for method in METHODS {
            let (client, server) = described
                .remove(method.path)
                .unwrap_or_else(|| panic!("{} is no RPC, or is listed twice", method.path));
            assert_eq!(method.class == ClientStream, client, "{}", method.path);
            let streams = matches!(method.class, ClientStream | Stream | Watch | Job);
            assert!(streams || !server, "{}", method.path);
        }
        assert!(described.is_empty(), "not in the table: {described:?}");
    }

    #[test]
    fn an_operators_method_is_for_no_program_of_an_agent() {
        for method in METHODS {
            let is_operators =
                ["hive.v1.AdminService", "hive.v1.LauncherService"].contains(&method.service());
            assert_eq!(!method.agent, is_operators, "{}", method.path);
            assert!(method.agent || method.scope == Scope::Everything, "{}", method.path);
            assert!(method.agent || method.operator, "{}", method.path);
        }
    }

    #[test]
    fn a_program_beside_an_agent_may_call_little() {
        let allowed: Vec<&str> = METHODS
            .iter()
            .filter(|method| method.scope == Scope::Limited)
            .map(Method::name)
            .collect();
        assert_eq!(allowed, ["ReplaceLooseEnds", "Wake", "GetServerInfo", "Check", "Watch"]);
        for unknown in ["", "/hive.v1.WakeService/wake", "Wake"] {
            assert_eq!(of_path(unknown).scope, Scope::Everything, "{unknown}");
        }
    }
}
