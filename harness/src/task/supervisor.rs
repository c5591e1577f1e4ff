//! The supervisor: starts tasks, runs them to their ends, and writes their records.
//!
//! Invariants: a record is on disk before its task starts; two requests with one request id start
//! one task.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::boot::file;
use crate::driver::wall_now;
use crate::process::family::tasks::Tasks;
use crate::spawn::spawn;
use crate::task::config::TaskConfig;
use crate::task::output::{self, Output, Summary};
use crate::task::record::{End, How, Record};
use crate::task::run::{self, END_GRACE, Ended, Run};
use crate::task::store::{OpenError, Store};
use crate::task::sweep::TaskProcesses;
use crate::task::table::{self, Table};
use crate::task::wake::Waker;
use crate::task::{announcer, environment, service};
use crate::token;

/// The directory of records and output, in the run directory.
pub(super) const DIR: &str = "tasks";
/// Maximum wait for another harness with the same directory.
const OTHER_PATIENCE: Duration = Duration::from_secs(15);
/// Maximum time for pending answers when the supervisor ends.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// The supervisor of one agent's shell tasks. End it with [`Supervisor::shutdown`].
#[derive(Debug)]
pub struct Supervisor {
    inner: Arc<Inner>,
    server: JoinHandle<()>,
    announcer: JoinHandle<()>,
}

/// Why the supervisor did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error("cannot write {}: {source}; check HIVE_RUN_DIR and the room on its disk", .path.display())]
    BashEnv { path: PathBuf, source: io::Error },
    #[error("cannot listen on {}: {source}; choose a short HIVE_RUN_DIR that this user owns", .path.display())]
    Socket { path: PathBuf, source: io::Error },
}

impl Supervisor {
    /// Ends the leftovers of an earlier harness, and then accepts requests. It refuses tasks before
    /// [`Supervisor::set_allowed`]. `tasks` is the list of the
    /// [`Family`](crate::process::family::Family) that ends the leftovers of turns.
    pub async fn start(
        config: TaskConfig,
        tasks: Tasks,
        waker: Arc<dyn Waker>,
    ) -> Result<Self, StartError> {
        let dir = config.run_dir.join(DIR);
        let failed =
            |source| StartError::Store(OpenError::Io { path: config.run_dir.clone(), source });
        file::private_dir(&config.run_dir).map_err(failed)?;
        let (store, mut records) = Store::open(dir, OTHER_PATIENCE).await?;
        write_bash_env(&config)?;
        let boot_id = boot_id();
        end_lost(records.by_id.values_mut(), &store, &boot_id).await;
        let socket = config.socket.clone();
        let listener = service::listen(&socket)
            .map_err(|source| StartError::Socket { path: socket, source })?;
        let inner = Arc::new(Inner {
            config: Mutex::new(Arc::new(config)),
            tasks,
            store,
            nonce: token::random(),
            boot_id,
            table: Mutex::new(Table::from_records(records)),
            stop: watch::Sender::new(false),
            ended_hint: Notify::new(),
        });
        inner.ended_hint.notify_one();
        let server = spawn("task service", service::serve(listener, Arc::clone(&inner)));
        let announcer = spawn("task announcer", announcer::run(Arc::clone(&inner), waker));
        Ok(Self { inner, server, announcer })
    }

    /// Sets whether the agent's policy has the group `execution`. Running tasks continue.
    pub fn set_allowed(&self, is_allowed: bool) {
        self.inner.table().is_allowed = is_allowed;
    }

