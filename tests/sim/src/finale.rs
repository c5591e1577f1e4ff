//! The finale: all faults are healed, all mail is worked off, and then the broker's state is read
//! and judged.
//!
//! Invariant: nothing here reads mail in a way that could send a hint to a waiter.

use hive_broker::engine::error::AgentError;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use hive_broker::engine::mail::question::Which;
use hive_broker::engine::{Engine, Refusal};
use hive_core::agent::Agent;
use hive_core::delivery::State;
use hive_core::effect::Effect;
use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId};
use hive_core::message::Message;
use hive_core::question::Question;
use hive_core::schedule::Schedule;
use hive_core::{reminder, schedule};
use hive_history::{self as history, Final, Mark};

use crate::approvals::{AgentRow, Approvals, Rows, Shown};
use crate::call::{Call, To, Who};
use crate::firings::Firings;
use crate::seen;
use crate::serve::caller;
use crate::world::{Reader, World, say};
use crate::{audit, lanes};

/// The interval between checks for rest, in ms.
const LOOK: u64 = 300_000;
/// Maximum number of checks: longer than every park and backoff together.
const LOOKS: u64 = 40;
const PAGE: u32 = 500;
const EVENTS: u32 = 5_000;

const STATES: [State; 7] = [
    State::Ready,
    State::Leased,
    State::Held,
    State::Dead,
    State::Acked,
    State::Dropped,
    State::Superseded,
];

impl World {
    /// Ends all faults.
    pub(crate) fn heal(self: &Rc<Self>) {
        say!(self, "healed");
        self.healing.set(true);
        self.host.heal();
        self.mark(Mark::Note("the clock is about to be set".to_owned()));
        self.time.set_right();
        self.mark(Mark::ClockSet);
        self.wall_set.notify_waiters();
        self.healed.notify_waiters();
        if self.broker.borrow().is_none() {
            let world = Rc::clone(self);
            self.client("service manager".to_owned(), async move {
                world.sleep(120_000).await;
                if world.broker.borrow().is_none() {
                    world.start_broker();
                }
            });
        }
    }

    /// Waits until all is at rest, and judges.
    pub(crate) async fn conclude(self: &Rc<Self>) {
        // A client that was creating or retiring an agent has finished by then.
        self.sleep(2 * LOOK).await;
        self.calm_schedules().await;
        let read = self.read_agents();
        self.come_to_rest(&read).await;
        // A single message per agent: its waiter must get the hint for it, because there is no
        // other.
        for agent in &read {
            let send = Call::Send {
                to: To::Name(agent.clone()),
                body: self.fresh("last word"),
                reply_to: 0,
            };
            drop(self.insist(&Who::operator(), send, 5).await);
        }
        self.come_to_rest(&read).await;
        match self.read_final(&read).await {
            Ok(last) => {
                if let Some((_, engine)) = self.serving() {
                    let shown = Shown::of(&self.history.borrow());
                    let by_hand = self.known.borrow().by_hand.clone();
                    match by_the_log(&engine, &last, shown, &by_hand).await {
                        Ok(problems) => {
                            problems.into_iter().for_each(|problem| self.wrong(problem));
                        }
                        Err(refusal) => {
                            self.wrong(format!("the events cannot be read: {refusal:?}"));
                        }
                    }
                }
                let known = history::known(&self.history.borrow());
                for problem in crate::books::check(&known, &last) {
                    self.wrong(problem);
                }
                for violation in history::check(&self.history.borrow(), &last) {
                    let lines = self.history.borrow().lines(&violation.seen);
                    self.wrong(format!("{violation}\n{lines}"));
                }
            }
            Err(refusal) => self.wrong(format!("the end cannot be read: {refusal:?}")),
        }
        for problem in audit::audit(&self.host.database()) {
            self.wrong(problem);
        }
    }

    /// Returns the agents whose inboxes have a reader.
    fn read_agents(&self) -> Vec<String> {
        let seats = self.seats.borrow();
        let read = seats
            .iter()
            .filter(|seat| seat.reader != Reader::Nobody && !self.is_retired(&seat.name));
        read.map(|seat| seat.name.clone()).collect()
    }

