//! The supervisor of shell tasks beside the loop.
//!
//! It starts once the harness is attached: a harness that was just taken over may still have to end
//! its own tasks. Invariants: when the program ends, no task is left. A task that runs is reported
//! to the loop, so that the harness of an agent on demand does not leave it.

use std::sync::Arc;
use std::time::Duration;

use hive_core::agent::Agent;
use hive_core::message::Origin;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::claude::command_line::EXECUTION_GROUP;
use crate::config::Config;
use crate::driver::link::Link;
use crate::driver::{LoopEvent, calls};
use crate::process::family::Family;
use crate::spawn::spawn;
use crate::task::wake::LABEL;
use crate::task::{BrokerWaker, Supervisor, TaskConfig, environment};
use crate::turn::input::{Begun, Input};

/// Maximum time for tasks to end with the program.
const END_PATIENCE: Duration = Duration::from_secs(15);

/// The socket for requests of tasks, in the run directory.
pub const SOCKET: &str = "tasks.sock";

#[derive(Debug)]
enum ShellOrder {
    Configured(Box<TaskConfig>),
    Allowed(bool),
    Reported,
    End(oneshot::Sender<()>),
}

/// The loop's handle of the supervisor of shell tasks.
#[derive(Debug)]
pub struct Shell {
    orders: mpsc::UnboundedSender<ShellOrder>,
    task: JoinHandle<()>,
    is_busy: watch::Receiver<bool>,
}

impl Shell {
    /// Starts the supervisor in the background.
    pub fn start(config: &Config, family: &Family, link: Link) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        // An earlier harness may have left ends to report, which are not known before the start.
        let (busy, is_busy) = watch::channel(true);
        let supervise = supervise(task_config(config), family.tasks(), link, inbox, busy);
        Self { orders, task: spawn("shell tasks", supervise), is_busy }
    }

    /// Reports to the loop whether tasks run, now and after each change.
    pub fn report(&self, to: mpsc::Sender<LoopEvent>) -> impl Future<Output = ()> + use<> {
        let mut is_busy = self.is_busy.clone();
        async move {
            loop {
                let input = Input::TasksRun(*is_busy.borrow_and_update());
                // The loop is gone only when the program ends.
                let _ = to.send(LoopEvent::Local(input)).await;
                if is_busy.changed().await.is_err() {
                    return;
                }
            }
        }
    }

    /// Applies other settings to tasks that start from now on.
    pub fn configure(&self, config: &Config) {
        self.order(ShellOrder::Configured(Box::new(task_config(config))));
    }

    /// Applies the agent's policy, as the broker reports it.
    pub fn policy(&self, agent: &Agent) {
        self.order(ShellOrder::Allowed(agent.policy.has_group(EXECUTION_GROUP)));
    }

    /// Notes that a turn began; if its message reports ended tasks, the agent knows of them.
    pub fn begun(&self, begun: &Begun) {
        let origin = &begun.delivery.message.origin;
        if matches!(origin, Origin::External(label) if label.as_str() == LABEL) {
            self.order(ShellOrder::Reported);
        }
    }

    /// Ends all tasks.
    pub async fn end(&mut self) {
        let (over, ended) = oneshot::channel();
        self.order(ShellOrder::End(over));
        if timeout(END_PATIENCE, ended).await.is_err() {
            tracing::error!("shell tasks could not be ended in time");
        }
        self.task.abort();
    }

    fn order(&self, order: ShellOrder) {
        // The supervisor is gone only when the program ends, or if it could not start, which was
        // reported.
        let _ = self.orders.send(order);
    }
}

fn task_config(config: &Config) -> TaskConfig {
    TaskConfig {
        run_dir: config.run_dir.clone(),
        state_dir: config.state_dir.clone(),
        socket: config.run_dir.join(SOCKET),
        environment: environment::build(
            std::env::vars_os(),
            &config.claude_env,
            &config.home_dir,
            &config.socket,
            &config.run_dir,
            config.tasks.cargo_short_messages,
            config.isolation.is_some(),
        ),
        confinement: config
            .isolation
            .as_ref()
            .map(|isolation| isolation.tasks.clone())
            .unwrap_or_default(),
        settings: config.tasks.clone(),
    }
}

async fn supervise(
    config: TaskConfig,
    tasks: crate::process::family::tasks::Tasks,
    link: Link,
    mut inbox: mpsc::UnboundedReceiver<ShellOrder>,
    busy: watch::Sender<bool>,
) {
    let mut session = link.clone();
    let start = async move {
        session.token().await;
        Supervisor::start(config, tasks, Arc::new(BrokerWaker { link: session })).await
    };
    tokio::pin!(start);
    let (mut allowed, mut configured) = (false, None);
    let supervisor = loop {
        tokio::select! {
            started = &mut start => match started {
                Ok(supervisor) => break supervisor,
                Err(error) => {
                    tracing::error!(%error, "there are no shell tasks");
                    busy.send_replace(false);
                    calls::problem(link, "bash".to_owned(), format!("shell tasks do not work: {error}")).await;
                    return;
                }
            },
            order = inbox.recv() => match order {
                Some(ShellOrder::Allowed(is_allowed)) => allowed = is_allowed,
                Some(ShellOrder::Configured(config)) => configured = Some(config),
                Some(ShellOrder::Reported) => {}
                Some(ShellOrder::End(_)) | None => return,
            },
        }
    };
    supervisor.set_allowed(allowed);
    if let Some(config) = configured {
        supervisor.configure(*config);
    }
    let mut is_busy = supervisor.is_busy();
    busy.send_replace(*is_busy.borrow_and_update());
    loop {
        let order = tokio::select! {
            order = inbox.recv() => order,
            Ok(()) = is_busy.changed() => {
                busy.send_replace(*is_busy.borrow_and_update());
                continue;
            }
        };
        match order {
            Some(ShellOrder::Allowed(is_allowed)) => supervisor.set_allowed(is_allowed),
            Some(ShellOrder::Configured(config)) => supervisor.configure(*config),
            Some(ShellOrder::Reported) => supervisor.mark_announced_reported(),
            Some(ShellOrder::End(over)) => {
                supervisor.shutdown().await;
                let _ = over.send(());
                return;
            }
            None => return,
        }
    }
}