    /// Applies other settings to tasks that start from now on.
    pub fn configure(&self, config: TaskConfig) {
        if let Err(error) = write_bash_env(&config) {
            tracing::error!(%error, "the settings of shell tasks stay as they were");
            return;
        }
        *self.inner.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// Notes that the agent received a message with the origin external `bash`.
    pub fn mark_announced_reported(&self) {
        self.inner.table().mark_announced_reported(&self.inner.store);
    }

    /// Returns whether a task runs, or has ended and neither the agent nor the broker knows.
    pub fn is_busy(&self) -> watch::Receiver<bool> {
        self.inner.table().is_busy()
    }

    /// Ends all tasks and refuses further requests. The next harness reports the ends that the
    /// agent does not know.
    pub async fn shutdown(self) {
        let Self { inner, mut server, announcer } = self;
        announcer.abort();
        let running: Vec<watch::Receiver<bool>> = {
            let mut table = inner.table();
            table.is_closing = true;
            let running = table.entries.values().filter(|entry| entry.record.end.is_none());
            running.map(|entry| entry.ended.subscribe()).collect()
        };
        inner.stop.send_replace(true);
        for mut ended in running {
            // The sender is dropped only with the table.
            let _ = ended.wait_for(|ended| *ended).await;
        }
        if tokio::time::timeout(ANSWER_PATIENCE, &mut server).await.is_err() {
            server.abort();
            let _ = server.await;
        }
        let _ = announcer.await;
        let _ = std::fs::remove_file(&inner.config().socket);
    }
}

/// Writes the file that bash reads before each command, if it has to read one.
fn write_bash_env(config: &TaskConfig) -> Result<(), StartError> {
    let path = config.run_dir.join(environment::BASH_ENV_FILE);
    if config.settings.cargo_short_messages {
        file::write(&path, environment::BASH_ENV_TEXT)
            .map_err(|source| StartError::BashEnv { path, source })?;
    }
    Ok(())
}

/// The state that the parts of the supervisor share.
#[derive(Debug)]
pub(super) struct Inner {
    config: Mutex<Arc<TaskConfig>>,
    tasks: Tasks,
    pub(super) store: Store,
    /// Distinguishes the marks of this harness from those of others.
    nonce: String,
    boot_id: String,
    table: Mutex<Table>,
    /// Becomes true when all tasks must end.
    pub(super) stop: watch::Sender<bool>,
    /// Notifies the announcer that there may be an end to report.
    pub(super) ended_hint: Notify,
}

#[derive(Clone, Debug)]
pub(super) struct TaskRequest {
    pub(super) request_id: String,
    pub(super) command: String,
    pub(super) timeout: Duration,
}

/// Why a task is not started, or not shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum TaskRefusal {
    #[error("the policy of this agent does not have the group execution")]
    NotAllowed,
    #[error("the harness is shutting down")]
    Closing,
    #[error("{} shell tasks run already, which is as many as may: {running:?}", running.len())]
    TooMany { running: Vec<u64> },
    #[error("another command was started under this request id, as task {0}")]
    RequestIdReused(u64),
    #[error("there is no task {0}; the oldest are forgotten after a while")]
    NotFound(u64),
    #[error("bash cannot be started in {}", dir.display())]
    Bash { dir: PathBuf, source: io::Error },
    #[error("nothing can be written below {}", dir.display())]
    Disk { dir: PathBuf, source: io::Error },
}

impl Inner {
    /// Returns the configuration for new tasks.
    pub(super) fn config(&self) -> Arc<TaskConfig> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task, or finds the one that this request has started.
    pub(super) fn begin(self: &Arc<Self>, request: TaskRequest) -> Result<TaskWaiter, TaskRefusal> {
        let mut table = self.table();
        if !table.is_allowed {
            return Err(TaskRefusal::NotAllowed);
        }
        if let Some(entry) = table.requested(&request.request_id) {
            let id = entry.record.id;
            return if entry.record.command == request.command {
                self.waiter(&mut table, id)
            } else {
                Err(TaskRefusal::RequestIdReused(id))
            };
        }
        if table.is_closing {
            return Err(TaskRefusal::Closing);
        }
        let running = table.running();
        if running.len() >= self.config().settings.running_max {
            return Err(TaskRefusal::TooMany { running });
        }
        let id = table.fresh_id();
        self.start(&mut table, id, request).inspect_err(|_| self.store.remove(id))?;
        table.prune(&self.store, self.config().settings.output_bytes_max);
        self.waiter(&mut table, id)
    }

    fn start(
        self: &Arc<Self>,
        table: &mut Table,
        id: u64,
        request: TaskRequest,
    ) -> Result<(), TaskRefusal> {
        let config = self.config();
        let disk = |source| TaskRefusal::Disk { dir: config.run_dir.clone(), source };
        let TaskRequest { request_id, command, timeout } = request;
        let mut record = Record {
            id,
            request_id,
            command,
            mark: format!("{}:{id}", self.nonce),
            boot_id: self.boot_id.clone(),
            root: None,
            start_time: wall_now(),
            timeout,
            end: None,
            is_reported: false,
        };
        let file = self.store.create_output(id).map_err(disk)?;
        self.store.write(&record).map_err(disk)?;
        let run = run::start(&config, &self.tasks, &record.mark, &record.command)
            .map_err(|source| TaskRefusal::Bash { dir: config.state_dir.clone(), source })?;
        record.root = run.root;
        if let Err(error) = self.store.write(&record) {
            // The mark still identifies the process.
            tracing::warn!(task = id, %error, "the process of a task is not on record");
        }
        tracing::info!(task = id, pid = record.root.map(|root| root.pid), "task started");
        let output = Arc::new(Output::default());
        table.insert(record, Some(Arc::clone(&output)));
        let file = tokio::fs::File::from_std(file);
        spawn("shell task", Arc::clone(self).run_to_end(id, run, file, output, timeout));
        Ok(())
    }

