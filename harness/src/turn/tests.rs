//! Scenarios: every way of a turn, without a process, a socket or a clock.

use std::sync::Arc;
use std::time::Duration;

use hive_core::agent::{Agent, HarnessState};
use hive_core::command::{Command, Order};
use hive_core::id::{CommandId, TurnId};
use hive_core::limits::Backoff;
use hive_core::park;
use hive_core::time::{BootTime, Now, WallTime};
use hive_core::turn::{Kind, Outcome};
use hive_proto::v1;

use crate::claude::event;
use crate::claude::outcome::Exit;
use crate::config::Spans;
use crate::samples;
use crate::turn::context::Watermarks;
use crate::turn::input::{Attachment, Begun, Configured, EndTurnAnswer, Found, Input, Opened};
use crate::turn::job::Step;
use crate::turn::machine::{Defaults, Machine};
use crate::turn::output::{Ending, Launch, Leaving, Output, Signal};
use crate::wire::read;

mod broker;
mod commands;
mod compaction;
mod dialogue;
mod ends;
mod heartbeats;
mod leaving;
mod resets;

const GOOD_INIT: &str = r#"{"type":"system","subtype":"init","model":"claude-x","tools":["Read","mcp__hive__send","mcp__hive__recv","mcp__hive__ask","mcp__hive__answer"],"mcp_servers":[{"name":"hive","status":"connected"},{"name":"extra","status":"connected"}]}"#;
const DONE: &str =
    r#"{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed"}"#;

const STARTING: Output = Output::Report(HarnessState::Starting, None);
const NEEDS_LOGIN: Output = Output::Report(HarnessState::NeedsLogin, None);
const IDLE: Output = Output::Report(HarnessState::Idle, None);

/// A machine with a manual clock.
struct Rig {
    machine: Machine,
    now: Now,
}

impl Rig {
    /// Attached and waiting for a turn, with the CLI found.
    fn waiting() -> Self {
        let mut rig = Self::new();
        assert_eq!(rig.drain(), [Output::Attach]);
        rig.feed(attached(|_| {}));
        assert_eq!(rig.drain(), [STARTING, Output::Probe]);
        rig.feed(found(true));
        assert_eq!(rig.drain(), [IDLE, Output::Begin]);
        rig
    }

    /// Attached, while the first probe of the CLI runs.
    fn starting() -> Self {
        let mut rig = Self::new();
        rig.feed(attached(|_| {}));
        rig.drain();
        rig
    }

    /// Claude runs turn 7.
    fn running() -> Self {
        let mut rig = Self::waiting();
        let launch = rig.begin(7);
        assert!(launch.continues && !launch.retry);
        rig.line(GOOD_INIT);
        assert_eq!(rig.drain(), []);
        rig
    }

    fn new() -> Self {
        let Configured { spans, defaults, probes: _ } = settings();
        let now = Now { wall: WallTime(1_000_000), boot: BootTime(5_000) };
        Self { machine: Machine::new(spans, defaults), now }
    }

    /// Works with settings that differ in this.
    fn configure(&mut self, differ: impl FnOnce(&mut Configured)) {
        let mut settings = settings();
        differ(&mut settings);
        self.feed(Input::Configured(Box::new(settings)));
    }

    /// Begins a turn about mail; returns what claude is started with.
    #[track_caller]
    fn begin(&mut self, turn_id: u64) -> Launch {
        self.feed(begun(turn_id));
        self.launch()
    }

    /// Opens the requested turn; returns what claude is started with.
    #[track_caller]
    fn open(&mut self, turn_id: u64) -> Launch {
        self.feed(Input::Opened(Opened { turn_id, trace: None }));
        self.launch()
    }

    fn exit(&mut self, code: i32) {
        self.feed(Input::Exited(Exit::Code(code)));
    }

    /// claude ends the turn and exits.
    fn finish(&mut self) {
        self.line(DONE);
        self.exit(0);
    }

    fn feed(&mut self, input: Input) {
        self.machine.handle(input, self.now);
    }

    fn line(&mut self, line: &str) {
        self.feed(Input::Event(Box::new(event::parse(line).expect("a JSON object"))));
    }

