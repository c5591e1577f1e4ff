//! A harness that only records and answers, and a server `bash` as claude starts it.
//!
//! Invariant: killing it closes every connection at once, as `kill -9` of the real one does.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hive_proto::harness_v1::task_service_server::{TaskService, TaskServiceServer};
use hive_proto::harness_v1::{
    GetTaskRequest, GetTaskResponse, RunTaskRequest, RunTaskResponse, Task, TaskState,
};
use hive_tests::mcp::Client;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status};

const PATIENCE: Duration = Duration::from_secs(60);

/// A recorded request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Asked {
    Run(RunTaskRequest),
    Get(GetTaskRequest),
}

/// The reaction to the next call.
#[derive(Debug)]
pub(crate) enum Reaction {
    Task(Box<Task>),
    Refuse(Status),
    Hang,
}

#[derive(Debug, Default)]
struct Shared {
    asked: watch::Sender<Vec<Asked>>,
    dropped: watch::Sender<usize>,
    reactions: Mutex<VecDeque<Reaction>>,
}

/// The harness.
pub(crate) struct Harness {
    dir: TempDir,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

impl Harness {
    pub(crate) fn stopped() -> Self {
        Self {
            dir: tempfile::tempdir().expect("a directory"),
            shared: Arc::default(),
            runtime: None,
        }
    }

    pub(crate) fn start() -> Self {
        let mut harness = Self::stopped();
        harness.run();
        harness
    }

    pub(crate) fn run(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = {
            let _entered = runtime.enter();
            UnixListener::bind(self.socket()).expect("the socket is free")
        };
        let service = TaskServiceServer::new(Played(Arc::clone(&self.shared)));
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(Incoming(listener)),
        );
        self.runtime = Some(runtime);
    }

    pub(crate) fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
            std::fs::remove_file(self.socket()).expect("it was bound");
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("tasks.sock")
    }

    pub(crate) fn react(&self, reaction: Reaction) {
        self.shared.reactions.lock().unwrap_or_else(PoisonError::into_inner).push_back(reaction);
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.borrow().clone()
    }

    pub(crate) async fn wait_for_calls(&self, count: usize) {
        let mut asked = self.shared.asked.subscribe();
        let seen =
            tokio::time::timeout(PATIENCE, asked.wait_for(|asked| asked.len() >= count)).await;
        seen.expect("calls come").expect("the harness lives");
    }

    pub(crate) async fn wait_for_dropped(&self, count: usize) {
        let mut dropped = self.shared.dropped.subscribe();
        let seen =
            tokio::time::timeout(PATIENCE, dropped.wait_for(|dropped| *dropped >= count)).await;
        seen.expect("calls are dropped").expect("the harness lives");
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Incoming(UnixListener);

impl Stream for Incoming {
    type Item = std::io::Result<UnixStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_accept(cx).map(|accepted| Some(accepted.map(|(stream, _)| stream)))
    }
}

struct Played(Arc<Shared>);

impl Played {
    async fn answer(&self, asked: Asked) -> Result<Option<Task>, Status> {
        self.0.asked.send_modify(|all| all.push(asked));
        let reaction = self.0.reactions.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match reaction {
            Some(Reaction::Task(task)) => Ok(Some(*task)),
            Some(Reaction::Refuse(status)) => Err(status),
            Some(Reaction::Hang) => {
                let _dropped = Dropped(&self.0.dropped);
                std::future::pending().await
            }
            None => Ok(Some(task(1, "hi\n"))),
        }
    }
}

struct Dropped<'a>(&'a watch::Sender<usize>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

#[tonic::async_trait]
impl TaskService for Played {
    async fn run_task(
        &self,
        request: Request<RunTaskRequest>,
    ) -> Result<Response<RunTaskResponse>, Status> {
        let task = self.answer(Asked::Run(request.into_inner())).await?;
        Ok(Response::new(RunTaskResponse { task }))
    }

    async fn get_task(
        &self,
        request: Request<GetTaskRequest>,
    ) -> Result<Response<GetTaskResponse>, Status> {
        let task = self.answer(Asked::Get(request.into_inner())).await?;
        Ok(Response::new(GetTaskResponse { task }))
    }
}

/// Returns a successful task.
pub(crate) fn task(id: u64, output: &str) -> Task {
    let bytes = output.len() as u64;
    let mut task = Task {
        id,
        output_bytes: bytes,
        kept_bytes: bytes,
        tail: output.to_owned(),
        ..Task::default()
    };
    task.set_state(TaskState::Exited);
    task
}

/// Returns the program with the harness's environment, not started.
pub(crate) fn command(harness: &Harness) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hive-mcp"));
    command
        .arg("bash")
        .env_clear()
        .env("HIVE_TASK_SOCKET", harness.socket())
        .env("HIVE_PROCESS_TOKEN", "process-token-of-turn-1");
    command.stderr(Stdio::piped());
    command
}

/// Returns the server after its handshake.
pub(crate) async fn connected(harness: &Harness) -> Client {
    let mut client = Client::spawn(&mut command(harness)).expect("hive-mcp starts");
    client.handshake().await.expect("the handshake works");
    client
}
