//! The rig: a hive with a real database in a directory of its own, a clock that tests set, and
//! short functions for the actions of its agents and its operator.
//!
//! Nothing here sleeps. A test waits for a commit or for a task, and a guard of half a minute turns
//! a wait that never ends into a failure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hive_core::action;
use hive_core::agent::{Agent, HarnessState, Policy};
use hive_core::caller::{Caller, OperatorName};
use hive_core::delivery::{Decision, Delivery, State};
use hive_core::event::{Event, Kind as EventKind};
use hive_core::id::{MessageId, TurnId};
use hive_core::limits::Limits;
use hive_core::message::{Origin, Recipient};
use hive_core::name::AgentName;
use hive_core::reason::Reason;
use hive_core::settlement::{Action, Entry, Settled};
use hive_core::time::{BootTime, Now};
use hive_core::turn::{Ended, Kind, MAIN_CONVERSATION, Outcome, Turn};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::super::directories::Directories;
use super::super::memory::Memory;
use super::super::presence::Attachment;
use super::super::{Actor, Engine, Identity, Parts, Refusal};
use super::audit::Books;
use crate::clock::{Clock, ManualClock};
use crate::engine::mail::receive::{Leased, Receive, Received};
use crate::engine::mail::send::{Receipt, Send};
use crate::engine::operator::agents::Create;
use crate::engine::turn::attach::Attach;
use crate::engine::turn::begin::{Begin, Begun};
use crate::engine::turn::end::EndedAnswer;
use crate::store::request::RequestKey;
use crate::store::turn_events::TurnEvents;
use crate::store::{AgentKey, Committed, Effect, Health, Store, agent, inbox};

/// Longer than anything here takes; only a test that hangs gets to its end.
const GUARD: Duration = Duration::from_secs(30);

/// Every state there is.
pub(super) const ALL_STATES: [State; 7] = [
    State::Ready,
    State::Leased,
    State::Held,
    State::Dead,
    State::Acked,
    State::Dropped,
    State::Superseded,
];

/// A hive under test.
#[derive(Debug)]
pub(super) struct Hive {
    engine: Option<Arc<Engine>>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) limits: Limits,
    commits: watch::Receiver<u64>,
    requests: AtomicU64,
    boots: u32,
    _books: Books,
    dir: tempfile::TempDir,
}

/// A harness that has attached. Dropping it is what the broker sees of its death.
#[derive(Debug)]
pub(super) struct Harness {
    pub(super) agent: String,
    pub(super) token: String,
    pub(super) epoch: u64,
    pub(super) resumed: bool,
    pub(super) open_turn: Option<Turn>,
    attachment: Option<Attachment>,
}

impl Harness {
    /// Returns the attachment; panics if the harness is not attached.
    pub(super) fn attachment(&self) -> &Attachment {
        self.attachment.as_ref().expect("it is attached")
    }

    /// Its connection ends; its process may live on.
    pub(super) fn vanish(&mut self) {
        drop(self.attachment.take());
    }
}

/// A turn that runs, and the process that runs it.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) agent: String,
    pub(super) session_token: String,
    pub(super) process_token: String,
    pub(super) id: TurnId,
    pub(super) begun: Option<Begun>,
}

impl Run {
    /// The message that woke it.
    pub(super) fn message(&self) -> MessageId {
        self.begun().delivery().message.id
    }

    /// The text of the message that woke it.
    pub(super) fn body(&self) -> &str {
        &self.begun().delivery().message.body
    }

    /// Returns the turn that the harness got.
    pub(super) fn begun(&self) -> &Begun {
        self.begun.as_ref().expect("a turn begun by mail")
    }

    /// Acts from inside the turn.
    pub(super) fn actor(&self) -> Actor {
        Actor {
            caller: caller(&self.agent),
            process_token: Some(self.process_token.clone()),
            cause: Default::default(),
        }
    }
}

impl Begun {
    /// The delivery of a turn for mail.
    pub(super) fn delivery(&self) -> &Delivery {
        self.delivery.as_ref().expect("a turn begun by mail")
    }
}

/// A command in which the writer waits.
#[derive(Debug)]
pub(super) struct Hold {
    release: std::sync::mpsc::Sender<()>,
    task: JoinHandle<Result<(), Refusal>>,
}

