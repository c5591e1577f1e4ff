//! Operators that decide about approvals: they read what would change, and approve, deny or
//! withdraw it, late, by what they read before it changed, twice, or beside another operator.
//!
//! Invariant: an operator approves only by a digest that it has read, and each answer has a text of
//! its own, which shows whose answer is the outcome.

use std::rc::Rc;

use hive_core::effect::{APPROVE, DENY, Effect};
use hive_core::reason::Reason;
use hive_history::{QuestionState, Reply};

use crate::call::{Call, Rights, Who};
use crate::net::Heard;
use crate::plan::Fault;
use crate::world::World;

/// Longest time after which a request is repeated, in ms: it has its first answer for seven days.
const REPEAT_MAX: u64 = 5 * 24 * 3_600_000;

impl World {
    /// Lets one operator or two decide about an approval.
    pub(crate) fn put_to_operators(self: &Rc<Self>, question: u64, asker: &str, wanted: &Call) {
        let both = [Who::operator(), Who::second_operator()];
        let count = if self.dice.chance(350) { 2 } else { 1 };
        for who in both.into_iter().take(count) {
            let (world, asker, wanted) = (Rc::clone(self), asker.to_owned(), wanted.clone());
            self.client(format!("decision about {question}"), async move {
                world.decide(&who, question, &asker, &wanted).await;
            });
        }
    }

    async fn decide(self: &Rc<Self>, who: &Who, question: u64, asker: &str, wanted: &Call) {
        let mut digest = String::new();
        for _ in 0..self.dice.between(1, 4) {
            if self.rest(self.dice.span(300_000 * self.calm / self.haste)).await {
                return;
            }
            // What was read before may have changed since.
            if digest.is_empty() || self.dice.chance(300) {
                match self.insist(who, Call::ReadQuestion { question }, 4).await.reply() {
                    Some(Reply::Question(seen)) if seen.state == QuestionState::Open => {
                        digest = seen.approval.map(|seen| seen.digest).unwrap_or_default();
                    }
                    Some(_) if self.dice.chance(200) => {}
                    Some(_) | None => return,
                }
                if self.dice.chance(250) {
                    self.meddle(who, asker, wanted).await;
                }
                if self.rest(self.dice.span(60_000)).await {
                    return;
                }
            }
            match self.give_verdict(who, question, &digest).await {
                Heard::Refused(Reason::DiffChanged) if self.dice.chance(800) => digest.clear(),
                Heard::Refused(Reason::DiffChanged) | Heard::Nothing => {}
                Heard::Refused(_) | Heard::Done(_) if self.dice.chance(200) => {}
                Heard::Refused(_) | Heard::Done(_) => return,
            }
        }
    }

    async fn give_verdict(self: &Rc<Self>, who: &Who, question: u64, digest: &str) -> Heard {
        let choice = self.dice.weighted(&[(6, Some(APPROVE)), (3, Some(DENY)), (1, None)]);
        let Some(choice) = choice else {
            return self.insist(who, Call::CancelQuestion { question }, 4).await;
        };
        let with_digest = choice == APPROVE || self.dice.chance(500);
        let digest = if with_digest { digest.to_owned() } else { String::new() };
        let (choices, text) = (vec![choice.to_owned()], self.fresh("verdict"));
        let call = Call::Answer { question, choices, text, digest };
        let request = self.request();
        let heard = self.insist_as(&request, who, call.clone(), 5).await;
        // The same request, perhaps of another life of the broker.
        if !matches!(heard, Heard::Refused(_))
            && self.dice.chance(300)
            && !self.rest(self.dice.span((900_000 * self.calm).min(REPEAT_MAX))).await
        {
            drop(self.call(who, &request, call).await);
        }
        heard
    }

    /// Changes what an approval is about, or makes it impossible.
    async fn meddle(self: &Rc<Self>, who: &Who, asker: &str, wanted: &Call) {
        if self.healing.get() {
            return;
        }
        if self.dice.chance(100) {
            self.move_agent(who, asker).await;
            return;
        }
        let call = if let Call::Schedule { schedule, .. } = wanted {
            (*schedule > 0).then_some(Call::CancelSchedule { schedule: *schedule })
        } else if let Call::Ask { effect: Some(effect), .. } = wanted {
            self.against(asker, effect)
        } else {
            None
        };
        if let Some(call) = call {
            drop(self.insist(who, call, 5).await);
        }
    }

    /// Returns a call of an operator that changes what an effect is about.
    fn against(&self, asker: &str, effect: &Effect) -> Option<Call> {
        let is_kid = |name: &str| self.known.borrow().kids.iter().any(|(kid, _)| kid == name);
        let come_and_go = self.plan.has(Fault::Topology);
        let retire = |agent: String| {
            self.known.borrow_mut().by_hand.insert(agent.clone());
            Call::Retire { agent }
        };
        let create = |agent: String, parent: &str| {
            self.known.borrow_mut().by_hand.insert(agent.clone());
            let parent = Some(parent.to_owned());
            Call::Create { agent, parent, adopt: false, rights: Rights::default() }
        };
        match effect {
            Effect::SetPolicy { name, parts, .. } => {
                let part = parts.first().copied()?;
                Some(Call::SetPolicy { agent: name.to_string(), part, number: self.fresh_limit() })
            }
            Effect::SetAgent { name, .. } if come_and_go && is_kid(name.as_str()) => {
                Some(retire(name.to_string()))
            }
            Effect::CreateAgent { name, .. } if come_and_go => {
                Some(create(name.to_string(), asker))
            }
            // A child below it changes the diff.
            Effect::RetireAgent { name } if self.dice.chance(500) => {
                let kid = self.fresh_kid(name.as_str());
                Some(create(kid, name.as_str()))
            }
            Effect::RetireAgent { name } => Some(retire(name.to_string())),
            Effect::SetAgent { .. }
            | Effect::CreateAgent { .. }
            | Effect::RunAction { .. }
            | Effect::CreateSchedule { .. }
            | Effect::ChangeSchedule { .. } => None,
        }
    }
}
