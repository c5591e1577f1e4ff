//! Co-processes: they send `Wake` to their agent, often with a coalescing key.

use std::rc::Rc;

use crate::call::{Call, Who};
use crate::world::World;

impl World {
    /// Runs one co-process of an agent.
    pub(crate) async fn wake_from_beside(self: Rc<Self>, agent: String) {
        let who = Who::agent(agent.clone());
        while !self.rest(self.dice.span(3_600_000 * self.calm / self.haste)).await {
            for _ in 0..self.dice.between(1, 3) {
                let key = self.dice.weighted(&[(2, ""), (4, "one"), (1, "two")]).to_owned();
                let label = self.dice.weighted(&[(3, "timer"), (1, "mailbox")]).to_owned();
                let wake = Call::Wake { label, body: self.fresh("wake"), key };
                drop(self.insist(&who, wake, 5).await);
                if self.dice.chance(500) {
                    break;
                }
            }
        }
    }
}