impl Hold {
    /// Lets the writer go on; answers what becomes of the command.
    pub(super) fn release(self) -> JoinHandle<Result<(), Refusal>> {
        self.release.send(()).expect("the writer is held");
        self.task
    }
}

/// Counts commits, on the way to those who wait for them.
struct Counting {
    memory: Arc<Memory>,
    commits: watch::Sender<u64>,
}

impl Committed for Counting {
    fn committed(&self, effects: &[Effect], last_event: u64) {
        self.memory.committed(effects, last_event);
        self.commits.send_modify(|commits| *commits += 1);
    }

    fn answered(&self, last_event: u64) {
        self.memory.answered(last_event);
    }

    fn recovered(&self) {
        self.memory.recovered();
    }
}

/// The caller of this name; `operator` is the operator.
pub(super) fn caller(who: &str) -> Caller {
    if who == "operator" {
        Caller::Operator(OperatorName::new(1000, Some("ada")))
    } else {
        Caller::Agent(name(who))
    }
}

/// A process of this caller that shows no token.
pub(super) fn actor(who: &str) -> Actor {
    Actor { caller: caller(who), process_token: None, cause: Default::default() }
}

/// An agent's name.
pub(super) fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a test's agent has a good name")
}

/// A message's id.
pub(super) fn message(number: u64) -> MessageId {
    MessageId::new(number).expect("a number that is not 0")
}

/// The recipient as a sender writes it.
pub(super) fn recipient(to: &str) -> Recipient {
    match to {
        "operator" => Recipient::Operator,
        "<parent>" => Recipient::Parent,
        "*" => Recipient::Everyone,
        agent => Recipient::Agent(name(agent)),
    }
}

/// A request with this id and content.
pub(super) fn request(rpc: &'static str, id: &str, content: u8) -> RequestKey {
    RequestKey { rpc, id: id.to_owned(), fingerprint: [content; 16] }
}

/// A plain message.
pub(super) fn mail(to: &str, body: &str) -> Send {
    Send::new(recipient(to), body)
}

/// Takes up to this many at once, without waiting.
pub(super) fn up_to(max_deliveries: u32) -> Receive {
    Receive {
        max_deliveries,
        max_bytes: None,
        wait: Duration::ZERO,
        lease: Duration::from_secs(60),
        tool_use: None,
        leases_until: None,
    }
}

/// Returns the end of a turn with this outcome and no other values.
pub(super) fn ended(outcome: Outcome) -> Ended {
    let error = if outcome == Outcome::Ok { String::new() } else { format!("it was {outcome:?}") };
    Ended { error, ..Ended::new(outcome) }
}

/// Ends a turn with this request.
pub(super) async fn end_turn(
    engine: &Engine,
    run: &Run,
    key: RequestKey,
    ended: Ended,
) -> Result<EndedAnswer, Refusal> {
    let token = run.session_token.clone();
    engine.end_turn(caller(&run.agent), key, token, run.id, ended).await
}

/// The reason for which a call is refused.
pub(super) fn reason<T>(answer: Result<T, Refusal>) -> Reason {
    answer.err().expect("it is refused").reason()
}

/// The ids of messages, in order.
pub(super) fn ids(taken: &[Leased]) -> Vec<MessageId> {
    taken.iter().map(|leased| leased.delivery.message.id).collect()
}

/// The bodies of messages, in order.
pub(super) fn bodies(taken: &[Leased]) -> Vec<&str> {
    taken.iter().map(|leased| leased.delivery.message.body.as_str()).collect()
}

/// Waits for a task that has to end.
pub(super) async fn done<T>(task: JoinHandle<T>) -> T {
    tokio::time::timeout(GUARD, task).await.expect("it ends").expect("it does not panic")
}

/// Receives mail, and takes the answer as the transport does.
pub(super) async fn receive(
    engine: &Engine,
    actor: Actor,
    request: RequestKey,
    receive: Receive,
) -> Result<Received, Refusal> {
    let (received, handover) = engine.receive(actor, request, receive).await?;
    handover.taken();
    Ok(received)
}

/// The unit whose journal agents may read.
pub(super) const JOURNAL_UNIT: &str = "nginx.service";

