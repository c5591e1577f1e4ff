//! Executes outputs, each in a task, and sorts the results.

mod configure;
mod login;
mod session;
mod turn;

use std::sync::Arc;

use hive_proto::handshake::Channel;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Duration, timeout};

use crate::config::Config;
use crate::driver::launch::{self, Runner};
use crate::driver::link::Link;
use crate::driver::report::Reporter;
use crate::driver::session::SessionEvent;
use crate::driver::shell::Shell;
use crate::driver::status::{self, HarnessStatus};
use crate::driver::{LoopEvent, call_log, calls, check};
use crate::exit::Failure;
use crate::process::child::Printed;
use crate::process::family::Family;
use crate::settings;
use crate::turn::input::Input;
use crate::turn::output::{Output, Signal};
use crate::wire::output::LineSource;
use crate::wire::session::BrokerMessage;
use crate::wire::state_name;

/// Maximum time for pending calls at the end of the program.
const FINISH_PATIENCE: Duration = Duration::from_secs(2);

/// The executor of outputs.
#[derive(Debug)]
pub struct Performer {
    config: Arc<Config>,
    source: settings::Source,
    link: Link,
    to: mpsc::Sender<LoopEvent>,
    token: watch::Sender<Option<String>>,
    status: watch::Sender<Option<HarnessStatus>>,
    /// The status of this session that the broker knows.
    reported: watch::Sender<Option<HarnessStatus>>,
    running: watch::Sender<Option<u64>>,
    /// Number of the current stream; news of other streams is outdated.
    stream: u64,
    stream_task: Option<AbortHandle>,
    /// Number of the session; answers to calls of others are outdated.
    session: u64,
    session_token: String,
    /// Calls of the session; aborted with it.
    calls: JoinSet<()>,
    begin: Option<AbortHandle>,
    /// The question whether the harness may end.
    question: Option<AbortHandle>,
    /// Request id and process token of a withdrawn wait for a turn; the turn may be open anyway.
    withdrawn: Option<(String, String)>,
    /// Request id and process token of the current wait for a turn.
    waiting: Option<(String, String)>,
    /// Calls that should still complete when the program ends.
    final_calls: JoinSet<()>,
    /// All other tasks; aborted at the end.
    tasks: JoinSet<()>,
    login: Option<AbortHandle>,
    runner: Runner,
    shell: Shell,
    process_token: String,
    signals: Option<mpsc::UnboundedSender<Signal>>,
    /// The id of the running turn, with the reporter of its output.
    reporter: Option<(u64, Reporter)>,
}

impl Performer {
    /// Creates an executor of outputs over this channel; their results go to `to`.
    pub fn new(
        config: Arc<Config>,
        source: settings::Source,
        channel: Channel,
        family: Arc<Family>,
        to: mpsc::Sender<LoopEvent>,
    ) -> Self {
        let (token, token_seen) = watch::channel(None);
        let link = Link::new(channel.clone(), token_seen);
        let running = watch::Sender::new(None);
        let mut tasks = JoinSet::new();
        let every = config.heartbeat;
        tasks.spawn(status::beat(link.clone(), every, running.subscribe(), to.clone()));
        tasks.spawn(call_log::keep(config.run_dir.clone(), running.subscribe()));
        let shell = Shell::start(&config, &family, link.clone());
        tasks.spawn(shell.report(to.clone()));
        Self {
            shell,
            link,
            token,
            status: watch::Sender::new(None),
            reported: watch::Sender::new(None),
            running,
            stream: 0,
            stream_task: None,
            session: 0,
            session_token: String::new(),
            calls: JoinSet::new(),
            begin: None,
            question: None,
            withdrawn: None,
            waiting: None,
            final_calls: JoinSet::new(),
            tasks,
            login: None,
            runner: Runner::new(Arc::clone(&config), family),
            process_token: String::new(),
            signals: None,
            reporter: None,
            config,
            source,
            to,
        }
    }

    /// Sets the turn that the heartbeat should find open.
    pub fn running(&self, turn_id: Option<u64>) {
        self.running.send_if_modified(|running| std::mem::replace(running, turn_id) != turn_id);
    }

