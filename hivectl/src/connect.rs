//! Reaching the broker: which socket, how long to wait, and the one retry that a request id makes
//! safe.
//!
//! Invariant: a mutation is repeated only under the request id of the first try, and only when the
//! transport was lost; an answer is final.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hive_proto::connect::connect_as;
use hive_proto::handshake::Channel;
use hive_proto::handshake::Program;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::event_service_client::EventServiceClient;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::launcher_service_client::LauncherServiceClient;
use hive_proto::v1::loose_end_service_client::LooseEndServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::schedule_service_client::ScheduleServiceClient;
use hive_proto::v1::server_info_service_client::ServerInfoServiceClient;
use hive_proto::v1::topology_service_client::TopologyServiceClient;
use hive_proto::v1::turn_history_service_client::TurnHistoryServiceClient;
use hive_proto::v1::{
    Command, DeliveryKey, DropDeliveryRequest, GetServerInfoRequest, RedriveDeliveryRequest,
    ReleaseDeliveryRequest, SendCommandRequest,
};
use tonic::{Request, Response, Status};

use crate::error::Failure;

/// This program, for the handshake.
pub(crate) const PROGRAM: Program = Program { name: "hivectl", version: env!("CARGO_PKG_VERSION") };

/// The operator sockets of a hive in the current directory, and of the host's hive.
const LOCAL_SOCKET: &str = ".hive/run/hived.sock";
pub(crate) const HOST_SOCKET: &str = "/run/hive/hived.sock";

/// Returns the operator socket: as given, else of `HIVE_RUNTIME_DIR`, else of the current
/// directory, else the host's.
pub(crate) fn socket(given: Option<&Path>, runtime_dir: Option<PathBuf>, here: &Path) -> PathBuf {
    if let Some(given) = given {
        return given.to_path_buf();
    }
    if let Some(runtime_dir) = runtime_dir {
        return runtime_dir.join("hived.sock");
    }
    // A relative path stays short, however deep the directory is.
    if here.join(LOCAL_SOCKET).exists() {
        PathBuf::from(LOCAL_SOCKET)
    } else {
        PathBuf::from(HOST_SOCKET)
    }
}

pub(crate) type Admin = AdminServiceClient<Channel>;
pub(crate) type Inbox = InboxServiceClient<Channel>;
pub(crate) type Messages = MessageServiceClient<Channel>;
pub(crate) type Questions = QuestionServiceClient<Channel>;
pub(crate) type Reminders = ReminderServiceClient<Channel>;
pub(crate) type Schedules = ScheduleServiceClient<Channel>;

#[derive(Clone, Debug)]
pub(crate) struct Broker {
    channel: Channel,
    timeout: Duration,
}

impl Broker {
    pub(crate) async fn connect(path: &Path, timeout: Duration) -> Result<Self, Failure> {
        Ok(Self { channel: within(timeout, connect_as(PROGRAM, path)).await??, timeout })
    }

    pub(crate) fn admin(&self) -> Admin {
        Admin::new(self.channel.clone())
    }

    pub(crate) fn events(&self) -> EventServiceClient<Channel> {
        EventServiceClient::new(self.channel.clone())
    }

    pub(crate) fn inbox(&self) -> Inbox {
        Inbox::new(self.channel.clone())
    }

    pub(crate) fn launcher(&self) -> LauncherServiceClient<Channel> {
        LauncherServiceClient::new(self.channel.clone())
    }

    pub(crate) fn loose_ends(&self) -> LooseEndServiceClient<Channel> {
        LooseEndServiceClient::new(self.channel.clone())
    }

    pub(crate) fn messages(&self) -> Messages {
        Messages::new(self.channel.clone())
    }

    pub(crate) fn questions(&self) -> Questions {
        Questions::new(self.channel.clone())
    }

    pub(crate) fn reminders(&self) -> Reminders {
        Reminders::new(self.channel.clone())
    }

    pub(crate) fn schedules(&self) -> Schedules {
        Schedules::new(self.channel.clone())
    }

    /// Returns the id of the present event log.
    pub(crate) async fn log_id(&self) -> Result<String, Failure> {
        let mut info = ServerInfoServiceClient::new(self.channel.clone());
        Ok(self.read(info.get_server_info(GetServerInfoRequest::default())).await?.log_id)
    }

    pub(crate) fn topology(&self) -> TopologyServiceClient<Channel> {
        TopologyServiceClient::new(self.channel.clone())
    }

    pub(crate) fn turns(&self) -> TurnHistoryServiceClient<Channel> {
        TurnHistoryServiceClient::new(self.channel.clone())
    }

    /// Waits for an answer that changes nothing.
    pub(crate) async fn read<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Failure> {
        Ok(within(self.timeout, call).await??.into_inner())
    }

