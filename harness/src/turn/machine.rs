//! The machine: its state, its inputs and its outputs.
//!
//! Map: [`orders`], [`upkeep`], [`login`] and [`on_demand`] each own a part of the state; the other
//! modules decide the effect of an input.

mod broker;
mod login;
mod on_demand;
mod orders;
mod process;
mod steps;
mod timers;
mod upkeep;

use std::collections::VecDeque;
use std::time::Duration;

use hive_core::agent::{Agent, HarnessState};
use hive_core::park;
use hive_core::time::{BootTime, Now, WallTime};
use hive_core::turn::Kind;

use crate::config::Spans;
use crate::prompt::system::Identity;
use crate::turn::context::Watermarks;
use crate::turn::input::{Attachment, Configured, Input};
use crate::turn::machine::login::Login;
use crate::turn::machine::on_demand::OnDemand;
use crate::turn::machine::orders::Orders;
use crate::turn::machine::upkeep::Upkeep;
use crate::turn::output::{Leaving, Output};
use crate::turn::phase::{Cli, Parked, Phase};

/// Maximum wait for the broker's answer before the program ends, if it has a turn to end.
pub const LEAVE_PATIENCE: Duration = Duration::from_secs(10);
/// Maximum wait for the broker's answer before the program ends, if no turn is known to be open.
const IDLE_LEAVE_PATIENCE: Duration = Duration::from_secs(3);

/// Defaults for values that the broker does not set.
#[derive(Clone, Debug)]
pub struct Defaults {
    pub label: String,
    pub model: String,
    pub operator_pronouns: String,
    pub mcp_server_name: String,
    /// When the conversation is compacted or replaced.
    pub watermarks: Watermarks,
    pub extra_servers: Vec<String>,
}

/// The decisions of the harness, as a state machine.
#[derive(Debug)]
pub struct Machine {
    spans: Spans,
    defaults: Defaults,
    facts: Attachment,
    phase: Phase,
    cli: Cli,
    probing: bool,
    orders: Orders,
    upkeep: Upkeep,
    login: Login,
    on_demand: OnDemand,
    parked: Option<Parked>,
    /// When a program that must end stops waiting for the broker.
    leave_by: Option<BootTime>,
    /// Whether a turn that is open at the broker must be fetched before any other step.
    begin_first: bool,
    /// The reported problems of the agent's own MCP servers: name and state.
    missing: Vec<(String, String)>,
    highest_turn_id: u64,
    cost_before: Option<f64>,
    recoveries: u32,
    status: Option<(HarnessState, Option<WallTime>)>,
    outbox: VecDeque<Output>,
}

impl Machine {
    /// Creates a machine that attaches first.
    pub fn new(spans: Spans, defaults: Defaults) -> Self {
        Self {
            spans,
            upkeep: Upkeep::new(defaults.watermarks.clone()),
            defaults,
            facts: Attachment::default(),
            phase: Phase::Detached,
            cli: Cli::Unknown,
            probing: false,
            orders: Orders::default(),
            login: Login::default(),
            on_demand: OnDemand::default(),
            parked: None,
            leave_by: None,
            begin_first: false,
            missing: Vec::new(),
            highest_turn_id: 0,
            cost_before: None,
            recoveries: 0,
            status: None,
            outbox: VecDeque::from([Output::Attach]),
        }
    }

    /// Processes an input.
    pub fn handle(&mut self, input: Input, now: Now) {
        if matches!(self.phase, Phase::Gone) {
            return;
        }
        match input {
            Input::Attached(facts) => self.attached(*facts, now),
            Input::AgentChanged(agent) => self.agent_changed(*agent, now),
            Input::KinChanged(kin) => self.facts.kin = kin,
            Input::Configured(configured) => self.configured(*configured),
            Input::Command(command) => self.command(command, now),
            Input::UnknownCommand(id) => self.unknown_command(id),
            Input::Fenced(why) => self.fenced(&why, now),
            Input::Begun(begun) => self.begun(begun, now),
            Input::Opened(opened) => self.opened(opened, now),
            Input::NotOpened => self.not_opened(now),
            Input::Refused(why) => self.refused(&why, now),
            Input::Ended(answer) => self.ended(answer, now),
            Input::TurnGone(turn_id) => self.turn_gone(turn_id, now),
            Input::Probed(found) => self.probed(found, now),
            Input::NotStarted(why) => self.not_started(why, now),
            Input::Event(event) => self.event(&event, now),
            Input::Stderr(text) => self.stderr(&text),
            Input::Exited(exit) => self.exited(exit, now),
            Input::LoggedIn => self.logged_in(now),
            Input::LoginWanted(wanted) => self.login_wanted(wanted),
            Input::LoginEnded(went_well) => self.login_ended(went_well),
            Input::Drain => self.drain(now),
            Input::Left(open_turns) => self.left(&open_turns, now),
            Input::TasksRun(has_tasks) => self.tasks_run(has_tasks),
            Input::LeaveAnswered(answer) => self.leave_answered(answer),
            Input::Tick => {}
        }
        self.tick(now);
    }

