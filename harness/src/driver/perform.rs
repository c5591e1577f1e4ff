//! Carrying outputs out: each becomes a task; and sorting what comes back.

mod configure;

use std::sync::Arc;

use hive_core::limits::Backoff;
use hive_proto::v1::{HarnessState, LoginWanted, TurnEventStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Duration, timeout};
use tonic::transport::Channel;

use crate::config::Config;
use crate::driver::launch::{self, Runner};
use crate::driver::link::Link;
use crate::driver::report::Reporter;
use crate::driver::session::{self, News};
use crate::driver::shell::Shell;
use crate::driver::status::{self, Status};
use crate::driver::{Happened, call_log, calls, login, look};
use crate::exit::Failure;
use crate::login::DirSnapshot;
use crate::process::child::Printed;
use crate::process::family::Family;
use crate::settings::Source;
use crate::token;
use crate::turn::input::{Attachment, Input};
use crate::turn::output::{Ending, Launch, Output, Signal};

/// How long what is still on its way may take at the end of the program.
const FINISH_PATIENCE: Duration = Duration::from_secs(2);

/// Carries outputs out.
#[derive(Debug)]
pub struct Performer {
    config: Arc<Config>,
    source: Source,
    link: Link,
    to: mpsc::Sender<Happened>,
    token: watch::Sender<Option<String>>,
    status: watch::Sender<Option<Status>>,
    /// The status that the broker knows, of this session.
    told: watch::Sender<Option<Status>>,
    running: watch::Sender<Option<u64>>,
    /// Number of the stream that is followed; what others tell is old.
    stream: u64,
    stream_task: Option<AbortHandle>,
    /// Number of the session; answers to calls of others are old.
    session: u64,
    session_token: String,
    /// Calls of the session; aborted with it.
    calls: JoinSet<()>,
    begin: Option<AbortHandle>,
    /// Request id and process token of a wait for a turn that was given up; the turn may be open
    /// all the same.
    withdrawn: Option<(String, String)>,
    /// Those of the wait for a turn.
    waiting: Option<(String, String)>,
    /// What should still get through when the program ends.
    last_words: JoinSet<()>,
    /// Everything else; aborted at the end.
    tasks: JoinSet<()>,
    login: Option<AbortHandle>,
    runner: Runner,
    shell: Shell,
    process_token: String,
    signals: Option<mpsc::UnboundedSender<Signal>>,
    /// Where the output goes of the turn with this id.
    reporter: Option<(u64, Reporter)>,
}

impl Performer {
    /// Carries outputs out over this channel; what comes of them goes to `to`.
    #[must_use]
    pub fn new(
        config: Arc<Config>,
        source: Source,
        channel: Channel,
        family: Arc<Family>,
        to: mpsc::Sender<Happened>,
    ) -> Self {
        let (token, token_seen) = watch::channel(None);
        let link = Link::new(channel.clone(), token_seen);
        let mut performer = Self {
            shell: Shell::start(&config, &family, link.clone()),
            link,
            token,
            status: watch::Sender::new(None),
            told: watch::Sender::new(None),
            running: watch::Sender::new(None),
            stream: 0,
            stream_task: None,
            session: 0,
            session_token: String::new(),
            calls: JoinSet::new(),
            begin: None,
            withdrawn: None,
            waiting: None,
            last_words: JoinSet::new(),
            tasks: JoinSet::new(),
            login: None,
            runner: Runner::new(Arc::clone(&config), family),
            process_token: String::new(),
            signals: None,
            reporter: None,
            config,
            source,
            to,
        };
        let heartbeat = status::beat(
            performer.link.clone(),
            performer.config.heartbeat,
            performer.running.subscribe(),
            performer.to.clone(),
        );
        performer.tasks.spawn(heartbeat);
        performer
            .tasks
            .spawn(call_log::keep(performer.config.run_dir.clone(), performer.running.subscribe()));
        performer
    }

    /// Tells the heartbeat which turn it should find open.
    pub fn running(&self, turn_id: Option<u64>) {
        self.running.send_if_modified(|running| std::mem::replace(running, turn_id) != turn_id);
    }

