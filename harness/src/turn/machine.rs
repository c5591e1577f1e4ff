//! The machine itself: its state, its door for inputs and its door for outputs.

use std::collections::VecDeque;
use std::time::Duration;

use hive_core::agent::{Agent, HarnessState};
use hive_core::park;
use hive_core::time::{BootTime, Now, WallTime};
use hive_core::turn::Kind;

use crate::config::Spans;
use crate::prompt::system::Identity;
use crate::turn::context::{Context, Watermarks};
use crate::turn::input::{Attachment, Configured, Input};
use crate::turn::output::{Leaving, Output};
use crate::turn::phase::{Cli, Drain, Parked, Phase};

/// How long a broker that does not answer may hold up the end of a program that has a turn to hand
/// back.
pub(crate) const LEAVE_PATIENCE: Duration = Duration::from_secs(10);
/// The same where no turn is open as far as we know.
pub(crate) const IDLE_LEAVE_PATIENCE: Duration = Duration::from_secs(3);

/// What holds where the broker says nothing else.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The agent's name.
    pub label: String,
    /// The model.
    pub model: String,
    /// The operator's pronouns.
    pub operator_pronouns: String,
    /// The name of our MCP server.
    pub mcp_server_name: String,
    /// When the conversation is compacted or begun anew.
    pub watermarks: Watermarks,
    /// The agent's own MCP servers.
    pub extra_servers: Vec<String>,
}

/// Decides what the harness does.
#[derive(Debug)]
pub struct Machine {
    pub(crate) spans: Spans,
    pub(crate) defaults: Defaults,
    pub(crate) facts: Attachment,
    pub(crate) phase: Phase,
    pub(crate) cli: Cli,
    pub(crate) probing: bool,
    pub(crate) drain: Option<Drain>,
    /// When a program that is to end stops waiting for the broker.
    pub(crate) leave_by: Option<BootTime>,
    /// The command to begin anew.
    pub(crate) restart: Option<u64>,
    /// Whether the program drains because its agent was stopped: it starts again afterwards, and
    /// waits.
    pub(crate) halting: bool,
    /// Commands that want a new conversation.
    pub(crate) new_session: Vec<u64>,
    /// Commands that want the conversation compacted.
    pub(crate) compacts: Vec<u64>,
    /// Whether the agent asked for another turn in the last one that was about something.
    pub(crate) wants_next: bool,
    /// Whether a turn that is open at the broker has to be fetched before anything else.
    pub(crate) begin_first: bool,
    pub(crate) watermarks: Watermarks,
    pub(crate) context: Context,
    /// The dialogue in which an operator logs claude in.
    pub(crate) dialogue: Option<u64>,
    /// Whether the look at the CLI that is under way is out of date already.
    pub(crate) look_again: bool,
    /// What was told of the agent's own MCP servers: name and state.
    pub(crate) missing: Vec<(String, String)>,
    /// Cancels that wait for their turn: command and turn.
    pub(crate) cancels: Vec<(u64, u64)>,
    /// Commands that were closed lately, and how; a lost stream shows them again.
    pub(crate) closed: VecDeque<(u64, String)>,
    pub(crate) model: Option<String>,
    pub(crate) parked: Option<Parked>,
    pub(crate) logged_in: bool,
    pub(crate) highest_turn_id: u64,
    pub(crate) cost_before: Option<f64>,
    pub(crate) recoveries: u32,
    status: Option<(HarnessState, Option<WallTime>)>,
    outbox: VecDeque<Output>,
}

impl Machine {
    /// A machine that wants to attach.
    #[must_use]
    pub fn new(spans: Spans, defaults: Defaults) -> Self {
        Self {
            spans,
            watermarks: defaults.watermarks.clone(),
            defaults,
            facts: Attachment::default(),
            phase: Phase::Detached,
            cli: Cli::Unknown,
            probing: false,
            drain: None,
            leave_by: None,
            restart: None,
            halting: false,
            new_session: Vec::new(),
            compacts: Vec::new(),
            wants_next: false,
            begin_first: false,
            context: Context::default(),
            dialogue: None,
            look_again: false,
            missing: Vec::new(),
            cancels: Vec::new(),
            closed: VecDeque::new(),
            model: None,
            parked: None,
            logged_in: false,
            highest_turn_id: 0,
            cost_before: None,
            recoveries: 0,
            status: None,
            outbox: VecDeque::from([Output::Attach]),
        }
    }