    /// Executes an output.
    pub fn perform(&mut self, output: Output, turn_id: Option<u64>) {
        // Tasks that have ended are removed here.
        while self.calls.try_join_next().is_some() {}
        while self.tasks.try_join_next().is_some() {}
        while self.final_calls.try_join_next().is_some() {}
        match output {
            Output::Attach => self.attach(),
            Output::Begin => self.begin(),
            Output::Open(kind) => self.open(kind),
            Output::Probe => {
                let probe = check::probe(Arc::clone(&self.config), self.runner.clone());
                self.local(probe);
            }
            Output::Start(launch) => self.start(*launch),
            Output::Signal(signal) => {
                if let Some(signals) = &self.signals {
                    // A claude that is gone needs no signal.
                    let _ = signals.send(signal);
                }
            }
            Output::Report(state, until) => {
                tracing::debug!(state = state_name(state), "status");
                self.status.send_replace(Some((state, until)));
            }
            Output::End(ending) => self.end(*ending),
            Output::Ack(command_id, error) => {
                tracing::info!(command = command_id, error, "command closed");
                self.final_calls.spawn(calls::ack(self.link.clone(), command_id, error));
            }
            Output::WatchLogin => self.watch_login(),
            Output::Login(wanted) => self.log_in(wanted),
            Output::RefuseLogin(login_id, reason) => {
                self.final_calls.spawn(crate::driver::login::refuse(
                    self.link.clone(),
                    login_id,
                    reason,
                ));
            }
            Output::Problem(subject, text) => {
                tracing::warn!(subject, "{text}");
                self.final_calls.spawn(calls::problem(self.link.clone(), subject, text));
            }
            Output::Note(text) => {
                tracing::warn!(turn_id, "{text}");
                self.line(LineSource::Note, &text);
            }
            Output::Leave => self.leave(),
            Output::AskToLeave => self.ask_to_leave(),
            // The loop ends with it.
            Output::Exit(_) => {}
        }
    }

    /// Returns the result of a task as an input for the machine; an error ends the program.
    pub fn to_input(&mut self, event: LoopEvent) -> Result<Option<Input>, Failure> {
        Ok(match event {
            LoopEvent::Session(stream, event) if stream == self.stream => match event {
                SessionEvent::Message(message) => Some(self.translate(message)),
                SessionEvent::Fenced(why) => Some(Input::Fenced(why)),
                SessionEvent::Refused(failure) => return Err(failure),
                SessionEvent::Lost => {
                    self.token.send_replace(None);
                    None
                }
            },
            LoopEvent::Call(session, input) if session == self.session => {
                if matches!(input, Input::Begun(_) | Input::Opened(_)) {
                    // Asked again after the turn, it could end the session.
                    Self::abort(&mut self.question);
                }
                // The turn of a withdrawn wait has begun, or never will.
                if let Input::Begun(begun) = &input {
                    (self.waiting, self.begin) = (None, None);
                    self.shell.begun(begun);
                } else if matches!(input, Input::Opened(_)) {
                    self.withdrawn = None;
                }
                Some(input)
            }
            LoopEvent::Session(..) | LoopEvent::Call(..) => None,
            LoopEvent::Printed(printed) => {
                match &printed {
                    Printed::Stdout(line) => self.line(LineSource::Stdout, &line.text),
                    Printed::Stderr(line) => self.line(LineSource::Stderr, &line.text),
                }
                launch::read(&printed)
            }
            LoopEvent::Noted(text) => {
                tracing::warn!("{text}");
                self.line(LineSource::Note, &text);
                None
            }
            LoopEvent::Local(input) => Some(input),
        })
    }

    fn translate(&mut self, message: BrokerMessage) -> Input {
        match message {
            BrokerMessage::Attached(attached) => self.attached(*attached),
            BrokerMessage::Command(command) => Input::Command(command),
            BrokerMessage::UnknownCommand(id) => Input::UnknownCommand(id),
            BrokerMessage::AgentChanged(mut agent) => {
                self.narrow(&mut agent);
                Input::AgentChanged(agent)
            }
            BrokerMessage::KinChanged(kin) => Input::KinChanged(kin),
            BrokerMessage::LoginWanted(wanted) => Input::LoginWanted(wanted),
        }
    }

    /// Stops attaching: the session has ended, and must not be replaced.
    pub fn detach(&mut self) {
        Self::abort(&mut self.stream_task);
    }

    /// Waits until the last calls have completed.
    pub async fn finish(&mut self) {
        self.reporter = None;
        let final_calls = async { while self.final_calls.join_next().await.is_some() {} };
        if timeout(FINISH_PATIENCE, final_calls).await.is_err() {
            tracing::debug!("some final calls were not answered");
        }
        tokio::join!(self.runner.end_resident(), self.shell.end());
        self.tasks.shutdown().await;
        self.calls.shutdown().await;
    }

    /// Aborts the wait or the watch that runs, if one does.
    fn abort(task: &mut Option<AbortHandle>) {
        if let Some(task) = task.take() {
            task.abort();
        }
    }

    fn call(&mut self, call: impl Future<Output = Input> + Send + 'static) -> AbortHandle {
        let (to, session) = (self.to.clone(), self.session);
        self.calls.spawn(async move {
            // The loop is gone only when the program ends.
            let _ = to.send(LoopEvent::Call(session, call.await)).await;
        })
    }

    fn local(&mut self, work: impl Future<Output = Input> + Send + 'static) -> AbortHandle {
        let to = self.to.clone();
        self.tasks.spawn(async move {
            let _ = to.send(LoopEvent::Local(work.await)).await;
        })
    }
}