    /// Returns the outputs of the machine without its notes.
    fn drain(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.machine.poll())
            .filter(|output| !matches!(output, Output::Note(_)))
            .collect()
    }

    #[track_caller]
    fn launch(&mut self) -> Launch {
        let outputs = self.drain();
        let launch = outputs.iter().find_map(|output| {
            if let Output::Start(launch) = output { Some(launch) } else { None }
        });
        (**launch.unwrap_or_else(|| panic!("a launch in {outputs:?}"))).clone()
    }

    #[track_caller]
    fn ending(&mut self) -> Ending {
        let outputs = self.drain();
        let ending = outputs
            .iter()
            .find_map(|output| if let Output::End(ending) = output { Some(ending) } else { None });
        (**ending.unwrap_or_else(|| panic!("an ending in {outputs:?}"))).clone()
    }

    /// Lets the time pass to the machine's own deadline.
    #[track_caller]
    fn sleep(&mut self) {
        let due = self.machine.deadline().expect("a deadline");
        self.pass(due.since(self.now.boot));
    }

    fn pass(&mut self, span: Duration) {
        self.now = Now { wall: self.now.wall.after(span), boot: self.now.boot.after(span) };
        self.feed(Input::Tick);
    }

    /// claude answers with this many tokens in its context, and ends well.
    fn succeed(&mut self, context_tokens: u64) {
        self.line(GOOD_INIT);
        self.line(&format!(
            r#"{{"type":"assistant","message":{{"id":"m{context_tokens}","content":[],"usage":{{"input_tokens":{context_tokens}}}}}}}"#
        ));
        self.line(
            r#"{"type":"result","subtype":"success","is_error":false,"modelUsage":{"claude-x":{"contextWindow":1000}},"usage":{"input_tokens":1}}"#,
        );
        self.exit(0);
    }

    /// claude refuses the prompt, because the conversation is too long.
    fn overflow(&mut self) {
        self.line(GOOD_INIT);
        self.line(r#"{"type":"result","subtype":"success","is_error":true,"result":"Prompt is too long","terminal_reason":"blocking_limit"}"#);
        self.exit(1);
    }

    /// `/compact` ends: with this size, or with this complaint.
    fn compacted(&mut self, result: Result<u64, &str>) {
        match result {
            Ok(tokens) => {
                self.line(r#"{"type":"system","subtype":"status","status":null,"compact_result":"success"}"#);
                self.line(GOOD_INIT);
                self.line(&format!(
                    r#"{{"type":"system","subtype":"compact_boundary","compact_metadata":{{"trigger":"manual","post_tokens":{tokens}}}}}"#
                ));
            }
            Err(error) => {
                self.line(&format!(
                    r#"{{"type":"system","subtype":"status","status":null,"compact_result":"failed","compact_error":"{error}"}}"#
                ));
                self.line(GOOD_INIT);
            }
        }
        self.line(
            r#"{"type":"result","subtype":"success","is_error":false,"result":"","num_turns":0,"local_command":"compact"}"#,
        );
        self.exit(0);
    }

    /// The turn ends OK, and the broker has nothing more.
    #[track_caller]
    fn settle(&mut self) {
        self.settle_as(Outcome::Ok);
    }

    #[track_caller]
    fn settle_as(&mut self, outcome: Outcome) {
        assert_eq!(self.ending().outcome, Some(outcome));
        self.feed(Input::Ended(EndTurnAnswer::default()));
    }

    /// The broker settles the turn, however it ended.
    fn drain_and_settle(&mut self) {
        self.drain();
        self.feed(Input::Ended(EndTurnAnswer::default()));
    }

    /// The turn ends OK, and the machine opens a turn of this kind.
    #[track_caller]
    fn settle_into(&mut self, kind: Kind) {
        self.settle();
        assert_eq!(self.drain(), [Output::Open(kind)]);
    }

    #[track_caller]
    fn assert_ended(&mut self, turn_id: u64, outcome: Outcome) {
        let ending = self.ending();
        assert_eq!((ending.turn_id, ending.outcome), (turn_id, Some(outcome)));
    }

    #[track_caller]
    fn assert_unavailable(&mut self) {
        let outputs = self.drain();
        let is_reported = matches!(
            outputs[..],
            [Output::Report(HarnessState::Unavailable, Some(_)), Output::Begin]
        );
        assert!(is_reported, "{outputs:?}");
    }

    #[track_caller]
    fn assert_ending(&mut self, outcome: Outcome, says: &str) {
        let ending = self.ending();
        assert_eq!(ending.outcome, Some(outcome));
        assert!(ending.error.contains(says), "{ending:?}");
    }

    /// claude succeeds, and the machine waits for the next turn.
    #[track_caller]
    fn work(&mut self, context_tokens: u64) {
        self.succeed(context_tokens);
        self.settle();
        self.drain();
    }

    /// The conversation is compacted because it is too long, and the work begins again.
    #[track_caller]
    fn make_room(&mut self) {
        self.overflow();
        self.launch();
        self.compacted(Ok(10));
        self.launch();
    }

    /// Turn 8 compacts the conversation by command 30.
    fn compact_by_order(&mut self) {
        self.feed(command(30, Order::CompactSession));
        self.drain();
        self.open(8);
    }

    fn fail_login_twice(&mut self) {
        self.fail("authentication_failed", 401);
        self.launch();
        self.fail("authentication_failed", 401);
    }

    /// claude fails the API call in this way and exits.
    fn fail(&mut self, kind: &str, status: u16) {
        self.line(&format!(
            r#"{{"type":"assistant","error":"{kind}","api_error_status":{status},"message":{{"id":"x","content":[]}}}}"#
        ));
        self.line(&format!(
            r#"{{"type":"result","subtype":"success","is_error":true,"result":"words","terminal_reason":"api_error","api_error_status":{status}}}"#
        ));
        self.exit(1);
    }
}

fn settings() -> Configured {
    let spans = Spans {
        turn_idle: Some(Duration::from_secs(100)),
        turn_max: Some(Duration::from_secs(1000)),
        rate_limit_sleep: None,
        drain_grace: Duration::from_secs(20),
        kill_grace: Duration::from_secs(5),
    };
    let defaults = Defaults {
        label: "hive".into(),
        model: "haiku".into(),
        operator_pronouns: "she/her".into(),
        mcp_server_name: "hive".into(),
        watermarks: Watermarks { cache_ttl: Duration::from_secs(3600), ..Watermarks::default() },
        extra_servers: vec!["extra".into()],
    };
    Configured { spans, defaults, probes: false }
}

fn facts() -> Attachment {
    Attachment { agent: Some(bob()), ..Attachment::default() }
}

fn bob() -> Agent {
    let policy = v1::Policy { tool_groups: vec!["messaging".into()], ..v1::Policy::default() };
    let wire = v1::Agent { name: "bob".into(), policy: Some(policy), ..v1::Agent::default() };
    read::agent(wire).expect("an agent")
}

/// The session of an agent that differs from [`bob`] in this.
fn attached(differ: impl FnOnce(&mut Agent)) -> Input {
    let mut agent = bob();
    differ(&mut agent);
    Input::Attached(Box::new(Attachment { agent: Some(agent), ..Attachment::default() }))
}

fn found(logged_in: bool) -> Input {
    Input::Probed(Ok(Found { logged_in, problems: Vec::new() }))
}

fn resumed(open_turns: &[u64]) -> Input {
    let open_turns = open_turns.to_vec();
    Input::Attached(Box::new(Attachment { resumed: true, open_turns, ..facts() }))
}

fn begun(turn_id: u64) -> Input {
    begun_with(turn_id, Vec::new())
}

fn begun_with(turn_id: u64, commands: Vec<Command>) -> Input {
    let message = samples::message(17, samples::agent("alice"), "hello");
    Input::Begun(Arc::new(Begun { commands, ..samples::begun(turn_id, message) }))
}

fn command(id: u64, order: Order) -> Input {
    Input::Command(ordered(id, order))
}

fn ordered(id: u64, order: Order) -> Command {
    Command { id: CommandId::new(id).expect("an id"), order, create_time: WallTime(0) }
}

fn cancel_turn(turn_id: u64) -> Order {
    Order::CancelTurn(TurnId::new(turn_id).expect("an id"))
}

fn parked(cause: Outcome, secs: Option<u64>, now: Now) -> Input {
    let remaining = secs.map(Duration::from_secs);
    let until = remaining.map(|span| now.wall.after(span));
    let park = park::View { cause, until, remaining, error: String::new() };
    Input::Ended(EndTurnAnswer { park: Some(park), ..EndTurnAnswer::default() })
}
