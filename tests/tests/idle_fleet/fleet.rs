//! The fleet: machines whose outputs are carried out on the engine, with a claude that ends as the
//! test says.

use std::sync::Arc;
use std::time::Duration;

use hive_broker::clock::{Clock, ManualClock};
use hive_broker::engine::directories::Directories;
use hive_broker::engine::mail::send::Send;
use hive_broker::engine::memory::Memory;
use hive_broker::engine::operator::agents::Create;
use hive_broker::engine::turn::attach::{Attach, Attached};
use hive_broker::engine::turn::begin::{Begin, Begun};
use hive_broker::engine::turn::end::EndedAnswer;
use hive_broker::engine::{Actor, Engine, Identity, Parts, Refusal};
use hive_broker::store::Store;
use hive_broker::store::request::RequestKey;
use hive_broker::store::turn_events::TurnEvents;
use hive_core::agent::Policy;
use hive_core::caller::{Caller, OperatorName};
use hive_core::id::TurnId;
use hive_core::limits::Limits;
use hive_core::message::Recipient;
use hive_core::name::AgentName;
use hive_core::turn::{Ended, Kind, MAIN_CONVERSATION, Outcome};
use hive_harness::claude::event;
use hive_harness::claude::outcome::Exit;
use hive_harness::config::Spans;
use hive_harness::turn::context::Watermarks;
use hive_harness::turn::input::{self, Attachment, EndTurnAnswer, Found, Input};
use hive_harness::turn::job::Step;
use hive_harness::turn::machine::{Defaults, Machine};
use hive_harness::turn::output::{Ending, Launch, Output};
use tokio::task::JoinHandle;

/// Step of the clock. Everything that is due in between is processed late, but processed.
const STEP: Duration = Duration::from_secs(60);
/// The length of the limit that claude reports.
const LIMIT: Duration = Duration::from_secs(10 * 3600);
/// A guard for what has to happen.
const GUARD: Duration = Duration::from_secs(30);

struct Harness {
    name: AgentName,
    machine: Machine,
    attached: Option<Attached>,
    begin: Option<JoinHandle<Result<Begun, Refusal>>>,
    outcome: Outcome,
    context_tokens: u64,
}

/// Agents `a0`, `a1`, …, each with a harness.
pub(crate) struct Fleet {
    engine: Arc<Engine>,
    clock: Arc<ManualClock>,
    harnesses: Vec<Harness>,
    requests: u64,
    starts: usize,
    _dir: tempfile::TempDir,
}