    /// Carries an output out.
    pub fn perform(&mut self, output: Output, turn_id: Option<u64>) {
        // Tasks that have ended are forgotten here.
        while self.calls.try_join_next().is_some() {}
        while self.tasks.try_join_next().is_some() {}
        while self.last_words.try_join_next().is_some() {}
        match output {
            Output::Attach => self.attach(),
            Output::Begin => self.begin(),
            Output::Open(kind) => {
                if let Some(begin) = self.begin.take() {
                    begin.abort();
                    self.withdrawn = self.waiting.take();
                }
                self.process_token = self.next_process_token();
                let open = calls::open(self.link.clone(), self.process_token.clone(), kind);
                self.call(open);
            }
            Output::Probe => {
                let probe = look::probe(Arc::clone(&self.config), self.runner.clone());
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
                tracing::debug!(state = state.as_str_name(), "status");
                self.status.send_replace(Some((state, until)));
            }
            Output::End(ending) => self.end(*ending),
            Output::Ack(command_id, error) => {
                tracing::info!(command = command_id, error, "command closed");
                self.last_words.spawn(calls::ack(self.link.clone(), command_id, error));
            }
            Output::WatchLogin => self.watch_login(),
            Output::Login(wanted) => self.log_in(wanted),
            Output::RefuseLogin(wanted, words) => {
                self.last_words.spawn(login::refuse(self.link.clone(), wanted.login_id, words));
            }
            Output::Problem(subject, words) => {
                tracing::warn!(subject, "{words}");
                self.last_words.spawn(calls::problem(self.link.clone(), subject, words));
            }
            Output::Note(text) => {
                tracing::warn!(turn = turn_id, "{text}");
                self.line(TurnEventStream::Note, &text);
            }
            Output::Leave => self.leave(),
            // The loop ends with it.
            Output::Exit(_) => {}
        }
    }

    /// What a task found out, as an input for the machine; an error ends the program.
    pub fn sort(&mut self, happened: Happened) -> Result<Option<Input>, Failure> {
        Ok(match happened {
            Happened::Session(stream, news) if stream == self.stream => match news {
                News::Attached(attached) => Some(self.attached(*attached)),
                News::Command(command) => Some(Input::Command(command)),
                News::AgentChanged(mut agent) => {
                    self.config.tool_groups.narrow(&mut agent);
                    self.shell.policy(Some(&agent));
                    Some(Input::AgentChanged(agent))
                }
                News::KinChanged(kin) => Some(Input::KinChanged(kin)),
                News::LoginWanted(wanted) => Some(Input::LoginWanted(wanted)),
                News::Fenced(why) => Some(Input::Fenced(why)),
                News::Refused(failure) => return Err(failure),
                News::Lost => {
                    self.token.send_replace(None);
                    None
                }
            },
            Happened::Call(session, input) if session == self.session => {
                // The turn of a wait that was given up has come, or never will.
                if let Input::Begun(begun) = &input {
                    (self.waiting, self.begin) = (None, None);
                    self.shell.begun(begun);
                } else if matches!(input, Input::Opened(_)) {
                    self.withdrawn = None;
                }
                Some(input)
            }
            Happened::Session(..) | Happened::Call(..) => None,
            Happened::Printed(printed) => {
                match &printed {
                    Printed::Stdout(line) => self.line(TurnEventStream::Stdout, &line.text),
                    Printed::Stderr(line) => self.line(TurnEventStream::Stderr, &line.text),
                }
                launch::read(&printed)
            }
            Happened::Noted(text) => {
                tracing::warn!("{text}");
                self.line(TurnEventStream::Note, &text);
                None
            }
            Happened::Local(input) => Some(input),
        })
    }

    /// Lets the last words get through.
    pub async fn finish(&mut self) {
        self.reporter = None;
        let last_words = async { while self.last_words.join_next().await.is_some() {} };
        if timeout(FINISH_PATIENCE, last_words).await.is_err() {
            tracing::debug!("some last words did not get through");
        }
        tokio::join!(self.runner.end_resident(), self.shell.end());
        self.tasks.shutdown().await;
        self.calls.shutdown().await;
    }

    fn call(&mut self, call: impl Future<Output = Input> + Send + 'static) -> AbortHandle {
        let (to, session) = (self.to.clone(), self.session);
        self.calls.spawn(async move {
            // The loop is gone only when the program ends.
            let _ = to.send(Happened::Call(session, call.await)).await;
        })
    }

    fn local(&mut self, work: impl Future<Output = Input> + Send + 'static) -> AbortHandle {
        let to = self.to.clone();
        self.tasks.spawn(async move {
            let _ = to.send(Happened::Local(work.await)).await;
        })
    }

    fn attach(&mut self) {
        if let Some(old) = self.stream_task.take() {
            old.abort();
        }
        self.forget_session();
        // A claude of the old session must not hold up a harness that has taken over.
        let runner = self.runner.clone();
        self.last_words.spawn(async move { runner.end_resident().await });
        self.stream += 1;
        // Only the first session may take over: one that was lost to another harness stays lost.
        let take_over = self.config.take_over && self.stream == 1;
        let keep =
            session::keep(self.link.channel.clone(), take_over, self.stream, self.to.clone());
        self.stream_task = Some(self.tasks.spawn(keep));
    }

    /// Answers to its calls mean nothing any more.
    fn forget_session(&mut self) {
        self.token.send_replace(None);
        self.told.send_replace(None);
        self.session_token.clear();
        self.session += 1;
        self.calls.abort_all();
        (self.begin, self.waiting, self.withdrawn) = (None, None, None);
    }

