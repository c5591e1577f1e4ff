//! The service that claude's MCP server `bash` calls: decode, one call of the supervisor, encode.
//!
//! Invariant: only the agent's own user can reach the socket.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hive_core::limits::{REQUEST_ID_CHARS_MAX, SOCKET_PATH_BYTES_MAX};
use hive_core::reason::Reason;
use hive_proto::convert::time::timestamp;
use hive_proto::harness_v1 as wire;
use hive_proto::harness_v1::task_service_server::{TaskService, TaskServiceServer};
use hive_proto::status::{bad_field, refusal};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use crate::boot::file;
use crate::exit;
use crate::task::output::Summary;
use crate::task::record::{How, Record};
use crate::task::supervisor::{Inner, TaskRefusal, TaskRequest, TaskSnapshot};

/// Longest command, in bytes; with its end it must be shorter than Linux's limit for one argument.
pub const COMMAND_BYTES_MAX: usize = 128 * 1024 - 1;
/// Longest wait for the end of a task that is started.
pub const RUN_WAIT_MAX: Duration = Duration::from_secs(30);
/// Longest wait for the end of a task in a status call.
pub const STATUS_WAIT_MAX: Duration = Duration::from_secs(180);

/// Binds the socket. Its previous owner is gone, because we have the lock on the store.
pub(crate) fn listen(path: &Path) -> io::Result<UnixListener> {
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_BYTES_MAX {
        let problem = format!(
            "the path has {length} bytes, more than the {SOCKET_PATH_BYTES_MAX} that Linux allows"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    file::remove(path)?;
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves until the tasks have to end.
pub(super) async fn serve(listener: UnixListener, inner: Arc<Inner>) {
    let mut stop = inner.stop.subscribe();
    let stopped = async move {
        // The sender lives as long as the service.
        let _ = stop.wait_for(|stop| *stop).await;
    };
    let service = TaskServiceServer::new(Service { inner });
    let server = tonic::transport::Server::builder().add_service(service);
    if let Err(error) =
        server.serve_with_incoming_shutdown(UnixListenerStream::new(listener), stopped).await
    {
        tracing::error!(%error, "shell tasks cannot be asked for any more");
    }
}

#[derive(Debug)]
struct Service {
    inner: Arc<Inner>,
}

#[tonic::async_trait]
impl TaskService for Service {
    async fn run_task(
        &self,
        request: Request<wire::RunTaskRequest>,
    ) -> Result<Response<wire::RunTaskResponse>, Status> {
        let wire::RunTaskRequest { request_id, command, timeout, wait } = request.into_inner();
        if request_id.is_empty() || request_id.chars().count() > REQUEST_ID_CHARS_MAX {
            return Err(bad_field(
                "request_id",
                format!("must have 1 to {REQUEST_ID_CHARS_MAX} characters"),
            ));
        }
        if command.trim().is_empty() {
            return Err(bad_field("command", "must not be empty"));
        }
        if command.len() > COMMAND_BYTES_MAX {
            let problem = format!(
                "has {} bytes, more than {COMMAND_BYTES_MAX}: write it to a file and run that",
                command.len()
            );
            return Err(bad_field("command", problem));
        }
        if command.contains('\0') {
            return Err(bad_field("command", "must not contain a NUL character"));
        }
        let config = self.inner.config();
        let settings = &config.settings;
        let timeout = match timeout {
            Some(timeout) => span("timeout", timeout, settings.timeout_max)?,
            None => settings.timeout,
        };
        if timeout < Duration::from_secs(1) {
            return Err(bad_field("timeout", "must be at least 1 s"));
        }
        let wait = wait_for(wait, RUN_WAIT_MAX)?;
        let waiter =
            self.inner.begin(TaskRequest { request_id, command, timeout }).map_err(status)?;
        Ok(Response::new(wire::RunTaskResponse { task: waiter.snapshot(wait).await.map(task) }))
    }

    async fn get_task(
        &self,
        request: Request<wire::GetTaskRequest>,
    ) -> Result<Response<wire::GetTaskResponse>, Status> {
        let wire::GetTaskRequest { id, wait } = request.into_inner();
        let wait = wait_for(wait, STATUS_WAIT_MAX)?;
        let waiter = self.inner.find(id).map_err(status)?;
        Ok(Response::new(wire::GetTaskResponse { task: waiter.snapshot(wait).await.map(task) }))
    }
}

fn wait_for(wait: Option<prost_types::Duration>, max: Duration) -> Result<Duration, Status> {
    wait.map_or(Ok(Duration::ZERO), |wait| span("wait", wait, max))
}

fn span(field: &str, span: prost_types::Duration, max: Duration) -> Result<Duration, Status> {
    let span = Duration::try_from(span).ok().filter(|span| *span <= max);
    span.ok_or_else(|| bad_field(field, format!("must be 0 to {} s", max.as_secs())))
}

/// Converts a refusal for the wire.
fn status(cause: TaskRefusal) -> Status {
    let chain = exit::chain(&cause);
    let sentence = if chain.is_empty() { cause.to_string() } else { format!("{cause}: {chain}") };
    match cause {
        TaskRefusal::NotAllowed => refusal(Reason::CapabilityMissing, sentence, None),
        TaskRefusal::RequestIdReused(_) => refusal(Reason::RequestIdReused, sentence, None),
        TaskRefusal::Closing => Status::unavailable(sentence),
        TaskRefusal::TooMany { .. } => Status::resource_exhausted(sentence),
        TaskRefusal::NotFound(_) => Status::not_found(sentence),
        TaskRefusal::Bash { .. } | TaskRefusal::Disk { .. } => {
            Status::failed_precondition(sentence)
        }
    }
}

/// Converts a task for the wire.
fn task(snapshot: TaskSnapshot) -> wire::Task {
    let TaskSnapshot { record, running_output, output_path, is_sandboxed } = snapshot;
    let Record {
        id,
        request_id: _,
        command,
        mark: _,
        boot_id: _,
        root,
        start_time,
        timeout,
        end,
        is_reported: _,
    } = record;
    let (state, exit_code, signal) = match end.as_ref().map(|end| end.how) {
        None => (wire::TaskState::Running, 0, 0),
        Some(How::Exited(code)) => (wire::TaskState::Exited, code, 0),
        Some(How::Signaled(signal)) => (wire::TaskState::Signaled, 0, signal),
        Some(How::TimedOut) => (wire::TaskState::TimedOut, 0, 0),
        Some(How::Lost) => (wire::TaskState::Lost, 0, 0),
    };
    let (end_time, leftover_count) = end.as_ref().map(|end| (end.time, end.leftover_count)).unzip();
    // In a sandbox no other process can use the number.
    let process_group = root.filter(|_| end.is_none() && !is_sandboxed).map_or(0, |root| root.pid);
    let Summary { bytes, kept_bytes, tail } = end.map_or(running_output, |end| end.output);
    wire::Task {
        id,
        command,
        state: state.into(),
        exit_code,
        signal,
        start_time: Some(timestamp(start_time)),
        end_time: end_time.map(timestamp),
        timeout: prost_types::Duration::try_from(timeout).ok(),
        output_path: output_path.to_string_lossy().into_owned(),
        output_bytes: bytes,
        kept_bytes,
        tail,
        process_group,
        leftover_count: leftover_count.unwrap_or_default(),
    }
}