    /// Takes in what happened.
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
            Input::Opened(turn_id) => self.opened(turn_id, now),
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
            Input::Left(open_turn) => self.left(open_turn, now),
            Input::Tick => {}
        }
        self.tick(now);
    }

    /// Takes changed settings over. A turn that runs keeps what it was started with.
    fn configured(&mut self, configured: Configured) {
        let Configured { spans, defaults, probes } = configured;
        self.spans = spans;
        self.watermarks = defaults.watermarks.clone();
        self.defaults = defaults;
        if probes {
            self.cli = Cli::Unknown;
        }
    }

    /// The next thing to do; `None`: wait for the next input or for the deadline.
    pub fn poll(&mut self) -> Option<Output> {
        self.outbox.pop_front()
    }

    /// The turn whose claude runs, or is about to.
    #[must_use]
    pub fn running_turn_id(&self) -> Option<u64> {
        match &self.phase {
            Phase::Running(run) => Some(run.course.job.turn_id),
            Phase::Probing(job) => Some(job.turn_id),
            Phase::Detached
            | Phase::Starting
            | Phase::Stopped
            | Phase::Beginning
            | Phase::Opening(_)
            | Phase::Discarding(_)
            | Phase::Ending { .. }
            | Phase::Recovering(_)
            | Phase::Leaving
            | Phase::Gone => None,
        }
    }

    pub(crate) fn put(&mut self, output: Output) {
        self.outbox.push_back(output);
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.put(Output::Note(text.into()));
    }

    /// Tells the broker what the harness is doing, where it is not what it was told last.
    pub(crate) fn report(&mut self, state: HarnessState, until: Option<WallTime>) {
        if self.status != Some((state, until)) {
            self.status = Some((state, until));
            self.put(Output::Report(state, until));
        }
    }

    /// The broker shows a turn that it opened by itself: what it was told last is not what it
    /// shows.
    pub(crate) fn is_shown_thinking(&mut self) {
        self.status = None;
    }

    /// Whether no further turn may be run.
    pub(crate) fn is_leaving(&self) -> bool {
        self.drain.is_some() || self.restart.is_some()
    }

    /// Nothing is open: end the program, or wait for the next turn.
    pub(crate) fn rest(&mut self, now: Now) {
        if self.is_leaving() {
            self.go();
            return;
        }
        if !self.compacts.is_empty() && !self.begin_first {
            self.open(Kind::Compact);
            return;
        }
        self.begin_first = false;
        self.phase = Phase::Beginning;
        self.report_resting(now);
        self.put(Output::Begin);
    }

    /// Ends the program. Nothing may be open.
    pub(crate) fn go(&mut self) {
        let leaving = match self.restart {
            // A shutdown that was asked for wins over a new beginning.
            Some(command_id) => {
                self.close(command_id, String::new());
                if self.drain.is_some() { Leaving::Drained } else { Leaving::Restart }
            }
            None if self.halting => Leaving::Restart,
            None => Leaving::Drained,
        };
        self.leave(leaving);
    }

    /// Ends the program without the broker's word. What is open there, it gives back by itself.
    pub(crate) fn go_unanswered(&mut self) {
        if self.halting {
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
        );
        self.leave(if idle { Leaving::Drained } else { Leaving::Unanswered });
    }

    pub(crate) fn leave(&mut self, leaving: Leaving) {
        self.phase = Phase::Gone;
        self.put(Output::Exit(leaving));
    }

    /// What an agent without a turn is doing.
    pub(crate) fn report_resting(&mut self, now: Now) {
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

    /// Who the system prompt is for.
    pub(crate) fn identity(&self) -> Identity {
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

    /// The model of the next turn.
    pub(crate) fn next_model(&self) -> String {
        let of_agent = || self.facts.agent.as_ref().map(|agent| agent.model.as_str());
        let model = self.model.as_deref().or_else(of_agent).unwrap_or_default();
        or_default(model, &self.defaults.model)
    }

    /// The agent's tool groups.
    pub(crate) fn tool_groups(&self) -> Vec<String> {
        let agent = self.facts.agent.as_ref();
        agent.map(|agent| agent.policy.tool_groups.clone()).unwrap_or_default()
    }
}

fn or_default(text: &str, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text.to_owned() }
}
