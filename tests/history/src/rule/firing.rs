//! A message of a schedule that failed is not superseded by the next one: it is served until it
//! becomes a dead letter, however short the interval is.
//!
//! Silent: about opaque agents, about mail handed over during a backup that was restored, and about
//! failures before a redrive.

use super::Found;
use super::attempts::failures;
use crate::index::Index;
use crate::noun::State;
use crate::schedule::Firing;
use crate::violation::Rule::Firings;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    let end = index.history.observations.len();
    for delivery in &index.last.deliveries {
        let key = (delivery.agent.as_str(), delivery.message);
        let is_over = delivery.state == State::Superseded;
        if !is_over || index.is_opaque(key.0) || index.is_blurred(key) {
            continue;
        }
        let message = index.messages.get(&key.1);
        let Some(firing) = message.and_then(|message| Firing::of(&message.body)) else { continue };
        let (least, _) = failures(index, key, None, end, end);
        if least > 0 {
            let what = format!(
                "message {} of schedule {} to {} failed at least {least} times, and was superseded",
                key.1, firing.schedule, key.0
            );
            let seen: Vec<usize> = index.leases(key).map(|hand| hand.till).collect();
            found.add(Firings, &seen, what);
        }
    }
}