    /// Applies changed settings. A running turn keeps those with which it was started.
    fn configured(&mut self, configured: Configured) {
        let Configured { spans, defaults, probes } = configured;
        self.spans = spans;
        self.upkeep.configure(defaults.watermarks.clone());
        self.defaults = defaults;
        if probes {
            self.cli = Cli::Unknown;
        }
    }

    /// Returns the next output; `None`: wait for the next input or for the deadline.
    pub fn poll(&mut self) -> Option<Output> {
        self.outbox.pop_front()
    }

    /// Returns the turn whose claude runs, or is about to.
    pub fn running_turn_id(&self) -> Option<u64> {
        if let Phase::Running(run) = &self.phase {
            return Some(run.plan.job.turn_id);
        }
        if let Phase::Probing(job) = &self.phase { Some(job.turn_id) } else { None }
    }

    fn emit(&mut self, output: Output) {
        self.outbox.push_back(output);
    }

    fn note(&mut self, text: impl Into<String>) {
        self.emit(Output::Note(text.into()));
    }

    /// Reports the state of the harness to the broker, if it differs from the last report.
    fn report(&mut self, state: HarnessState, until: Option<WallTime>) {
        if self.status != Some((state, until)) {
            self.status = Some((state, until));
            self.emit(Output::Report(state, until));
        }
    }

    /// Forgets the last report: the broker sets the state itself when it opens a turn.
    fn forget_status(&mut self) {
        self.status = None;
    }

    /// Returns whether no further turn may be run.
    fn is_leaving(&self) -> bool {
        self.orders.is_leaving()
    }

    /// Ends the program, or waits for the next turn. No turn may be open.
    fn await_turn(&mut self, now: Now) {
        if self.is_leaving() {
            self.end_program();
            return;
        }
        if self.orders.wants_compaction() && !self.begin_first {
            self.open(Kind::Compact);
            return;
        }
        self.begin_first = false;
        self.phase = Phase::Beginning;
        self.report_idle(now);
        self.emit(Output::Begin);
    }

    /// Ends the program. No turn may be open.
    fn end_program(&mut self) {
        if let Some(command_id) = self.orders.restart() {
            self.close(command_id, String::new());
        }
        self.leave(self.orders.leaving());
    }

    /// Ends the program without the broker's answer. The broker requeues the deliveries of an open
    /// turn by itself.
    fn end_unanswered(&mut self) {
        if self.orders.is_halting() {
            self.leave(Leaving::Restart);
            return;
        }
        let idle = matches!(
            self.phase,
            Phase::Leaving
                | Phase::Detached
                | Phase::Starting
                | Phase::Beginning
                | Phase::Recovering(_)
                | Phase::Unsure(_)
        );
        self.leave(if idle { Leaving::Drained } else { Leaving::Unanswered });
    }

    fn leave(&mut self, leaving: Leaving) {
        self.phase = Phase::Gone;
        self.emit(Output::Exit(leaving));
    }

    /// Reports the state of an agent without a turn.
    fn report_idle(&mut self, now: Now) {
        let broken_until = match &self.cli {
            Cli::Broken { next_at, .. } => Some(now.wall_at(*next_at)),
            Cli::Unknown | Cli::Ready => None,
        };
        let (state, until) = match (&self.parked, broken_until) {
            (Some(parked), _) => (park::state_of(parked.park.cause), parked.park.until),
            (None, Some(until)) => (HarnessState::Unavailable, Some(until)),
            (None, None) => (HarnessState::Idle, None),
        };
        self.report(state, until);
    }

    /// Returns the values of the system prompt.
    fn identity(&self) -> Identity {
        let Attachment { agent, kin, operator_pronouns, hive_domain, .. } = &self.facts;
        let agent = agent.as_ref();
        let text = |of: fn(&Agent) -> &String| agent.map(of).cloned().unwrap_or_default();
        let parent = agent.and_then(|agent| agent.parent.as_ref());
        Identity {
            label: agent
                .map_or_else(|| self.defaults.label.clone(), |agent| agent.name.to_string()),
            domain: hive_domain.clone(),
            operator_pronouns: or_default(operator_pronouns, &self.defaults.operator_pronouns),
            hive_name: text(|agent| &agent.hive_name),
            swarm_name: text(|agent| &agent.swarm_name),
            mcp_server_name: self.defaults.mcp_server_name.clone(),
            parent: parent.map(ToString::to_string).unwrap_or_default(),
            role: text(|agent| &agent.role),
            kin: kin.clone(),
        }
    }

    /// Returns the model of the next turn.
    fn next_model(&self) -> String {
        let of_agent = || self.facts.agent.as_ref().map(|agent| agent.model.as_str());
        let model = self.orders.model().or_else(of_agent).unwrap_or_default();
        or_default(model, &self.defaults.model)
    }

    /// Returns the agent's tool groups.
    fn tool_groups(&self) -> Vec<String> {
        let agent = self.facts.agent.as_ref();
        agent.map(|agent| agent.policy.tool_groups.clone()).unwrap_or_default()
    }
}

fn or_default(text: &str, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text.to_owned() }
}