    fn attached(&mut self, attached: hive_proto::v1::Attached) -> Input {
        let hive_proto::v1::Attached {
            session_token,
            session_epoch,
            resumed,
            mut agent,
            open_turn,
            operator_pronouns,
            hive_domain,
            kin,
            park_backoff,
        } = attached;
        if let Some(agent) = &mut agent {
            self.config.tool_groups.narrow(agent);
        }
        // The machine is told whether *its* session goes on.
        let resumed = resumed && session_token == self.session_token;
        if !resumed {
            self.forget_session();
        }
        tracing::info!(epoch = session_epoch, resumed, "attached");
        self.shell.policy(agent.as_ref());
        self.session_token.clone_from(&session_token);
        self.token.send_replace(Some(session_token));
        if !resumed {
            let tell = status::tell(
                self.link.clone(),
                self.status.subscribe(),
                self.told.clone(),
                self.to.clone(),
                self.session,
            );
            self.calls.spawn(tell);
        }
        Input::Attached(Box::new(Attachment {
            resumed,
            agent: agent.unwrap_or_default(),
            kin: kin.unwrap_or_default(),
            open_turn: open_turn.map(|turn| turn.id),
            operator_pronouns,
            hive_domain,
            // Brokers before this field have no other than the default.
            park_backoff: park_backoff
                .and_then(|backoff| Backoff::try_from(backoff).ok())
                .unwrap_or_default(),
        }))
    }

    fn start(&mut self, launch: Launch) {
        hive_fault::point("harness.claude.starting");
        tracing::info!(
            turn = launch.turn_id,
            occasion = launch.occasion.words(),
            model = launch.model,
            retry = launch.retry,
            "turn started"
        );
        // What claude writes itself is no login; the end of the turn says whether it is waited for
        // any longer.
        if let Some(watch) = self.login.take() {
            watch.abort();
        }
        let (signals, received) = mpsc::unbounded_channel();
        self.signals = Some(signals);
        if self.reporter.as_ref().is_none_or(|(turn_id, _)| *turn_id != launch.turn_id) {
            let (reporter, task) = Reporter::new(self.link.clone(), launch.turn_id);
            self.reporter = Some((launch.turn_id, reporter));
            self.last_words.spawn(task);
        }
        self.line(TurnEventStream::Note, &format!("started: {}", launch.occasion.words()));
        let run =
            self.runner.clone().run(launch, self.process_token.clone(), received, self.to.clone());
        self.tasks.spawn(run);
    }

    fn line(&mut self, stream: TurnEventStream, text: &str) {
        if let Some((_, reporter)) = &mut self.reporter {
            reporter.line(stream, text);
        }
    }

    fn end(&mut self, ending: Ending) {
        hive_fault::point("harness.claude.ended");
        let outcome = ending.outcome.map_or_else(String::new, |outcome| format!("{outcome:?}"));
        tracing::info!(turn = ending.turn_id, outcome, error = ending.error, "turn ended");
        self.line(TurnEventStream::Note, &format!("ended: {outcome} {}", ending.error));
        // The last line is out; the reporter's task ends by itself.
        self.reporter = None;
        self.signals = None;
        let end = calls::end(self.link.clone(), ending);
        self.call(end);
    }

    fn watch_login(&mut self) {
        if let Some(old) = self.login.take() {
            old.abort();
        }
        let dir = self.config.home_dir.join(".claude");
        let (config, runner) = (Arc::clone(&self.config), self.runner.clone());
        let wait = async move {
            runner.end_resident().await;
            let first = DirSnapshot::take(&dir);
            crate::login::wait(&dir, first, || look::is_logged_in(&config)).await;
            Input::LoggedIn
        };
        self.login = Some(self.local(wait));
    }

    fn log_in(&mut self, wanted: LoginWanted) {
        // What the dialogue writes is no login before it says so.
        if let Some(watch) = self.login.take() {
            watch.abort();
        }
        let dialogue =
            login::hold(self.link.clone(), Arc::clone(&self.config), self.runner.clone(), wanted);
        self.local(async move { Input::LoginEnded(dialogue.await) });
    }

    fn begin(&mut self) {
        let (request_id, process_token) =
            self.withdrawn.take().unwrap_or_else(|| (token::random(), self.next_process_token()));
        self.process_token.clone_from(&process_token);
        let begin = calls::begin(self.link.clone(), request_id.clone(), process_token.clone());
        self.waiting = Some((request_id, process_token));
        let parked = status::parked(self.status.subscribe(), self.told.subscribe());
        self.begin = Some(self.call(async move {
            parked.await;
            begin.await
        }));
    }

    /// A claude that stays keeps its secret from turn to turn.
    fn next_process_token(&self) -> String {
        self.runner.process_token().unwrap_or_else(token::random)
    }

    fn leave(&mut self) {
        if let Some(begin) = self.begin.take() {
            begin.abort();
        }
        let (state, until) = self.status.borrow().unwrap_or((HarnessState::Idle, None));
        let leave = calls::leave(self.link.clone(), state, until);
        self.call(leave);
    }
}