/// An action with an argument, which alice may ask for, one like it with a preview, and one of bob.
fn actions() -> action::Actions {
    let of = |agent: &str, args: &[(&str, &str)]| action::Action {
        command: ["apply", "--", "{commit}"].map(str::to_owned).to_vec(),
        preview: None,
        description: String::new(),
        agents: vec![name(agent)],
        args: args
            .iter()
            .map(|(name, text)| ((*name).to_owned(), action::Pattern::parse(text).expect("one")))
            .collect(),
        timeout: Duration::from_secs(60),
    };
    let of_alice = of("alice", &[("commit", "[0-9a-f]{4}")]);
    let preview = ["git", "diff", "{commit}"].map(str::to_owned).to_vec();
    let agents = vec![name("alice"), name("bob")];
    let shown = action::Action { preview: Some(preview), agents, ..of_alice.clone() };
    action::Actions::from([
        ("apply".to_owned(), of_alice),
        ("shown".to_owned(), shown),
        ("other".to_owned(), of("bob", &[])),
    ])
}

/// Ends a task that waits.
pub(super) async fn stop<T>(task: JoinHandle<T>) {
    task.abort();
    drop(task.await);
}

/// A directory in memory, where there is one.
pub(super) fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a directory for a test")
}

async fn open(
    dir: &Path,
    clock: Arc<dyn Clock>,
    limits: &Limits,
) -> (Arc<Engine>, watch::Receiver<u64>) {
    let (sender, commits) = watch::channel(0);
    let memory = Arc::new(Memory::default());
    let counting = Arc::new(Counting { memory: Arc::clone(&memory), commits: sender });
    let store = Store::open(dir, Arc::clone(&clock), counting).expect("the store opens");
    let turn_events = TurnEvents::open(dir).expect("the turn lines open");
    // Long reminders are written to this directory, if a test has made it.
    let named = ["alice", "bob"]
        .map(|agent| (name(agent), dir.join("agents").join(agent)))
        .into_iter()
        .collect();
    let directories = Directories::new(named, Some(dir.join("agents")), None);
    let parts = Parts {
        store,
        turn_events: Arc::new(turn_events),
        memory,
        clock,
        limits: limits.clone(),
        actions: actions(),
        identity: Identity { journal_units: vec![JOURNAL_UNIT.to_owned()], ..Identity::default() },
        directories,
        sandboxes: Arc::default(),
    };
    (Arc::new(Engine::start(parts).await.expect("the engine starts")), commits)
}