    async fn come_to_rest(self: &Rc<Self>, read: &[String]) {
        let mut left = vec!["the broker does not serve".to_owned()];
        for _ in 0..LOOKS {
            self.sleep(LOOK).await;
            left = self
                .unread(read)
                .await
                .unwrap_or_else(|| vec!["the broker does not serve".to_owned()]);
            if left.is_empty() {
                // A delivery being settled gets its answer, and a reminder that just fired its
                // reader.
                self.sleep(60_000).await;
                if self.unread(read).await.is_some_and(|left| left.is_empty()) {
                    return;
                }
            }
        }
        self.wrong(format!("Liveness: nobody gets it: {}", left.join("; ")));
    }

    async fn read_final(&self, read: &[String]) -> Result<Final, Refusal> {
        let Some((_, engine)) = self.serving() else { return Ok(Final::default()) };
        let mut names: Vec<String> =
            self.seats.borrow().iter().map(|seat| seat.name.clone()).collect();
        names.extend(self.known.borrow().kids.iter().map(|(kid, _)| kid.clone()));
        let unread = names.iter().filter(|name| !read.contains(name)).cloned().collect();
        let mut deliveries = Vec::new();
        for name in names.iter().cloned().chain(["operator".to_owned()]) {
            deliveries.extend(deliveries_of(&engine, name).await?);
        }
        Ok(Final {
            wall: self.time.wall(),
            at_rest: true,
            unread,
            messages: messages(&engine).await?,
            deliveries,
            questions: questions(&engine).await?.iter().map(seen::question).collect(),
            reminders: reminders(&engine).await?,
            turns: turns(&engine).await?,
        })
    }
}

/// Returns the problems that the log of events shows.
async fn by_the_log(
    engine: &Engine,
    last: &Final,
    shown: Shown,
    by_hand: &BTreeSet<String>,
) -> Result<Vec<String>, Refusal> {
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let (page, _) = engine.events_after(after, None, EVENTS).await?;
        let Some(newest) = page.last() else { break };
        after = newest.sequence;
        events.extend(page);
    }
    let mut problems = lanes::check(&events, last);
    let asked = questions(engine).await?;
    let effect =
        |question: &Question| Some((question.id.get(), question.approval.as_ref()?.effect.clone()));
    let effects: BTreeMap<u64, Effect> = asked.iter().filter_map(effect).collect();
    let schedules = schedules(engine).await?;
    let agents: Vec<AgentRow> = agents(engine).await?.into_iter().map(AgentRow::from).collect();
    let mut firings = Firings::new(last, &effects);
    let rows = Rows { agents: &agents, schedules: &schedules, by_hand };
    let mut approvals = Approvals::new(&asked, rows);
    for event in &events {
        firings.follow(event);
        approvals.follow(event);
    }
    problems.extend(firings.finish(&schedules, last));
    problems.extend(approvals.finish(shown));
    Ok(problems)
}

async fn agents(engine: &Engine) -> Result<Vec<Agent>, Refusal> {
    let (mut found, mut after): (Vec<Agent>, _) = (Vec::new(), String::new());
    loop {
        let (page, more) = engine.list_agents(after, true, PAGE).await?;
        found.extend(page);
        if !more {
            return Ok(found);
        }
        after = found.last().map(|agent| agent.name.to_string()).unwrap_or_default();
    }
}

async fn schedules(engine: &Engine) -> Result<Vec<Schedule>, Refusal> {
    let states = vec![schedule::State::Active, schedule::State::Paused, schedule::State::Ended];
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (page, more) = engine
            .list_schedules(caller("operator"), String::new(), states.clone(), after, PAGE)
            .await?;
        found.extend(page);
        after = found.last().map(|schedule| schedule.id);
        if !more {
            return Ok(found);
        }
    }
}

