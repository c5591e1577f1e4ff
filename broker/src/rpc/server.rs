//! Serving: two routers on one engine, one for agents' sockets and one for the operator's.
//!
//! Invariant: a service that is not registered on a socket does not exist there; reflection on an
//! agent's socket does not even name it.

use std::io;
use std::sync::Arc;

use hive_proto::v1;
use hive_proto::v1::admin_service_server::AdminServiceServer;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::Router;
use tower::layer::util::Stack;

use super::Rpc;
use super::caller::CallerLayer;
use super::listen::Incoming;
use super::method::Method;
use super::reflection::{self, Late};

/// Largest header block of a request, in bytes; requests of the hive have a token and little else.
const HEADER_BYTES_MAX: u32 = 16 * 1024;
/// Most calls at once on one connection.
const CONCURRENT_CALLS_MAX: u32 = 128;
/// Most calls that a client may reset before they were handled; one more ends the connection.
const UNSEEN_RESETS_MAX: usize = 20;
/// Bytes of one request that may be in flight before the broker has read them.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// Most calls on one connection that the broker had to reset or refuse by the rules of HTTP/2; one
/// more ends the connection.
const OWN_RESETS_MAX: usize = 1024;

type Layered = Router<Stack<CallerLayer, tower::layer::util::Identity>>;

fn builder(rpc: &Rpc) -> Server<Stack<CallerLayer, tower::layer::util::Identity>> {
    Server::builder()
        .http2_max_header_list_size(HEADER_BYTES_MAX)
        .max_concurrent_streams(CONCURRENT_CALLS_MAX)
        .http2_max_pending_accept_reset_streams(Some(UNSEEN_RESETS_MAX))
        // The default has no limit at all.
        .http2_max_local_error_reset_streams(Some(OWN_RESETS_MAX))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .layer(CallerLayer::new(
            rpc.engine.limits().body_bytes_max,
            Arc::clone(rpc.engine.sandboxes()),
            rpc.streams.clone(),
        ))
}

/// Serves agents' sockets until `shutdown`, then waits for calls in flight.
pub async fn serve_agents(
    rpc: Rpc,
    health: tonic_health::server::HealthReporter,
    incoming: Incoming,
    shutdown: CancellationToken,
) -> io::Result<()> {
    use v1::{
        status_service_server as status, turn_service_server as turn, wake_service_server as wake,
    };
    let router = shared(builder(&rpc), &rpc, &health, |method| method.agent)
        .add_service(turn::TurnServiceServer::new(rpc.clone()))
        .add_service(wake::WakeServiceServer::new(rpc.clone()))
        .add_service(status::StatusServiceServer::new(rpc));
    serve(router, incoming, shutdown).await
}

/// Serves the operator's socket until `shutdown`, then waits for calls in flight.
pub async fn serve_operator(
    rpc: Rpc,
    health: tonic_health::server::HealthReporter,
    incoming: Incoming,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let router = shared(builder(&rpc), &rpc, &health, |method| method.operator)
        .add_service(AdminServiceServer::new(rpc));
    serve(router, incoming, shutdown).await
}

/// Adds the services of both sockets.
fn shared(
    mut server: Server<Stack<CallerLayer, tower::layer::util::Identity>>,
    rpc: &Rpc,
    health: &tonic_health::server::HealthReporter,
    is_served: fn(&Method) -> bool,
) -> Layered {
    use v1::{
        event_service_server as event, inbox_service_server as inbox,
        loose_end_service_server as loose_end, message_service_server as message,
        question_service_server as question, reminder_service_server as reminder,
        server_info_service_server as server_info, topology_service_server as topology,
        turn_history_service_server as history,
    };
    let health = tonic_health::server::HealthService::from_health_reporter(health.clone());
    server
        .add_service(tonic_health::pb::health_server::HealthServer::new(health))
        .add_service(Late::new(is_served, |set| reflection::builder(set).build_v1().ok()))
        // Python's grpcio-reflection still asks for the older version.
        .add_service(Late::new(is_served, |set| reflection::builder(set).build_v1alpha().ok()))
        .add_service(message::MessageServiceServer::new(rpc.clone()))
        .add_service(inbox::InboxServiceServer::new(rpc.clone()))
        .add_service(question::QuestionServiceServer::new(rpc.clone()))
        .add_service(reminder::ReminderServiceServer::new(rpc.clone()))
        .add_service(loose_end::LooseEndServiceServer::new(rpc.clone()))
        .add_service(history::TurnHistoryServiceServer::new(rpc.clone()))
        .add_service(topology::TopologyServiceServer::new(rpc.clone()))
        .add_service(event::EventServiceServer::new(rpc.clone()))
        .add_service(server_info::ServerInfoServiceServer::new(rpc.clone()))
}

async fn serve(router: Layered, incoming: Incoming, shutdown: CancellationToken) -> io::Result<()> {
    let served = router
        .serve_with_incoming_shutdown(ReceiverStream::new(incoming), shutdown.cancelled_owned());
    served.await.map_err(io::Error::other)
}
