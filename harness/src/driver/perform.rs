//! Carrying outputs out: each becomes a task; and sorting what comes back.

use std::sync::Arc;

use hive_core::time::WallTime;
use hive_proto::v1::{HarnessState, TurnEventStream};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Duration, MissedTickBehavior, interval, timeout};
use tonic::transport::Channel;

use crate::config::Config;
use crate::driver::link::Link;
use crate::driver::report::Reporter;
use crate::driver::session::{self, News};
use crate::driver::{Happened, calls, launch};
use crate::exit::Failure;
use crate::login::{self, DirSnapshot};
use crate::process::child::Printed;
use crate::process::family::Family;
use crate::token;
use crate::turn::input::{Attachment, Input};
use crate::turn::output::{Ending, Launch, Output, Signal};

/// How long what is still on its way may take at the end of the program.
const FINISH_PATIENCE: Duration = Duration::from_secs(2);

type Status = (HarnessState, Option<WallTime>);

/// Carries outputs out.
#[derive(Debug)]
pub struct Performer {
    config: Arc<Config>,
    family: Arc<Family>,
    link: Link,
    to: mpsc::Sender<Happened>,
    token: watch::Sender<Option<String>>,
    status: watch::Sender<Option<Status>>,
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
    /// What should still get through when the program ends.
    last_words: JoinSet<()>,
    /// Everything else; aborted at the end.
    tasks: JoinSet<()>,
    login: Option<AbortHandle>,
    process_token: String,
    signals: Option<mpsc::UnboundedSender<Signal>>,
    reporter: Option<Reporter>,
}

impl Performer {
    /// Carries outputs out over this channel; what comes of them goes to `to`.
    #[must_use]
    pub fn new(config: Arc<Config>, channel: Channel, family: Arc<Family>, to: mpsc::Sender<Happened>) -> Self {
        let (token, token_seen) = watch::channel(None);
        let mut performer = Self {
            link: Link::new(channel, token_seen),
            token,
            status: watch::Sender::new(None),
            running: watch::Sender::new(None),
            stream: 0,
            stream_task: None,
            session: 0,
            session_token: String::new(),
            calls: JoinSet::new(),
            begin: None,
            last_words: JoinSet::new(),
            tasks: JoinSet::new(),
            login: None,
            process_token: String::new(),
            signals: None,
            reporter: None,
            config,
            family,
            to,
        };
        let heartbeat =
            beat(performer.link.clone(), performer.config.heartbeat, performer.running.subscribe(), performer.to.clone());
        performer.tasks.spawn(heartbeat);
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
            Output::Begin => {
                self.process_token = token::random();
                let begin = calls::begin(self.link.clone(), self.process_token.clone());
                self.begin = Some(self.call(begin));
            }
            Output::Open(kind) => {
                self.process_token = token::random();
                let open = calls::open(self.link.clone(), self.process_token.clone(), kind);
                self.call(open);
            }
            Output::Probe => {
                let probe = launch::probe(Arc::clone(&self.config));
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
                News::AgentChanged(agent) => Some(Input::AgentChanged(agent)),
                News::Fenced(why) => Some(Input::Fenced(why)),
                News::Refused(failure) => return Err(failure),
                News::Lost => {
                    self.token.send_replace(None);
                    None
                }
            },
            Happened::Call(session, input) if session == self.session => Some(input),
            Happened::Session(..) | Happened::Call(..) => None,
            Happened::Printed(printed) => {
                match &printed {
                    Printed::Stdout(line) => self.line(TurnEventStream::Stdout, &line.text),
                    Printed::Stderr(line) => self.line(TurnEventStream::Stderr, &line.text),
                }
                launch::read(&printed)
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
        self.stream += 1;
        // Only the first session may take over: one that was lost to another harness stays lost.
        let take_over = self.config.take_over && self.stream == 1;
        let keep = session::keep(self.link.channel.clone(), take_over, self.stream, self.to.clone());
        self.stream_task = Some(self.tasks.spawn(keep));
    }

    /// Answers to its calls mean nothing any more.
    fn forget_session(&mut self) {
        self.token.send_replace(None);
        self.session_token.clear();
        self.session += 1;
        self.calls.abort_all();
    }

    fn attached(&mut self, attached: hive_proto::v1::Attached) -> Input {
        let hive_proto::v1::Attached { session_token, session_epoch, resumed, agent, open_turn, operator_pronouns, hive_domain } =
            attached;
        // The machine is told whether *its* session goes on.
        let resumed = resumed && session_token == self.session_token;
        if !resumed {
            self.forget_session();
        }
        tracing::info!(epoch = session_epoch, resumed, "attached");
        self.session_token.clone_from(&session_token);
        self.token.send_replace(Some(session_token));
        if !resumed {
            let tell = tell_status(self.link.clone(), self.status.subscribe(), self.to.clone(), self.session);
            self.calls.spawn(tell);
        }
        Input::Attached(Box::new(Attachment {
            resumed,
            agent: agent.unwrap_or_default(),
            open_turn: open_turn.map(|turn| turn.id),
            operator_pronouns,
            hive_domain,
        }))
    }

    fn start(&mut self, launch: Launch) {
        tracing::info!(
            turn = launch.turn_id,
            occasion = launch.occasion.words(),
            model = launch.model,
            retry = launch.retry,
            "turn started"
        );
        let (signals, received) = mpsc::unbounded_channel();
        self.signals = Some(signals);
        if self.reporter.is_none() {
            let (reporter, task) = Reporter::new(self.link.clone(), launch.turn_id);
            self.reporter = Some(reporter);
            self.last_words.spawn(task);
        }
        self.line(TurnEventStream::Note, &format!("started: {}", launch.occasion.words()));
        let (config, family) = (Arc::clone(&self.config), Arc::clone(&self.family));
        let process_token = self.process_token.clone();
        self.tasks.spawn(launch::run(config, family, launch, process_token, received, self.to.clone()));
    }

    fn line(&mut self, stream: TurnEventStream, text: &str) {
        if let Some(reporter) = &mut self.reporter {
            reporter.line(stream, text);
        }
    }

    fn end(&mut self, ending: Ending) {
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
        let first = DirSnapshot::take(&dir);
        let wait = async move {
            login::wait(&dir, first).await;
            Input::LoggedIn
        };
        self.login = Some(self.local(wait));
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

/// Tells the broker each new status of a session, the last one first.
async fn tell_status(mut link: Link, mut status: watch::Receiver<Option<Status>>, to: mpsc::Sender<Happened>, session: u64) {
    status.mark_changed();
    while status.changed().await.is_ok() {
        let now = *status.borrow_and_update();
        let Some((state, until)) = now else { continue };
        if let Err(Input::Fenced(why)) = calls::report(&mut link, state, until).await {
            let _ = to.send(Happened::Call(session, Input::Fenced(why))).await;
            return;
        }
    }
}

/// Signs of life, as long as the program runs.
async fn beat(mut link: Link, every: Duration, running: watch::Receiver<Option<u64>>, to: mpsc::Sender<Happened>) {
    let mut beats = interval(every);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        let expected = *running.borrow();
        let input = match calls::heartbeat(&mut link).await {
            Ok(open) => expected.filter(|turn_id| open != Some(*turn_id)).map(Input::TurnGone),
            // A lost session is told by its stream too, which knows which session it was.
            Err(status) => {
                tracing::debug!(%status, "no answer to a sign of life");
                None
            }
        };
        if let Some(input) = input {
            let _ = to.send(Happened::Local(input)).await;
        }
    }
}