async fn deliveries_of(engine: &Engine, name: String) -> Result<Vec<history::Delivery>, Refusal> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let listed = engine
            .list_deliveries(caller("operator"), name.clone(), STATES.to_vec(), after, PAGE)
            .await;
        // This agent does not exist, because no request to create it ever arrived.
        let (page, next) = match listed {
            Err(Refusal::Agent(AgentError::NotFound { .. })) => return Ok(Vec::new()),
            listed => listed?,
        };
        found.extend(page.iter().map(|delivery| history::Delivery {
            agent: delivery.agent.clone(),
            message: delivery.message.id.get(),
            state: seen::state(delivery.state),
            lane: seen::lane(delivery.lane),
            attempt: delivery.attempt,
            cause: delivery.cause.map(seen::cause),
        }));
        if next.is_none() {
            return Ok(found);
        }
        after = next;
    }
}

fn message(message: &Message) -> history::Message {
    history::Message {
        id: message.id.get(),
        origin: seen::origin(&message.origin, message.system_kind),
        recipients: message.recipients.clone(),
        recipient_count: message.recipient_count,
        body: message.body.clone(),
        reply_to: message.in_reply_to.map_or(0, MessageId::get),
        turn: message.turn_id.map_or(0, TurnId::get),
        key: message.coalescing_key.clone().unwrap_or_default(),
        question: message.question_id.map_or(0, QuestionId::get),
        reminder: message.reminder_id.map_or(0, ReminderId::get),
    }
}

async fn messages(engine: &Engine) -> Result<Vec<history::Message>, Refusal> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let (page, more) =
            engine.list_messages(caller("operator"), String::new(), None, before, PAGE).await?;
        for read in &page {
            let mut seen = message(read);
            if read.broadcast {
                seen.recipients = recipients(engine, read.id).await?;
            }
            found.push(seen);
        }
        before = page.last().map(|message| message.id);
        if !more {
            found.reverse();
            return Ok(found);
        }
    }
}

async fn recipients(engine: &Engine, id: MessageId) -> Result<Vec<String>, Refusal> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        // A small page, so that there are several.
        let (page, next) = engine.list_recipients(caller("operator"), id, after, 2).await?;
        found.extend(page);
        let Some(next) = next else { return Ok(found) };
        after = next;
    }
}

async fn questions(engine: &Engine) -> Result<Vec<Question>, Refusal> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let (page, more) =
            engine.list_questions(caller("operator"), Which::default(), before, PAGE).await?;
        before = page.last().map(|question| question.id);
        found.extend(page);
        if !more {
            found.reverse();
            return Ok(found);
        }
    }
}

async fn reminders(engine: &Engine) -> Result<Vec<history::Reminder>, Refusal> {
    let states = vec![reminder::State::Pending, reminder::State::Fired, reminder::State::Cancelled];
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (page, more) = engine
            .list_reminders(caller("operator"), String::new(), states.clone(), after, PAGE)
            .await?;
        found.extend(page.iter().map(|reminder| history::Reminder {
            id: reminder.id.get(),
            agent: reminder.agent.to_string(),
            body: reminder.body.clone(),
            state: match reminder.state {
                reminder::State::Pending => history::ReminderState::Pending,
                reminder::State::Fired => history::ReminderState::Fired,
                reminder::State::Cancelled => history::ReminderState::Cancelled,
            },
            due: reminder.due_time.0,
            closed: reminder.close_time.map_or(0, |time| time.0),
            message: reminder.message_id.map_or(0, MessageId::get),
        }));
        after = page.last().map(|reminder| reminder.id);
        if !more {
            return Ok(found);
        }
    }
}

async fn turns(engine: &Engine) -> Result<Vec<history::Turn>, Refusal> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let (page, more) =
            engine.list_turns(caller("operator"), String::new(), before, PAGE).await?;
        found.extend(page.iter().map(|turn| history::Turn {
            id: turn.id.get(),
            agent: turn.agent.to_string(),
            epoch: turn.session_epoch,
            message: turn.message_id.map_or(0, MessageId::get),
            attempt: turn.attempt,
            outcome: turn.outcome.map(seen::outcome),
            received: turn.received.iter().map(|id| id.get()).collect(),
            sent: turn.sent.iter().map(|id| id.get()).collect(),
        }));
        before = page.last().map(|turn| turn.id);
        if !more {
            found.reverse();
            return Ok(found);
        }
    }
}
