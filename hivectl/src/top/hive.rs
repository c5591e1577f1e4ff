//! The state of the hive as it was last read, in the types of the contract.
//!
//! What it is not: current. The broker has the current state; each [`Event`](super::update::Event)
//! names the [`Part`] to read again.
//!
//! Invariant: no part holds more rows than its bound, however much there is; the counts of the
//! broker's status say how much that is.

use std::collections::{BTreeMap, BTreeSet};

use hive_core::message::OPERATOR;
use hive_proto::v1::{
    Agent, Delivery, EventKind, GetBrokerStatusResponse, LooseEnd, LooseEndKind, Question,
    SystemKind, TurnOutcome,
};

use super::item::{Item, Key};
use super::tree::{Branch, branches};

pub(crate) const AGENTS_MAX: usize = 10_000;
/// Most unread messages, dead letters or held deliveries that are read, the oldest first.
pub(crate) const DELIVERIES_MAX: usize = 200;
/// Most questions to the operator that are read.
pub(crate) const QUESTIONS_MAX: usize = 1_000;
/// Most loose ends that are read, over all agents.
pub(crate) const LOOSE_ENDS_MAX: usize = 2_000;

/// A part of the state that has its own calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Agents,
    Mail,
    DeadLetters,
    Held,
    Questions,
    LooseEnds,
}

impl Part {
    pub(crate) const ALL: [Self; 6] =
        [Self::Agents, Self::Mail, Self::DeadLetters, Self::Held, Self::Questions, Self::LooseEnds];

    /// Returns what may have changed when this happened to this agent.
    pub(crate) fn touched(kind: EventKind, agent: &str) -> Vec<Self> {
        let mut parts = vec![Self::Agents];
        match kind {
            EventKind::DeliveryDead | EventKind::DeliveryRedriven => {
                parts.extend([Self::DeadLetters, Self::LooseEnds]);
            }
            EventKind::DeliveryDropped => {
                parts.extend([Self::DeadLetters, Self::Held, Self::LooseEnds]);
            }
            EventKind::DeliveryHeld | EventKind::DeliveryReleased => parts.push(Self::Held),
            EventKind::AgentRetired | EventKind::AgentPurged => {
                parts.extend([Self::Questions, Self::LooseEnds]);
            }
            // What an open approval would change may be something else now.
            EventKind::AgentCreated | EventKind::AgentChanged => parts.push(Self::Questions),
            EventKind::QuestionAsked
            | EventKind::QuestionAnswered
            | EventKind::QuestionExpired
            | EventKind::QuestionCancelled => {
                parts.extend([Self::Mail, Self::Questions, Self::LooseEnds]);
            }
            EventKind::ReminderSet | EventKind::ReminderFired | EventKind::ReminderCancelled => {
                parts.push(Self::LooseEnds);
            }
            // An open approval may be about it, or about one too many. Agents stay as they are.
            EventKind::ScheduleCreated | EventKind::ScheduleChanged | EventKind::ScheduleEnded => {
                parts = vec![Self::Questions];
            }
            EventKind::CommandGiven
            | EventKind::CommandClosed
            | EventKind::Refused
            | EventKind::ScheduleFired => {
                parts.clear();
            }
            EventKind::MessageAccepted
            | EventKind::DeliveryLeased
            | EventKind::DeliveryAcked
            | EventKind::DeliveryReturned
            | EventKind::DeliverySuperseded
            | EventKind::TurnBegun
            | EventKind::TurnEnded
            | EventKind::HarnessAttached
            | EventKind::HarnessLost
            | EventKind::StatusChanged
            | EventKind::AgentStopped
            | EventKind::AgentStarted
            | EventKind::RestartRequested
            | EventKind::HarnessCrashed
            | EventKind::LogsRead
            | EventKind::ActionBegun
            | EventKind::ActionEnded
            | EventKind::PurgeFinished
            | EventKind::HarnessStateChanged
            | EventKind::AgentParked => {}
            // A restored backup, or an event of a newer broker, may mean anything.
            EventKind::LogBegun | EventKind::Unspecified => parts = Self::ALL.to_vec(),
        }
        // The operator's inbox is shown; those of agents are only counted.
        if agent == OPERATOR && !parts.is_empty() {
            parts.push(Self::Mail);
        }
        parts
    }
}

/// The result of one reading; a part that was not read is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) status: GetBrokerStatusResponse,
    pub(crate) agents: Option<Vec<Agent>>,
    pub(crate) mail: Option<Vec<Delivery>>,
    pub(crate) dead_letters: Option<Vec<Delivery>>,
    pub(crate) held: Option<Vec<Delivery>>,
    pub(crate) questions: Option<Vec<Question>>,
    pub(crate) loose_ends: Option<Vec<LooseEnd>>,
}

