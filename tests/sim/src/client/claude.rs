//! A claude process and its bridge: in one turn it receives, sends the messages of its script,
//! asks, answers and sets reminders, with the token of its process. It may continue after its turn.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use hive_core::reason::Reason;
use hive_history::{Handed, Kind, Origin, Reply};

use super::script;
use tokio::sync::Notify;

use crate::call::{Call, Due, To, Who};
use crate::net::Heard;
use crate::plan::Fault;
use crate::world::{World, say};

/// A turn and the process that runs it.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) id: u64,
    pub(crate) process: String,
    pub(crate) delivery: Option<Handed>,
    /// Tool calls whose result reached the model.
    pub(crate) returned: Rc<RefCell<BTreeSet<String>>>,
    /// Whether it must stop: its turn is cancelled, or its harness is dead.
    pub(crate) stopped: Rc<Cell<bool>>,
    /// Whether the process has ended.
    pub(crate) over: Rc<Cell<bool>>,
    pub(crate) ended: Rc<Notify>,
}

impl Turn {
    pub(crate) fn new(id: u64, process: String, delivery: Option<Handed>) -> Self {
        Self {
            id,
            process,
            delivery,
            returned: Rc::default(),
            stopped: Rc::default(),
            over: Rc::default(),
            ended: Rc::default(),
        }
    }

    fn who(&self, agent: &str) -> Who {
        let process = Some((self.process.clone(), self.id));
        Who { process, ..Who::agent(agent.to_owned()) }
    }
}

impl World {
    /// Runs a claude until its script is over.
    pub(crate) async fn run_claude(self: &Rc<Self>, agent: &str, turn: &Turn) {
        let who = turn.who(agent);
        let steps = self.dice.weighted(&[(2, 1), (4, 3), (2, 6)]);
        let mut said = 0;
        for step in 0..steps {
            if self.healing.get() {
                return;
            }
            self.pause(120_000).await;
            if self.healing.get() || turn.stopped.get() && !self.fails(Fault::Zombie, 300) {
                return;
            }
            if self.dice.chance(80) {
                // Two concurrent tool calls.
                let (world, who, turn) = (Rc::clone(self), who.clone(), turn.clone());
                self.client(format!("tool {step} of turn {}", turn.id), async move {
                    world.use_tool(&who, &turn, &mut 0).await;
                });
            }
            if !self.use_tool(&who, turn, &mut said).await {
                return;
            }
        }
        if !self.healing.get()
            && let Some(handed) = turn.delivery.as_ref()
            && handed.origin == Origin::System(Kind::QuestionAsked)
            && self.dice.chance(700)
        {
            self.answer_asked(&who, handed).await;
        }
    }

    /// Makes one tool call; returns whether the turn continues.
    async fn use_tool(self: &Rc<Self>, who: &Who, turn: &Turn, said: &mut u64) -> bool {
        if self.may_schedule(&who.name) && self.dice.chance(60) {
            let heard = self.manage_schedules(who).await;
            return !matches!(heard, Heard::Refused(Reason::TurnEnded));
        }
        if self.may_ask_approval(&who.name) && self.dice.chance(25) {
            let heard = self.ask_approval(who).await;
            return !matches!(heard, Heard::Refused(Reason::TurnEnded));
        }
        let what = self.dice.weighted(&[(6, 0), (5, 1), (1, 2), (1, 3), (1, 4), (1, 5), (2, 6)]);
        let heard = match (what, &turn.delivery) {
            (0, _) => return self.receive_in_turn(who, turn).await,
            (1, Some(handed)) if script::said(self, &who.name, handed.message, *said).is_some() => {
                let Some(call) = script::said(self, &who.name, handed.message, *said) else {
                    return true;
                };
                *said += 1;
                let to = self.target_of(who, &call);
                let heard = self.insist(who, call, 4).await;
                self.learn(who, &to, heard)
            }
            (2, _) => {
                let body = self.fresh("word");
                let to =
                    if self.dice.chance(150) { To::Everyone } else { To::Name(self.anybody()) };
                let target = to.clone();
                let heard = self.insist(who, Call::Send { to, body, reply_to: 0 }, 3).await;
                if let (Heard::Done(given), To::Name(name)) = (&heard, &target)
                    && let Reply::Sent { message, .. } = given.reply
                {
                    self.learn_delivery(name, message);
                }
                heard
            }
            (3, _) => self.insist(who, Call::NextTurn, 2).await,
            (4, _) => {
                let mine: Vec<_> = self
                    .known
                    .borrow()
                    .reminders
                    .iter()
                    .filter(|(_, owner)| *owner == who.name)
                    .cloned()
                    .collect();
                let Some((reminder, _)) = self.dice.pick(&mine).cloned() else { return true };
                self.insist(who, Call::CancelReminder { reminder }, 3).await
            }
            (5, _) => {
                let asked: Vec<_> = self
                    .known
                    .borrow()
                    .questions
                    .iter()
                    .filter(|(_, asker, _)| *asker == who.name)
                    .cloned()
                    .collect();
                let Some((question, ..)) = self.dice.pick(&asked).cloned() else { return true };
                self.insist(who, Call::CancelQuestion { question }, 3).await
            }
            _ => {
                let owed: Vec<_> = self
                    .known
                    .borrow()
                    .questions
                    .iter()
                    .filter(|(_, _, target)| *target == who.name)
                    .cloned()
                    .collect();
                match self.dice.pick(&owed).cloned() {
                    Some((question, ..)) => {
                        let answer = script::answer(self, false);
                        self.insist(who, script::given(question, answer), 4).await
                    }
                    None => {
                        let due = Due::At(
                            self.time.wall()
                                + 1_000
                                + i64::try_from(self.dice.span(1_200_000)).unwrap_or(0),
                        );
                        let heard = self
                            .insist(who, Call::Remind { body: self.fresh("note"), due }, 4)
                            .await;
                        self.learn(who, "", heard)
                    }
                }
            }
        };
        !matches!(heard, Heard::Refused(Reason::TurnEnded))
    }

