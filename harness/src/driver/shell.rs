//! The supervisor of shell tasks beside the loop.
//!
//! It starts once the harness is attached: a harness that was just taken over may still have to end
//! its own tasks. Invariant: when the program ends, no task is left.

use std::sync::Arc;
use std::time::Duration;

use hive_core::agent::Agent;
use hive_core::message::Origin;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::claude::command_line::EXECUTION_GROUP;
use crate::config::Config;
use crate::driver::calls;
use crate::driver::link::Link;
use crate::process::family::Family;
use crate::spawn::spawn;
use crate::task::wake::LABEL;
use crate::task::{BrokerWaker, Supervisor, TaskConfig, environment};
use crate::turn::input::Begun;

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
}

impl Shell {
    /// Starts the supervisor in the background.
    pub fn start(config: &Config, family: &Family, link: Link) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        Self {
            orders,
            task: spawn("shell tasks", supervise(task_config(config), family.tasks(), link, inbox)),
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
    while let Some(order) = inbox.recv().await {
        match order {
            ShellOrder::Allowed(is_allowed) => supervisor.set_allowed(is_allowed),
            ShellOrder::Configured(config) => supervisor.configure(*config),
            ShellOrder::Reported => supervisor.mark_announced_reported(),
            ShellOrder::End(over) => {
                supervisor.shutdown().await;
                let _ = over.send(());
                return;
            }
        }
    }
}
