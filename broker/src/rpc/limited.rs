//! What each RPC of an agent's socket needs: the agent's own programs, or any program that may use
//! the socket at all.
//!
//! A program beside an agent is one in a shell task's own pid namespace, or one on the host.
//! Invariant: each RPC that an agent's socket serves is in the table (a test compares it with the
//! contract). What is not, as a path that does not exist, needs the agent's own programs.

use crate::engine::sandboxes::Scope::{self, Everything, Limited};

/// Each RPC with the least scope that may call it.
const RPCS: [(&str, Scope); 51] = [
    ("/hive.v1.WakeService/Wake", Limited),
    ("/hive.v1.LooseEndService/ReplaceLooseEnds", Limited),
    ("/hive.v1.ServerInfoService/GetServerInfo", Limited),
    ("/grpc.health.v1.Health/Check", Limited),
    ("/grpc.health.v1.Health/Watch", Limited),
    ("/hive.v1.MessageService/SendMessage", Everything),
    ("/hive.v1.MessageService/GetMessage", Everything),
    ("/hive.v1.MessageService/ListMessages", Everything),
    ("/hive.v1.MessageService/SearchMessages", Everything),
    ("/hive.v1.InboxService/ReceiveMessages", Everything),
    ("/hive.v1.InboxService/AckDelivery", Everything),
    ("/hive.v1.InboxService/NackDelivery", Everything),
    ("/hive.v1.InboxService/ExtendLease", Everything),
    ("/hive.v1.InboxService/GetInboxStatus", Everything),
    ("/hive.v1.InboxService/ListDeliveries", Everything),
    ("/hive.v1.QuestionService/AskQuestion", Everything),
    ("/hive.v1.QuestionService/AnswerQuestion", Everything),
    ("/hive.v1.QuestionService/CancelQuestion", Everything),
    ("/hive.v1.QuestionService/GetQuestion", Everything),
    ("/hive.v1.QuestionService/ListQuestions", Everything),
    ("/hive.v1.QuestionService/WatchQuestions", Everything),
    ("/hive.v1.ReminderService/CreateReminder", Everything),
    ("/hive.v1.ReminderService/CancelReminder", Everything),
    ("/hive.v1.ReminderService/ListReminders", Everything),
    ("/hive.v1.LooseEndService/ListLooseEnds", Everything),
    ("/hive.v1.LooseEndService/CancelLooseEnd", Everything),
    ("/hive.v1.TurnService/Attach", Everything),
    ("/hive.v1.TurnService/AckCommand", Everything),
    ("/hive.v1.TurnService/BeginTurn", Everything),
    ("/hive.v1.TurnService/OpenTurn", Everything),
    ("/hive.v1.TurnService/RequestNextTurn", Everything),
    ("/hive.v1.TurnService/Heartbeat", Everything),
    ("/hive.v1.TurnService/ReportTurnEvents", Everything),
    ("/hive.v1.TurnService/EndTurn", Everything),
    ("/hive.v1.TurnService/ReportProblem", Everything),
    ("/hive.v1.TurnService/ServeLogin", Everything),
    ("/hive.v1.TurnHistoryService/ListTurns", Everything),
    ("/hive.v1.TurnHistoryService/GetTurn", Everything),
    ("/hive.v1.TurnHistoryService/WatchTurn", Everything),
    ("/hive.v1.TurnHistoryService/GetTurnStats", Everything),
    ("/hive.v1.TopologyService/GetSelf", Everything),
    ("/hive.v1.TopologyService/GetAgent", Everything),
    ("/hive.v1.TopologyService/ListAgents", Everything),
    ("/hive.v1.TopologyService/ListChildren", Everything),
    ("/hive.v1.TopologyService/FindAgents", Everything),
    ("/hive.v1.StatusService/SetStatusText", Everything),
    ("/hive.v1.StatusService/ReportHarnessStatus", Everything),
    ("/hive.v1.EventService/ListEvents", Everything),
    ("/hive.v1.EventService/WatchEvents", Everything),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Everything),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Everything),
];

/// Returns whether a connection of this scope may make this call.
pub(super) fn may_call(scope: Scope, path: &str) -> bool {
    scope == Everything || RPCS.contains(&(path, Limited))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hive_proto::FILE_DESCRIPTOR_SET;
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;
    use crate::rpc::server::OPERATOR_FILES;

    #[test]
    fn each_rpc_of_an_agents_socket_is_in_the_table_once() {
        let mut served = BTreeSet::new();
        let reflection = tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET;
        let reflection_alpha = tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET;
        for set in [
            FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            reflection,
            reflection_alpha,
        ] {
            let set = FileDescriptorSet::decode(set).expect("descriptors");
            for file in set.file.iter().filter(|file| !OPERATOR_FILES.contains(&file.name())) {
                for service in &file.service {
                    let path =
                        |name: &str| format!("/{}.{}/{name}", file.package(), service.name());
                    served.extend(service.method.iter().map(|method| path(method.name())));
                }
            }
        }
        let listed: BTreeSet<String> = RPCS.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(listed, served);
        assert_eq!(listed.len(), RPCS.len(), "none is listed twice");
    }

    #[test]
    fn a_program_beside_an_agent_may_call_little() {
        let allowed: Vec<&str> =
            RPCS.iter().map(|(path, _)| *path).filter(|path| may_call(Limited, path)).collect();
        assert_eq!(
            allowed,
            [
                "/hive.v1.WakeService/Wake",
                "/hive.v1.LooseEndService/ReplaceLooseEnds",
                "/hive.v1.ServerInfoService/GetServerInfo",
                "/grpc.health.v1.Health/Check",
                "/grpc.health.v1.Health/Watch",
            ]
        );
        assert!(RPCS.iter().all(|(path, _)| may_call(Everything, path)));
        assert!(!may_call(Limited, "/hive.v1.WakeService/wake") && !may_call(Limited, ""));
    }
}
