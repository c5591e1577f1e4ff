//! Serving: two sets of services on one engine, one for agents' sockets and one for the operator's.
//!
//! Invariant: a service that is not registered on a socket does not exist there; reflection on an
//! agent's socket does not even name it.

use std::sync::Arc;

use hive_proto::v1;
use hive_proto::v1::admin_service_server::AdminServiceServer;
use hive_proto::v1::launcher_service_server::LauncherServiceServer;

use super::Rpc;
use super::caller::Calls;
pub use super::edge::serve::serve;
use super::edge::services::Services;
use super::method::Method;
use super::reflection::{self, Late};

/// Returns the calls of agents' sockets.
#[must_use]
pub fn agent_calls(rpc: &Rpc, health: &tonic_health::server::HealthReporter) -> Calls {
    use v1::{
        action_service_server as action, diagnostics_service_server as diagnostics,
        lifecycle_service_server as lifecycle, status_service_server as status,
        turn_service_server as turn, wake_service_server as wake,
    };
    let services = shared(rpc, health, |method| method.agent)
        .add(turn::TurnServiceServer::new(rpc.clone()))
        .add(wake::WakeServiceServer::new(rpc.clone()))
        .add(status::StatusServiceServer::new(rpc.clone()))
        .add(lifecycle::LifecycleServiceServer::new(rpc.clone()))
        .add(action::ActionServiceServer::new(rpc.clone()))
        .add(diagnostics::DiagnosticsServiceServer::new(rpc.clone()));
    calls(rpc, services)
}

/// Returns the calls of the operator's socket.
#[must_use]
pub fn operator_calls(rpc: &Rpc, health: &tonic_health::server::HealthReporter) -> Calls {
    let services = shared(rpc, health, |method| method.operator)
        .add(AdminServiceServer::new(rpc.clone()))
        .add(LauncherServiceServer::new(rpc.clone()));
    calls(rpc, services)
}

/// Adds the services of both sockets.
fn shared(
    rpc: &Rpc,
    health: &tonic_health::server::HealthReporter,
    is_served: fn(&Method) -> bool,
) -> Services {
    use v1::{
        event_service_server as event, inbox_service_server as inbox,
        loose_end_service_server as loose_end, message_service_server as message,
        question_service_server as question, reminder_service_server as reminder,
        schedule_service_server as schedule, server_info_service_server as server_info,
        topology_service_server as topology, turn_history_service_server as history,
    };
    let health = tonic_health::server::HealthService::from_health_reporter(health.clone());
    Services::default()
        .add(tonic_health::pb::health_server::HealthServer::new(health))
        .add(Late::new(is_served, |set| reflection::builder(set).build_v1().ok()))
        // Python's grpcio-reflection still asks for the older version.
        .add(Late::new(is_served, |set| reflection::builder(set).build_v1alpha().ok()))
        .add(message::MessageServiceServer::new(rpc.clone()))
        .add(inbox::InboxServiceServer::new(rpc.clone()))
        .add(question::QuestionServiceServer::new(rpc.clone()))
        .add(reminder::ReminderServiceServer::new(rpc.clone()))
        .add(schedule::ScheduleServiceServer::new(rpc.clone()))
        .add(loose_end::LooseEndServiceServer::new(rpc.clone()))
        .add(history::TurnHistoryServiceServer::new(rpc.clone()))
        .add(topology::TopologyServiceServer::new(rpc.clone()))
        .add(event::EventServiceServer::new(rpc.clone()))
        .add(server_info::ServerInfoServiceServer::new(rpc.clone()))
}

fn calls(rpc: &Rpc, services: Services) -> Calls {
    let engine = &rpc.engine;
    let body_bytes_max = engine.limits().body_bytes_max;
    let (sandboxes, tasks) = (Arc::clone(engine.sandboxes()), rpc.streams.clone());
    Calls::new(services, body_bytes_max, sandboxes, tasks)
}