/// A hive in which mail waits for bob, and bob's harness.
pub(super) async fn waiting_hive() -> (Hive, Harness) {
    let hive = Hive::new(&["bob"]).await;
    hive.send("operator", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    (hive, harness)
}

/// A hive in which bob's harness runs a turn for a message of alice's.
pub(super) async fn in_mid_turn() -> (Hive, Harness, Run) {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    (hive, harness, run)
}

impl Hive {
    /// A hive with these agents, all of them roots.
    pub(super) async fn new(agents: &[&str]) -> Self {
        Self::with_limits(agents, Limits::default()).await
    }

    /// A hive with bounds of its own.
    pub(super) async fn with_limits(agents: &[&str], limits: Limits) -> Self {
        let clock = Arc::new(ManualClock::new("boot-0"));
        Self::on(agents, limits, Arc::clone(&clock), clock).await
    }

    /// A hive with a clock other than the manual one.
    pub(super) async fn on(
        agents: &[&str],
        limits: Limits,
        manual: Arc<ManualClock>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let dir = directory();
        let (engine, commits) = open(dir.path(), clock, &limits).await;
        let books = Books(dir.path().join("hive.db"));
        let requests = AtomicU64::new(0);
        let hive = Self {
            engine: Some(engine),
            clock: manual,
            limits,
            commits,
            requests,
            boots: 0,
            _books: books,
            dir,
        };
        for agent in agents {
            hive.create(agent, None, Policy::default()).await;
        }
        hive
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().expect("the broker runs")
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("hive.db")
    }

    /// Stops the broker cleanly and starts it again. Waiting calls are notified before.
    pub(super) async fn restart(&mut self) {
        self.restart_slowly(0).await;
    }

    /// Stops the broker cleanly, changes its files, and starts it again.
    pub(super) async fn restart_after(&mut self, change: impl FnOnce(&Path)) {
        self.close();
        change(self.dir.path());
        self.start().await;
    }

    /// Restarts the host: another boot, a boot clock that begins again, and a wall clock that went
    /// on.
    pub(super) async fn reboot(&mut self) {
        self.close();
        self.boots += 1;
        let clock = ManualClock::new(&format!("boot-{}", self.boots));
        clock.set_wall(self.clock.now().wall.after(Duration::from_secs(90)));
        self.clock = Arc::new(clock);
        self.start().await;
    }

    /// Kills the broker: the next one finds the files as they are now, without a final write of the
    /// dead one.
    pub(super) async fn crash(&mut self) {
        let rescue = directory();
        for file in ["hive.db", "hive.db-wal"] {
            std::fs::copy(self.dir.path().join(file), rescue.path().join(file))
                .expect("a file of the database");
        }
        self.close();
        self._books = Books(rescue.path().join("hive.db"));
        self.dir = rescue;
        self.start().await;
    }

    fn close(&mut self) {
        let engine = self.engine.take().expect("the broker runs");
        drop(Arc::try_unwrap(engine).expect("no task of the test still uses the broker"));
    }

    /// Stops the broker cleanly and starts it again; it serves after this many seconds.
    pub(super) async fn restart_slowly(&mut self, seconds: u64) {
        self.close();
        self.start_up().await;
        self.pass(seconds);
        self.engine().ready().await.expect("it serves");
    }

    async fn start(&mut self) {
        self.start_up().await;
        self.engine().ready().await.expect("it serves");
    }

    /// Starts it, up to where it would serve.
    async fn start_up(&mut self) {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        let (engine, commits) = open(self.dir.path(), clock, &self.limits).await;
        (self.engine, self.commits) = (Some(engine), commits);
    }

    /// The present time.
    pub(super) fn now(&self) -> Now {
        self.engine().clock().now()
    }

    /// Time passes.
    pub(super) fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// Time passes, and what is due is swept.
    pub(super) async fn pass_and_sweep(&self, seconds: u64) {
        self.pass(seconds);
        self.sweep().await;
    }

    /// Sweeps everything that is due.
    pub(super) async fn sweep(&self) -> Option<BootTime> {
        self.engine().sweep_handovers().await.expect("handovers are swept");
        self.engine().sweep_streams().await.expect("streams are swept");
        let leases = self.engine().sweep_leases().await.expect("leases are swept");
        let sessions = self.engine().sweep_sessions().await.expect("sessions are swept");
        leases.into_iter().chain(sessions).min()
    }

    /// A fresh request.
    pub(super) fn request(&self, rpc: &'static str) -> RequestKey {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        request(rpc, &format!("request-{number}"), 0)
    }

    // Agents.

    /// The operator makes an agent.
    pub(super) async fn create(&self, agent: &str, parent: Option<&str>, policy: Policy) {
        let create = Create {
            name: name(agent),
            parent: parent.map(name),
            role: String::new(),
            model: String::new(),
            policy,
            adopt: false,
        };
        self.try_create(create).await.expect("an agent is created");
    }

    /// The operator makes this agent.
    pub(super) async fn try_create(&self, create: Create) -> Result<Agent, Refusal> {
        let request = self.request("CreateAgent");
        self.engine().create_agent(caller("operator"), request, create).await
    }

    /// The operator retires an agent.
    pub(super) async fn retire(&self, agent: &str) -> u32 {
        let request = self.request("RetireAgent");
        self.engine()
            .retire_agent(caller("operator"), request, name(agent))
            .await
            .expect("an agent is retired")
    }

    /// An agent as callers see it.
    pub(super) async fn agent(&self, who: &str) -> Agent {
        self.engine().get_agent(name(who)).await.expect("the agent is there")
    }

    /// The row of an agent, or of the operator.
    pub(super) async fn row(&self, who: &str) -> agent::AgentRow {
        let who = who.to_owned();
        let read = self
            .engine()
            .store()
            .read(move |conn, _| Ok::<_, Refusal>(agent::by_name(conn, &who)?))
            .await;
        read.expect("agents are read").expect("the agent is there")
    }

    /// The numbers of an inbox.
    pub(super) async fn numbers(&self, who: &str) -> inbox::InboxRow {
        let key = self.row(who).await.key;
        self.engine()
            .store()
            .write(move |tx| Ok::<_, Refusal>(inbox::get(tx, key)?))
            .await
            .expect("an inbox is read")
    }

    // Mail.

    /// Sends, and insists on a receipt.
    pub(super) async fn send(&self, from: &str, to: &str, body: &str) -> MessageId {
        self.try_send(from, to, body).await.expect("it is accepted").message
    }

    /// Sends.
    pub(super) async fn try_send(
        &self,
        from: &str,
        to: &str,
        body: &str,
    ) -> Result<Receipt, Refusal> {
        self.send_as(actor(from), mail(to, body)).await
    }

    /// Sends with this request.
    pub(super) async fn send_with(
        &self,
        from: &str,
        key: RequestKey,
        to: &str,
        body: &str,
    ) -> Result<Receipt, Refusal> {
        self.engine().send(actor(from), key, mail(to, body)).await
    }

    /// Sends this message with these rights.
    pub(super) async fn send_as(&self, from: Actor, send: Send) -> Result<Receipt, Refusal> {
        self.engine().send(from, self.request("SendMessage"), send).await
    }

    /// Sends from inside a turn.
    pub(super) async fn send_in(
        &self,
        run: &Run,
        to: &str,
        body: &str,
    ) -> Result<Receipt, Refusal> {
        self.send_as(run.actor(), mail(to, body)).await
    }

    /// All deliveries of an inbox, in order.
    pub(super) async fn inbox(&self, who: &str) -> Vec<Delivery> {
        let listed = self
            .engine()
            .list_deliveries(caller("operator"), who.to_owned(), ALL_STATES.to_vec(), None, 500)
            .await;
        let (deliveries, more) = listed.expect("an inbox is listed");
        assert_eq!(more, None, "a test's inbox fits on a page");
        deliveries
    }

    /// Returns one delivery.
    pub(super) async fn delivery(&self, who: &str, message: MessageId) -> Delivery {
        let found =
            self.inbox(who).await.into_iter().find(|delivery| delivery.message.id == message);
        found.expect("the delivery is there")
    }

    /// Returns the state of a delivery, and its present or next attempt.
    pub(super) async fn state(&self, who: &str, message: MessageId) -> (State, u32) {
        let delivery = self.delivery(who, message).await;
        (delivery.state, delivery.attempt)
    }

    /// Returns the unsettled messages of the broker itself in an inbox.
    pub(super) async fn notices(&self, who: &str) -> Vec<Delivery> {
        let mut notices = self.inbox(who).await;
        notices.retain(|delivery| {
            delivery.message.origin == Origin::System && !delivery.state.is_settled()
        });
        notices
    }

    /// The operator decides.
    pub(super) async fn decide(
        &self,
        who: &str,
        message: MessageId,
        decision: Decision,
    ) -> Result<(), Refusal> {
        let request = self.request("Decide");
        self.engine().decide(caller("operator"), request, who.to_owned(), message, decision).await
    }

    /// All events, in order.
    pub(super) async fn events(&self) -> Vec<Event> {
        self.engine().events_after(0, None, 10_000).await.expect("events are read").0
    }

    /// Returns the number of events of this kind.
    pub(super) async fn count_events(&self, kind: EventKind) -> usize {
        self.events().await.iter().filter(|event| event.kind() == kind).count()
    }

    // Harnesses and turns.

    /// A harness starts afresh.
    pub(super) async fn attach(&self, agent: &str) -> Harness {
        self.try_attach(agent, "", false).await.expect("it attaches")
    }

    /// A harness attaches: with the token of a session, or with an empty one to start afresh.
    pub(super) async fn try_attach(
        &self,
        agent: &str,
        session_token: &str,
        take_over: bool,
    ) -> Result<Harness, Refusal> {
        let attach = Attach {
            session_token: session_token.to_owned(),
            take_over,
            revision: "test".to_owned(),
            isolation: None,
        };
        let attached = self.engine().attach(caller(agent), attach).await?;
        Ok(Harness {
            agent: agent.to_owned(),
            token: attached.session_token,
            epoch: attached.attachment.epoch(),
            resumed: attached.resumed,
            open_turn: attached.open_turn,
            attachment: Some(attached.attachment),
        })
    }

    /// Returns the request of a harness for a turn, with a fresh secret for the process that will
    /// run it.
    pub(super) fn wish(&self, session_token: &str) -> Begin {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        Begin {
            session_token: session_token.to_owned(),
            process_token: format!("process-token-{number:08}"),
            conversation: MAIN_CONVERSATION.to_owned(),
            kind: Kind::Mail,
        }
    }

    /// Begins a turn for which there is mail.
    pub(super) async fn begin(&self, harness: &Harness) -> Run {
        self.try_begin(harness).await.expect("a turn begins")
    }

    /// Begins a turn, or is refused.
    pub(super) async fn try_begin(&self, harness: &Harness) -> Result<Run, Refusal> {
        let begin = self.wish(&harness.token);
        let process_token = begin.process_token.clone();
        let begun =
            self.engine().begin_turn(caller(&harness.agent), self.request("BeginTurn"), begin);
        let begun = tokio::time::timeout(GUARD, begun)
            .await
            .expect("there is mail, so it does not wait")?;
        let (agent, session_token) = (harness.agent.clone(), harness.token.clone());
        Ok(Run { agent, session_token, process_token, id: begun.turn.id, begun: Some(begun) })
    }

    /// Begins a turn for which there is no mail, and proves that it waits.
    pub(super) async fn begin_waits(
        &self,
        harness: &Harness,
    ) -> JoinHandle<Result<Begun, Refusal>> {
        let (engine, begin, request) =
            (Arc::clone(self.engine()), self.wish(&harness.token), self.request("BeginTurn"));
        let caller = caller(&harness.agent);
        self.waits(async move { engine.begin_turn(caller, request, begin).await }).await
    }

    /// Begins a turn without mail.
    pub(super) async fn open(&self, harness: &Harness, kind: Kind) -> Result<Run, Refusal> {
        let begin = Begin { kind, ..self.wish(&harness.token) };
        let process_token = begin.process_token.clone();
        let request = self.request("BeginTurn");
        let begun = self.engine().begin_turn(caller(&harness.agent), request, begin).await?;
        assert_eq!((begun.delivery, begun.already_sent), (None, Vec::new()));
        let (agent, session_token) = (harness.agent.clone(), harness.token.clone());
        Ok(Run { agent, session_token, process_token, id: begun.turn.id, begun: None })
    }

    /// Ends a turn with nothing to say but how.
    pub(super) async fn end(&self, run: &Run, outcome: Outcome) -> EndedAnswer {
        self.try_end(run, ended(outcome)).await.expect("the turn ends")
    }

    /// Ends a turn.
    pub(super) async fn try_end(&self, run: &Run, ended: Ended) -> Result<EndedAnswer, Refusal> {
        end_turn(self.engine(), run, self.request("EndTurn"), ended).await
    }

    /// The outcome of a turn; `None` while it is open.
    pub(super) async fn outcome(&self, run: &Run) -> Option<Outcome> {
        let turn = self.engine().get_turn(caller("operator"), run.id).await;
        turn.expect("the turn is there").outcome
    }

    /// A harness reports its state.
    pub(super) async fn report(
        &self,
        harness: &Harness,
        state: HarnessState,
    ) -> Result<(), Refusal> {
        self.engine().report_harness(caller(&harness.agent), harness.token.clone(), state).await
    }

    /// Takes mail inside a turn, by this tool call.
    pub(super) async fn recv(&self, run: &Run, tool_use: &str, max_deliveries: u32) -> Received {
        let receive = Receive { tool_use: Some(tool_use.to_owned()), ..up_to(max_deliveries) };
        super::receive(self.engine(), run.actor(), self.request("ReceiveMessages"), receive)
            .await
            .expect("mail is taken")
    }

    /// Runs one whole turn.
    pub(super) async fn turn(&self, harness: &Harness, outcome: Outcome) -> Run {
        let run = self.begin(harness).await;
        self.end(&run, outcome).await;
        run
    }

    // Consumers.

    /// A consumer without a harness takes mail, without waiting.
    pub(super) async fn receive(&self, agent: &str, max_deliveries: u32) -> Vec<Leased> {
        self.try_receive(agent, up_to(max_deliveries)).await.expect("mail is taken").deliveries
    }

    /// A consumer takes mail.
    pub(super) async fn try_receive(
        &self,
        agent: &str,
        receive: Receive,
    ) -> Result<Received, Refusal> {
        super::receive(self.engine(), actor(agent), self.request("ReceiveMessages"), receive).await
    }

    /// A consumer has done its work.
    pub(super) async fn ack(&self, agent: &str, leased: &Leased) -> Result<(), Refusal> {
        let token = leased.token.clone().expect("a consumer's lease");
        self.settle(agent, token, Action::Ack).await.map(drop)
    }

    /// A consumer could not do it.
    pub(super) async fn nack(
        &self,
        agent: &str,
        leased: &Leased,
        permanent: bool,
    ) -> Result<State, Refusal> {
        let token = leased.token.clone().expect("a consumer's lease");
        let nack = Action::Nack { error: "cannot".to_owned(), permanent };
        match self.settle(agent, token, nack).await? {
            Settled::State(state) => Ok(state),
            extended @ Settled::Extended(_) => panic!("{extended:?}"),
        }
    }

    /// A consumer settles a delivery.
    pub(super) async fn settle(
        &self,
        agent: &str,
        token: impl Into<String>,
        action: Action,
    ) -> Result<Settled, Refusal> {
        self.engine().settle_one(actor(agent), Entry::of_lease(token, action)).await
    }

    // Waiting.

    /// Returns the number of commits.
    pub(super) fn commits(&self) -> u64 {
        *self.commits.borrow()
    }

    /// Starts a call and proves that it waits: it has looked, found nothing, and does not answer.
    pub(super) async fn waits<T, F>(&self, call: F) -> JoinHandle<T>
    where
        T: std::marker::Send + 'static,
        F: Future<Output = T> + std::marker::Send + 'static,
    {
        let mut commits = self.commits.clone();
        let before = *commits.borrow_and_update();
        let task = tokio::spawn(call);
        tokio::time::timeout(GUARD, commits.wait_for(|now| *now > before))
            .await
            .expect("it looks")
            .expect("the broker runs");
        self.still_waits(&task).await;
        task
    }

    /// Proves that a call still waits.
    pub(super) async fn still_waits<T>(&self, task: &JoinHandle<T>) {
        self.idle().await;
        assert!(!task.is_finished(), "it waits");
    }

    /// Lets everything that is under way arrive: answers of earlier commits are read before ours.
    pub(super) async fn idle(&self) {
        for _ in 0..3 {
            self.engine()
                .store()
                .write(|_| Ok::<_, Refusal>(()))
                .await
                .expect("the writer answers");
            tokio::task::yield_now().await;
        }
    }

    /// Holds the writer in a command, so that later calls fall into its batch.
    pub(super) async fn hold(&self) -> Hold {
        let engine = Arc::clone(self.engine());
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (begun, holds) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let hold = engine.store().write(move |_| {
                begun.send(()).expect("the test waits");
                held.recv().expect("the test lets go");
                Ok::<_, Refusal>(())
            });
            hold.await
        });
        holds.await.expect("the writer is held");
        Hold { release, task }
    }

    /// Makes a call whose commit fails: it runs, it is voided together with its batch, and the
    /// database is opened again.
    pub(super) async fn voided<T, F>(&self, call: F) -> Result<T, Refusal>
    where
        T: std::marker::Send + 'static,
        F: Future<Output = Result<T, Refusal>> + std::marker::Send + 'static,
    {
        let mut health = self.engine().store().health();
        let hold = self.hold().await;
        let call = tokio::spawn(call);
        tokio::task::yield_now().await;
        let engine = Arc::clone(self.engine());
        let fault = tokio::spawn(async move {
            let full = rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL),
                None,
            );
            engine.store().write(move |_| Err::<(), _>(Refusal::from(full))).await
        });
        tokio::task::yield_now().await;
        let holder = hold.release();
        let answer = done(call).await;
        for refusal in [done(holder).await, done(fault).await] {
            assert_eq!(
                refusal.expect_err("the whole batch is void").reason(),
                Reason::StorageUnavailable
            );
        }
        let recovered = health.wait_for(|health| *health == Health::Ok);
        drop(
            tokio::time::timeout(GUARD, recovered)
                .await
                .expect("it recovers")
                .expect("the broker runs"),
        );
        answer
    }

    /// Wakes an agent without a reason, so that its waiters read its state again.
    pub(super) async fn hint(&self, agent: &str) {
        let key: AgentKey = self.row(agent).await.key;
        let wake = self.engine().store().write(move |tx| {
            tx.after_commit(Effect::Hint(key));
            Ok::<_, Refusal>(())
        });
        wake.await.expect("the writer answers");
    }
}