    async fn run_to_end(
        self: Arc<Self>,
        id: u64,
        run: Run,
        file: tokio::fs::File,
        output: Arc<Output>,
        timeout: Duration,
    ) {
        let bytes_max = self.config().settings.output_bytes_max;
        let ended =
            run::to_end(run, file, Arc::clone(&output), bytes_max, timeout, self.stop.subscribe())
                .await;
        let Ended { how, leftover_count } = ended.unwrap_or_else(|error| {
            tracing::error!(task = id, %error, "the end of a task is unknown");
            Ended { how: How::Lost, leftover_count: 0 }
        });
        tracing::info!(task = id, ?how, leftover_count, "task ended");
        let end = End { time: wall_now(), how, leftover_count, output: output.summary() };
        self.table().end(id, end, &self.store);
        self.ended_hint.notify_one();
    }

    pub(super) fn find(self: &Arc<Self>, id: u64) -> Result<TaskWaiter, TaskRefusal> {
        let mut table = self.table();
        if !table.is_allowed {
            return Err(TaskRefusal::NotAllowed);
        }
        self.waiter(&mut table, id)
    }

    fn waiter(self: &Arc<Self>, table: &mut Table, id: u64) -> Result<TaskWaiter, TaskRefusal> {
        let entry = table.entries.get_mut(&id).ok_or(TaskRefusal::NotFound(id))?;
        entry.waiters += 1;
        Ok(TaskWaiter { inner: Arc::clone(self), id, ended: entry.ended.subscribe() })
    }
}

/// A call that will report a task; while there is one, no mail does.
#[derive(Debug)]
pub(super) struct TaskWaiter {
    inner: Arc<Inner>,
    id: u64,
    ended: watch::Receiver<bool>,
}

#[derive(Debug)]
pub(super) struct TaskSnapshot {
    pub(super) record: Record,
    /// Its output so far, while it runs.
    pub(super) running_output: Summary,
    pub(super) output_path: PathBuf,
    pub(super) is_sandboxed: bool,
}

impl TaskWaiter {
    /// Returns the task at its end, or at the end of the wait.
    pub(super) async fn snapshot(mut self, wait: Duration) -> Option<TaskSnapshot> {
        // The snapshot is taken in both cases.
        let _ = tokio::time::timeout(wait, self.ended.wait_for(|ended| *ended)).await;
        let is_sandboxed = self.inner.config().confinement.is_sandbox();
        let mut table = self.inner.table();
        let entry = table.entries.get(&self.id)?;
        let output = entry.output.as_ref().map(|output| output.summary());
        let snapshot = TaskSnapshot {
            record: entry.record.clone(),
            running_output: output.unwrap_or_default(),
            output_path: self.inner.store.output_path(self.id),
            is_sandboxed,
        };
        if entry.record.end.is_some() {
            table.mark_reported(self.id, &self.inner.store);
        }
        Some(snapshot)
    }
}

impl Drop for TaskWaiter {
    fn drop(&mut self) {
        if let Some(entry) = self.inner.table().entries.get_mut(&self.id) {
            entry.waiters -= 1;
        }
        // The waiter may have gone without the answer.
        self.inner.ended_hint.notify_one();
    }
}

/// Ends what is left of tasks whose harness died.
async fn end_lost(records: impl Iterator<Item = &mut Record>, store: &Store, boot_id: &str) {
    let mut lost: Vec<&mut Record> = records.filter(|record| record.end.is_none()).collect();
    let mut ending = JoinSet::new();
    for record in &lost {
        let (mark, root) = (record.mark.clone(), record.root.filter(|_| record.boot_id == boot_id));
        ending.spawn(async move {
            TaskProcesses { mark: &mark, root, is_held: false, is_sandboxed: false }
                .end(END_GRACE)
                .await
        });
    }
    ending.join_all().await;
    for record in &mut lost {
        tracing::warn!(task = record.id, "the harness of a task has died; the task was ended");
        let output = output::read_back(&store.output_path(record.id));
        record.end = Some(End { time: wall_now(), how: How::Lost, leftover_count: 0, output });
        table::save(record, store);
    }
}

/// Returns the id of the host's current boot: process numbers start again with each boot.
fn boot_id() -> String {
    std::fs::read_to_string(Path::new("/proc/sys/kernel/random/boot_id"))
        .unwrap_or_default()
        .trim()
        .to_owned()
}