impl Fleet {
    pub(crate) async fn of(count: usize) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let clock = Arc::new(ManualClock::new("boot"));
        let memory = Arc::new(Memory::default());
        let committed = Arc::clone(&memory) as _;
        let store = Store::open(dir.path(), Arc::clone(&clock) as Arc<dyn Clock>, committed)
            .expect("the store opens");
        let turn_events = TurnEvents::open(dir.path()).expect("the turn lines open");
        let parts = Parts {
            store,
            turn_events: Arc::new(turn_events),
            memory,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            limits: Limits::default(),
            actions: Default::default(),
            identity: Identity::default(),
            directories: Directories::default(),
            sandboxes: Arc::default(),
        };
        let engine = Arc::new(Engine::start(parts).await.expect("the engine starts"));
        engine.ready().await.expect("it serves");
        let mut fleet =
            Self { engine, clock, harnesses: Vec::new(), requests: 0, starts: 0, _dir: dir };
        for number in 0..count {
            let name = AgentName::parse(&format!("a{number}")).expect("a good name");
            let create = Create {
                name: name.clone(),
                parent: None,
                role: String::new(),
                model: String::new(),
                policy: Policy::default(),
                adopt: false,
            };
            let request = fleet.request("CreateAgent");
            fleet.engine.create_agent(operator(), request, create).await.expect("created");
            let machine = machine(name.as_str());
            fleet.harnesses.push(Harness {
                name,
                machine,
                attached: None,
                begin: None,
                outcome: Outcome::Ok,
                context_tokens: 10,
            });
        }
        fleet.settle().await;
        fleet
    }

    /// Returns the number of claudes that were started.
    pub(crate) fn starts(&self) -> usize {
        self.starts
    }

    /// The next claude of this agent ends so; later ones end well.
    pub(crate) fn answer_with(&mut self, agent: &str, outcome: Outcome) {
        self.harness(agent).outcome = outcome;
    }

    /// Sets the size of this agent's conversation.
    pub(crate) fn context_of(&mut self, agent: &str, tokens: u64) {
        self.harness(agent).context_tokens = tokens;
    }

    /// Sends an agent a message and waits for what follows.
    pub(crate) async fn send(&mut self, agent: &str) {
        let to = Recipient::Agent(AgentName::parse(agent).expect("a good name"));
        let request = self.request("SendMessage");
        let actor = Actor { caller: operator(), process_token: None, cause: Default::default() };
        let send = Send::new(to, "work");
        self.engine.send(actor, request, send).await.expect("accepted");
        let place = self
            .harnesses
            .iter()
            .position(|harness| harness.name.as_str() == agent)
            .expect("an agent of the fleet");
        self.take_turn(place).await;
        self.settle().await;
    }

    /// Lets time pass.
    pub(crate) async fn live(&mut self, span: Duration) {
        let end = self.clock.now().boot.after(span);
        while self.clock.now().boot < end {
            self.clock.advance(STEP);
            self.engine.sweep_sessions().await.expect("swept");
            self.engine.sweep_leases().await.expect("swept");
            for place in 0..self.harnesses.len() {
                let now = self.clock.now();
                if self.harnesses[place].machine.deadline().is_some_and(|due| due <= now.boot) {
                    self.give(place, Input::Tick);
                    // A waiter behind a park is retried, as the timer of the call would do; that
                    // timer goes by the real clock.
                    if let Some(begin) = self.harnesses[place].begin.take() {
                        begin.abort();
                        self.harnesses[place].begin = Some(self.begin(place));
                    }
                }
            }
            self.settle().await;
        }
    }

    fn harness(&mut self, agent: &str) -> &mut Harness {
        self.harnesses
            .iter_mut()
            .find(|harness| harness.name.as_str() == agent)
            .expect("an agent of the fleet")
    }

    fn request(&mut self, rpc: &'static str) -> RequestKey {
        self.requests += 1;
        RequestKey { rpc, id: format!("r{}", self.requests), fingerprint: [0; 16] }
    }

    /// Carries out what all machines want, until none wants anything.
    async fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for place in 0..self.harnesses.len() {
                while let Some(output) = self.harnesses[place].machine.poll() {
                    quiet = false;
                    self.perform(place, output).await;
                }
                if self.harnesses[place].begin.as_ref().is_some_and(JoinHandle::is_finished) {
                    quiet = false;
                    self.take_turn(place).await;
                }
            }
            if quiet && !self.turns_came().await {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Whether one of those who ask for a turn has got it, once the broker has looked for all of
    /// them.
    async fn turns_came(&self) -> bool {
        // The first poll of a task that was just started adds its read to the writer's queue.
        tokio::task::yield_now().await;
        // A batch answers its waiters last, so the second sweep runs after every report of that
        // batch.
        for _ in 0..2 {
            self.engine.sweep_leases().await.expect("swept");
        }
        tokio::task::yield_now().await;
        self.harnesses
            .iter()
            .any(|harness| harness.begin.as_ref().is_some_and(JoinHandle::is_finished))
    }

    /// Waits for the turn that has to come.
    async fn take_turn(&mut self, place: usize) {
        let begin = self.harnesses[place].begin.take().expect("it waits for a turn");
        let begun = tokio::time::timeout(GUARD, begin)
            .await
            .expect("a turn comes")
            .expect("no panic")
            .expect("a turn");
        let input = Input::Begun(Arc::new(input::Begun {
            turn_id: begun.turn.id.get(),
            trace: None,
            agenda: None,
            delivery: begun.delivery.expect("it is for mail"),
            pending_count: begun.pending,
            already_sent: Vec::new(),
            already_asked: Vec::new(),
            already_reminded: Vec::new(),
            commands: Vec::new(),
        }));
        self.give(place, input);
    }

    fn give(&mut self, place: usize, input: Input) {
        let now = self.clock.now();
        self.harnesses[place].machine.handle(input, now);
    }

    fn token(&self, place: usize) -> String {
        self.harnesses[place]
            .attached
            .as_ref()
            .map(|attached| attached.session_token.clone())
            .unwrap_or_default()
    }

    fn begin(&mut self, place: usize) -> JoinHandle<Result<Begun, Refusal>> {
        let request = self.request("BeginTurn");
        let begin = self.begin_of(place);
        let (engine, caller) = (Arc::clone(&self.engine), self.caller(place));
        tokio::spawn(async move { engine.begin_turn(caller, request, begin).await })
    }

    fn begin_of(&self, place: usize) -> Begin {
        let process_token = format!("{:032}", self.requests);
        Begin {
            session_token: self.token(place),
            process_token,
            conversation: MAIN_CONVERSATION.into(),
            kind: Kind::Mail,
        }
    }

    fn caller(&self, place: usize) -> Caller {
        Caller::Agent(self.harnesses[place].name.clone())
    }

    async fn perform(&mut self, place: usize, output: Output) {
        match output {
            Output::Attach => {
                let attach = Attach {
                    session_token: String::new(),
                    take_over: false,
                    revision: String::new(),
                    isolation: None,
                };
                let attached =
                    self.engine.attach(self.caller(place), attach).await.expect("attached");
                let agent = Some(attached.agent.clone());
                self.harnesses[place].attached = Some(attached);
                self.give(
                    place,
                    Input::Attached(Box::new(Attachment { agent, ..Attachment::default() })),
                );
            }
            Output::Begin => {
                let begin = self.begin(place);
                self.harnesses[place].begin = Some(begin);
            }
            Output::Open(kind) => {
                let request = self.request("BeginTurn");
                let begin = Begin { kind, ..self.begin_of(place) };
                let begun = self.engine.begin_turn(self.caller(place), request, begin).await;
                let turn_id = begun.expect("begun").turn.id.get();
                self.give(place, Input::Opened(input::Opened { turn_id, trace: None }));
            }
            Output::Probe => {
                self.give(
                    place,
                    Input::Probed(Ok(Found { logged_in: true, problems: Vec::new() })),
                );
            }
            Output::Start(launch) => self.run(place, &launch),
            Output::Report(state, _) => {
                self.engine
                    .report_harness(self.caller(place), self.token(place), state)
                    .await
                    .expect("reported");
            }
            Output::End(ending) => self.end(place, *ending).await,
            Output::WatchLogin | Output::Note(_) => {}
            unexpected @ (Output::Signal(_)
            | Output::Ack(..)
            | Output::Login(_)
            | Output::RefuseLogin(..)
            | Output::Problem(..)
            | Output::Leave
            | Output::AskToLeave
            | Output::Exit(_)) => panic!("{unexpected:?}"),
        }
    }

    /// A claude that says what it is to say, and ends.
    fn run(&mut self, place: usize, launch: &Launch) {
        self.starts += 1;
        let tools =
            hive_harness::claude::fences::Expected::for_agent("hive", &launch.tool_groups).tools;
        let init = serde_json::json!({
            "type": "system", "subtype": "init", "tools": tools,
            "mcp_servers": [{"name": "hive", "status": "connected"}, {"name": "bash", "status": "connected"}],
        });
        let harness = &mut self.harnesses[place];
        let tokens = harness.context_tokens;
        let reset = self.clock.now().wall.after(LIMIT).0 / 1000;
        let mut lines = vec![init];
        match (launch.step, harness.outcome) {
            (Step::Compact, _) => {
                harness.context_tokens = 10;
                lines.push(serde_json::json!({"type": "system", "subtype": "status", "compact_result": "success"}));
                lines.push(
                    serde_json::json!({"type": "system", "subtype": "compact_boundary", "compact_metadata": {"post_tokens": 10}}),
                );
                lines.push(
                    serde_json::json!({"type": "result", "subtype": "success", "is_error": false}),
                );
            }
            (_, Outcome::RateLimited) => {
                harness.outcome = Outcome::Ok;
                lines.push(
                    serde_json::json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": reset}}),
                );
                lines.extend(failure("rate_limit", 429));
            }
            (_, Outcome::AuthFailed) => {
                if launch.retry {
                    // The second try is part of the same turn.
                    self.starts -= 1;
                }
                lines.extend(failure("authentication_failed", 401));
            }
            _ => {
                let usage = serde_json::json!({"input_tokens": tokens});
                lines.push(serde_json::json!({"type": "assistant", "message": {"id": "m", "content": [], "usage": usage}}));
                lines.push(
                    serde_json::json!({"type": "result", "subtype": "success", "is_error": false}),
                );
            }
        }
        for line in lines {
            let event = event::parse(&line.to_string()).expect("a JSON object");
            self.give(place, Input::Event(Box::new(event)));
        }
        self.give(place, Input::Exited(Exit::Code(0)));
    }

    async fn end(&mut self, place: usize, ending: Ending) {
        let outcome = ending.outcome.expect("an outcome");
        let ended = Ended {
            error: ending.error,
            output_tail: ending.output_tail,
            model: ending.model,
            context_tokens: ending.context_tokens,
            context_window_tokens: ending.context_window_tokens,
            compacted: ending.compacted,
            retry_time: ending.retry_time,
            ..Ended::new(outcome)
        };
        let turn = TurnId::new(ending.turn_id).expect("a turn");
        let (caller, request) = (self.caller(place), self.request("EndTurn"));
        let answer = self.engine.end_turn(caller, request, self.token(place), turn, ended).await;
        let answer = answer.expect("ended");
        let EndedAnswer { pending: pending_count, next_turn_requested, park, .. } = answer;
        self.give(place, Input::Ended(EndTurnAnswer { pending_count, next_turn_requested, park }));
    }
}

fn failure(kind: &str, status: u16) -> [serde_json::Value; 2] {
    [
        serde_json::json!({"type": "assistant", "error": kind, "api_error_status": status, "message": {"id": "x", "content": []}}),
        serde_json::json!({
            "type": "result", "subtype": "success", "is_error": true, "terminal_reason": "api_error", "api_error_status": status,
        }),
    ]
}

fn operator() -> Caller {
    Caller::Operator(OperatorName::new(1000, Some("ada")))
}

fn machine(label: &str) -> Machine {
    let spans = Spans {
        turn_idle: Some(Duration::from_secs(1800)),
        turn_max: None,
        rate_limit_sleep: None,
        drain_grace: Duration::from_secs(20),
        kill_grace: Duration::from_secs(5),
    };
    let defaults = Defaults {
        label: label.into(),
        model: "haiku".into(),
        operator_pronouns: "she/her".into(),
        mcp_server_name: "hive".into(),
        watermarks: Watermarks { cache_ttl: Duration::from_secs(3600), ..Watermarks::default() },
        extra_servers: Vec::new(),
    };
    Machine::new(spans, defaults)
}