    fn target_of(&self, who: &Who, call: &Call) -> String {
        let (Call::Ask { to, .. } | Call::Send { to, .. }) = call else { return String::new() };
        match to {
            To::Name(name) => name.clone(),
            To::Parent => self.parent_of(&who.name),
            To::Everyone => String::new(),
        }
    }

    fn learn(&self, who: &Who, target: &str, heard: Heard) -> Heard {
        if let Heard::Done(given) = &heard {
            if let Reply::Asked { question, .. } = &given.reply {
                self.learn_question(*question, &who.name, target);
            } else if let Reply::Reminded { reminder, .. } = &given.reply {
                self.learn_reminder(*reminder, &who.name);
            } else if let Reply::Sent { message, .. } = &given.reply
                && !target.is_empty()
            {
                self.learn_delivery(target, *message);
            }
        }
        heard
    }

    async fn receive_in_turn(self: &Rc<Self>, who: &Who, turn: &Turn) -> bool {
        let tool_use = self.fresh("tool");
        let max = u32::try_from(self.dice.between(1, 5)).unwrap_or(1);
        let call = Call::Receive {
            max,
            wait_ms: 0,
            lease_ms: 60_000,
            tool_use: tool_use.clone(),
            settle: Vec::new(),
        };
        match self.insist(who, call, 3).await {
            Heard::Done(given) => {
                let Reply::Leased(handed) = given.reply else { return true };
                // A tool result that the model did not see requeues its mail.
                if !handed.is_empty() && !turn.stopped.get() && self.dice.chance(900) {
                    turn.returned.borrow_mut().insert(tool_use);
                }
                for handed in &handed {
                    self.learn_delivery(&who.name, handed.message);
                    if handed.origin == Origin::System(Kind::QuestionAsked) && self.dice.chance(500)
                    {
                        self.answer_asked(who, handed).await;
                    }
                }
                true
            }
            Heard::Refused(Reason::TurnEnded) => false,
            Heard::Refused(_) | Heard::Nothing => true,
        }
    }

    /// Answers the question in this delivery.
    pub(crate) async fn answer_asked(self: &Rc<Self>, who: &Who, handed: &Handed) {
        let asker = handed.body.split(' ').next().unwrap_or_default().to_owned();
        self.learn_question(handed.question, &asker, &who.name);
        let answer = script::answer(self, handed.body.contains("Options"));
        drop(self.insist(who, script::given(handed.question, answer), 4).await);
    }

    pub(crate) fn start_claude(self: &Rc<Self>, agent: &str, turn: &Turn) {
        let (world, agent, turn) = (Rc::clone(self), agent.to_owned(), turn.clone());
        self.client(format!("claude of turn {}", turn.id), async move {
            world.run_claude(&agent, &turn).await;
            turn.over.set(true);
            turn.ended.notify_one();
        });
    }

    /// Keeps a process running after its turn.
    pub(crate) fn haunt(self: &Rc<Self>, agent: &str, turn: &Turn) {
        if !self.fails(Fault::Zombie, 150) {
            return;
        }
        let (world, agent, turn) = (Rc::clone(self), agent.to_owned(), turn.clone());
        say!(self, "the claude of turn {} goes on", turn.id);
        self.client(format!("zombie of turn {}", turn.id), async move {
            let who = turn.who(&agent);
            for _ in 0..2 {
                world.pause(30_000).await;
                world.use_tool(&who, &turn, &mut 0).await;
            }
        });
    }
}
