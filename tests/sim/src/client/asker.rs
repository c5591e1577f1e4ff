//! Approvals: agents ask the operator for changes of themselves, of their children and of their
//! schedules, and withdraw what they asked.
//!
//! Invariant: each value that an agent asks for is asked for once, so that the state of an agent
//! shows which approvals it has. Agents that approvals create read no mail.

use std::rc::Rc;

use hive_core::agent::Policy;
use hive_core::effect::Effect;
use hive_history::Reply;

use crate::approvals::PARTS;
use crate::call::{Call, To, Who};
use crate::effect;
use crate::net::Heard;
use crate::plan::Fault;
use crate::serve::name;
use crate::world::World;

/// Most agents that approvals create in one run.
const KIDS_MAX: usize = 8;

impl World {
    /// Returns whether an agent may ask for approvals now.
    pub(crate) fn may_ask_approval(&self, agent: &str) -> bool {
        !self.healing.get() && self.seat(agent).is_some_and(|seat| seat.rights.approvals)
    }

    /// Asks for an approval, or withdraws a question.
    pub(crate) async fn ask_approval(self: &Rc<Self>, who: &Who) -> Heard {
        if self.dice.chance(120) {
            let known = self.known.borrow().questions.clone();
            let is_own = |(_, asker, to): &&(u64, String, String)| {
                *asker == who.name && to.as_str() == "operator"
            };
            let own: Vec<u64> = known.iter().filter(is_own).map(|(id, ..)| *id).collect();
            if let Some(question) = self.dice.pick(&own).copied() {
                return self.insist(who, Call::CancelQuestion { question }, 3).await;
            }
        }
        let long = 600_000 * self.calm;
        let ttl_ms = self.dice.weighted(&[(2, 0), (1, 20_000), (3, long)]);
        // A grant would allow a schedule at once.
        let has_grant = self.seat(&who.name).is_some_and(|seat| seat.rights.schedules);
        let call = if !has_grant && self.dice.chance(150) {
            self.wanted_schedule(&who.name, ttl_ms).await
        } else {
            let effect = Some(Box::new(self.wanted_effect(&who.name)));
            let (to, text) = (To::Name("operator".to_owned()), self.fresh("wish"));
            Call::Ask { to, text, options: Vec::new(), effect, ttl_ms }
        };
        let heard = self.insist(who, call.clone(), 4).await;
        if let Heard::Done(given) = &heard
            && let Reply::Asked { question, .. } = given.reply
        {
            self.learn_question(question, &who.name, "operator");
            self.put_to_operators(question, &who.name, &call);
        }
        heard
    }

    /// Returns a change of the agent itself or of a child of it.
    fn wanted_effect(&self, agent: &str) -> Effect {
        let kids: Vec<String> = {
            let known = self.known.borrow();
            let is_own = |(_, asker): &&(String, String)| asker == agent;
            known.kids.iter().filter(is_own).map(|(kid, _)| kid.clone()).collect()
        };
        let kid = self.dice.pick(&kids).cloned();
        let come_and_go = self.plan.has(Fault::Topology);
        let subject = kid.clone().filter(|_| self.dice.chance(400));
        let subject = name(subject.as_deref().unwrap_or(agent));
        match (self.dice.weighted(&[(3, 0), (3, 1), (2, 2), (2, 3)]), kid) {
            (0, _) => {
                Effect::SetAgent { name: subject, role: Some(self.fresh("role")), model: None }
            }
            (2, _) if come_and_go && self.known.borrow().kids.len() < KIDS_MAX => {
                let kid = self.fresh_kid(agent);
                let (role, model) = (String::new(), String::new());
                Effect::CreateAgent { name: name(&kid), role, model, policy: Policy::default() }
            }
            (3, Some(kid)) if come_and_go => Effect::RetireAgent { name: name(&kid) },
            _ => {
                let part = self.dice.pick(&PARTS).copied().unwrap_or(PARTS[0]);
                let policy = effect::policy(part, self.fresh_limit());
                Effect::SetPolicy { name: subject, policy, parts: vec![part] }
            }
        }
    }

    /// Returns the name of an agent that does not exist, of a parent.
    pub(crate) fn fresh_kid(&self, parent: &str) -> String {
        let kid = format!("kid{}", self.fresh_number());
        self.known.borrow_mut().kids.push((kid.clone(), parent.to_owned()));
        kid
    }

    /// Returns a limit that no policy has had before, and that keeps no agent from its work.
    pub(crate) fn fresh_limit(&self) -> u32 {
        u32::try_from(1_000 + self.fresh_number()).unwrap_or(u32::MAX)
    }
}