/// The hive as it was last read.
#[derive(Debug, Default)]
pub(crate) struct Hive {
    pub(crate) status: GetBrokerStatusResponse,
    pub(crate) agents: Vec<Agent>,
    pub(crate) branches: Vec<Branch>,
    pub(crate) mail: Vec<Delivery>,
    pub(crate) dead_letters: Vec<Delivery>,
    pub(crate) held: Vec<Delivery>,
    pub(crate) questions: Vec<Question>,
    loose_ends: Vec<LooseEnd>,
    loose_end_counts: BTreeMap<String, usize>,
}

impl Hive {
    pub(crate) fn apply(&mut self, reading: Reading) {
        let Reading { status, agents, mail, dead_letters, held, questions, loose_ends } = reading;
        self.status = status;
        if let Some(agents) = agents {
            self.branches = branches(&agents);
            self.agents = agents;
        }
        if let Some(mut questions) = questions {
            // The earliest deadline comes first; questions without one come last.
            questions.sort_by_key(|question| {
                (
                    question.deadline_time.is_none(),
                    question.deadline_time.map(|time| (time.seconds, time.nanos)),
                    question.id,
                )
            });
            self.questions = questions;
        }
        if let Some(loose_ends) = loose_ends {
            self.loose_end_counts = BTreeMap::new();
            for end in &loose_ends {
                *self.loose_end_counts.entry(end.agent.clone()).or_default() += 1;
            }
            self.loose_ends = loose_ends;
        }
        let deliveries = [
            (&mut self.mail, mail),
            (&mut self.dead_letters, dead_letters),
            (&mut self.held, held),
        ]
        .into_iter();
        for (old, new) in deliveries {
            if let Some(new) = new {
                *old = new;
            }
        }
    }

    /// Unread mail of the operator, but for what asks a question that is shown by itself.
    pub(crate) fn mail(&self) -> impl Iterator<Item = &Delivery> {
        let asked: BTreeSet<u64> = self.questions.iter().map(|question| question.id).collect();
        self.mail.iter().filter(move |delivery| {
            let message = delivery.message.as_ref();
            message.is_none_or(|message| {
                message.system_kind() != SystemKind::QuestionAsked
                    || !asked.contains(&message.question_id)
            })
        })
    }

    /// Agents that start no turns, with those that wait for a login apart.
    fn parked(&self, for_login: bool) -> impl Iterator<Item = &Agent> {
        self.agents.iter().filter(move |agent| {
            agent
                .park
                .as_ref()
                .is_some_and(|park| (park.cause() == TurnOutcome::AuthFailed) == for_login)
        })
    }

    /// Returns what waits on the operator, the earliest deadline first.
    pub(crate) fn waiting(&self) -> Vec<Item<'_>> {
        let questions = self.questions.iter().map(Item::Question);
        questions
            .chain(self.parked(true).map(Item::Login))
            .chain(self.mail().map(Item::Mail))
            .collect()
    }

    pub(crate) fn stuck(&self) -> Vec<Item<'_>> {
        let dead = self.dead_letters.iter().map(Item::DeadLetter);
        dead.chain(self.held.iter().map(Item::Held))
            .chain(self.parked(false).map(Item::Parked))
            .collect()
    }

    /// Returns the agents in the order of the tree.
    pub(crate) fn tree(&self) -> Vec<Item<'_>> {
        self.branches.iter().map(|branch| Item::Agent(&self.agents[branch.agent])).collect()
    }

    /// Returns the row with this key, if it still exists.
    pub(crate) fn find(&self, key: &Key) -> Option<Item<'_>> {
        let all = match key {
            Key::Question(_) | Key::Login(_) | Key::Mail(_) => self.waiting(),
            Key::DeadLetter(..) | Key::Held(..) | Key::Parked(_) => self.stuck(),
            Key::Agent(_) => self.tree(),
        };
        all.into_iter().find(|item| item.is(key))
    }

    pub(crate) fn loose_end_count(&self, agent: &str) -> usize {
        self.loose_end_counts.get(agent).copied().unwrap_or(0)
    }

    /// Returns the loose ends of an agent, among those that were read.
    pub(crate) fn loose_ends_of(&self, agent: &str) -> impl Iterator<Item = &LooseEnd> {
        self.loose_ends
            .iter()
            .filter(move |end| end.agent == agent && end.kind() != LooseEndKind::Unspecified)
    }

    /// Returns whether there may be loose ends that were not read.
    pub(crate) fn has_more_loose_ends(&self) -> bool {
        self.loose_ends.len() >= LOOSE_ENDS_MAX
    }

    /// Returns the agents of the held deliveries that were read.
    pub(crate) fn holders(&self) -> BTreeSet<String> {
        self.held.iter().map(|delivery| delivery.agent.clone()).collect()
    }
}