    /// Makes a change, once: the request, with its id, is sent again if the transport was lost.
    pub(crate) async fn change<C: Clone, Q: Clone, T>(
        &self,
        client: C,
        request: Q,
        call: impl AsyncFn(&mut C, Q) -> Result<Response<T>, Status>,
    ) -> Result<T, Failure> {
        let once = async || {
            let seconds = self.timeout.as_secs_f64();
            tokio::time::timeout(self.timeout, call(&mut client.clone(), request.clone()))
                .await
                .map_err(|_| Failure::TimedOut { seconds, mutation: true })
        };
        let answer = match once().await? {
            Err(status) if hive_proto::status::is_of_connection(&status) => once().await?,
            answer => answer,
        };
        Ok(answer?.into_inner())
    }
}

/// A settlement of a dead letter or a held delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    Drop,
    Redrive,
    Release,
}

impl Settlement {
    /// Returns the word for a delivery to which this was done.
    pub(crate) fn done(self) -> &'static str {
        match self {
            Self::Drop => "dropped",
            Self::Redrive => "redriven",
            Self::Release => "released",
        }
    }
}

impl Broker {
    pub(crate) async fn settle(
        &self,
        settlement: Settlement,
        request_id: String,
        key: DeliveryKey,
    ) -> Result<(), Failure> {
        let (admin, key) = (self.admin(), Some(key));
        match settlement {
            Settlement::Drop => {
                let request = DropDeliveryRequest { request_id, key };
                self.change(admin, request, Admin::drop_delivery).await.map(drop)
            }
            Settlement::Redrive => {
                let request = RedriveDeliveryRequest { request_id, key };
                self.change(admin, request, Admin::redrive_delivery).await.map(drop)
            }
            Settlement::Release => {
                let request = ReleaseDeliveryRequest { request_id, key };
                self.change(admin, request, Admin::release_delivery).await.map(drop)
            }
        }
    }

    /// Gives a harness a command; returns its id.
    pub(crate) async fn command(
        &self,
        request_id: String,
        agent: String,
        order: Order,
    ) -> Result<u64, Failure> {
        let command = Some(Command { id: 0, create_time: None, command: Some(order) });
        let request = SendCommandRequest { request_id, agent, command };
        Ok(self.change(self.admin(), request, Admin::send_command).await?.command_id)
    }
}

/// Returns a request in the span that the environment names, as programs that start others do
/// (`TRACEPARENT`). The broker ignores a text that is no trace context.
pub(crate) fn traced<T>(message: T) -> Request<T> {
    let request = Request::new(message);
    match std::env::var(hive_proto::TRACEPARENT_ENV) {
        Ok(traceparent) => hive_proto::in_trace(request, &traceparent),
        Err(_) => request,
    }
}

/// Returns a part of an answer that a broker always gives.
pub(crate) fn require<T, V: From<T>>(part: Option<T>, field: &'static str) -> Result<V, Failure> {
    Ok(part.ok_or(Failure::Incomplete { field })?.into())
}

/// Waits for an answer, as long as it takes or at most as long as --timeout states.
pub(crate) async fn patiently<T>(
    patience: Option<Duration>,
    answer: impl Future<Output = T>,
) -> Result<T, Failure> {
    match patience {
        Some(patience) => within(patience, answer).await,
        None => Ok(answer.await),
    }
}

/// Waits for an answer to a call that changes nothing, at most this long.
pub(crate) async fn within<T>(
    timeout: Duration,
    answer: impl Future<Output = T>,
) -> Result<T, Failure> {
    let timed_out = |_| Failure::TimedOut { seconds: timeout.as_secs_f64(), mutation: false };
    tokio::time::timeout(timeout, answer).await.map_err(timed_out)
}

pub(crate) fn request_id() -> String {
    let mut random = [0_u8; 16];
    getrandom::fill(&mut random).expect("the kernel gives random numbers");
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("hivectl-{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_searched_in_the_documented_order() {
        let here = tempfile::tempdir().expect("a directory");
        let run = Some(PathBuf::from("/r"));
        assert_eq!(socket(Some(Path::new("/s")), run.clone(), here.path()), Path::new("/s"));
        assert_eq!(socket(None, run, here.path()), Path::new("/r/hived.sock"));
        assert_eq!(socket(None, None, here.path()), Path::new("/run/hive/hived.sock"));
        std::fs::create_dir_all(here.path().join(".hive/run")).expect("a directory");
        std::fs::write(here.path().join(LOCAL_SOCKET), "").expect("a file");
        assert_eq!(socket(None, None, here.path()), Path::new(".hive/run/hived.sock"));
    }

    #[test]
    fn request_ids_do_not_repeat() {
        assert_ne!(request_id(), request_id());
        assert!(request_id().len() <= hive_core::limits::REQUEST_ID_CHARS_MAX);
    }
}
