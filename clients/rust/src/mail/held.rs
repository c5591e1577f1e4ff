//! What a stream of deliveries holds: leases, and settlements without a result.
//!
//! It knows no stream and no clock. Invariant: a delivery is handed out once for each lease,
//! however often the stream breaks; a settlement is sent until its result has come, and its results
//! come in the order in which settlements were sent.

use std::collections::{HashMap, VecDeque};

use tokio::sync::{oneshot, watch};

use super::delivery::ERROR_BYTES_MAX;
use crate::error::Error;
use crate::v1::settlement::{Action, Target};
use crate::v1::settlement_result::Result as Outcome;
use crate::v1::{DeliveryState, LeasedDelivery, Settlement, SettlementResult};

/// Settlements of one step.
const STEP_MAX: usize = 120;
// A request may have 512 KiB, and an error is the largest part of a settlement.
const _: () = assert!(STEP_MAX * (ERROR_BYTES_MAX + 200) < 512 * 1024);
/// Steps without a result: one is on its way while the other one is worked on. Later settlements
/// wait, and go together.
const STEPS_MAX: usize = 2;

/// What the program asks of its mail.
#[derive(Debug)]
pub(super) enum Order {
    /// To settle a delivery.
    Settle(Pending),
    /// To end.
    Close,
}

/// A settlement without a result.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) token: String,
    pub(super) action: Action,
    /// The receiver of the result.
    pub(super) reply: oneshot::Sender<Result<DeliveryState, Error>>,
}

impl Pending {
    fn settlement(&self) -> Settlement {
        let target = Some(Target::LeaseToken(self.token.clone()));
        Settlement { target, action: Some(self.action.clone()) }
    }
}

/// A lease that the program does not have yet.
#[derive(Debug)]
pub(super) struct New {
    pub(super) leased: LeasedDelivery,
    /// Whether it is lost.
    pub(super) lost: watch::Receiver<bool>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The leases, with what notifies their holders of a loss.
    leases: HashMap<String, watch::Sender<bool>>,
    /// Settlements that were not sent on this stream.
    waiting: VecDeque<Pending>,
    /// Those that were, in order.
    sent: VecDeque<Pending>,
    /// The steps without a result.
    steps: usize,
    /// The leases that the broker listed so far; `None` once the list is complete.
    listed: Option<Vec<String>>,
}

impl Held {
    /// Begins a new stream: what was sent on the last one is to be sent again, in order.
    pub(super) fn begin(&mut self) {
        self.steps = 0;
        self.listed = Some(Vec::new());
        while let Some(pending) = self.sent.pop_back() {
            self.waiting.push_front(pending);
        }
    }

    /// Takes leases; returns those to hand out.
    pub(super) fn leased(&mut self, leases: Vec<LeasedDelivery>) -> Vec<New> {
        let mut new = Vec::new();
        for leased in leases {
            let token = &leased.lease_token;
            if let Some(listed) = &mut self.listed {
                listed.push(token.clone());
            }
            // A broker also lists what the program holds, and what it settled without a result.
            if self.leases.contains_key(token) || self.is_settling(token) {
                continue;
            }
            let (sender, lost) = watch::channel(false);
            self.leases.insert(token.clone(), sender);
            new.push(New { leased, lost });
        }
        new
    }

    fn is_settling(&self, token: &str) -> bool {
        self.listed.is_some() && self.waiting.iter().any(|pending| pending.token == token)
    }

    /// Ends the list of leases at the begin of a stream: what is held and not listed is lost.
    pub(super) fn opened(&mut self) {
        let listed = self.listed.take().unwrap_or_default();
        self.leases.retain(|token, lost| {
            let is_live = listed.contains(token);
            if !is_live {
                lost.send_replace(true);
            }
            is_live
        });
    }

    /// Takes an order to settle.
    pub(super) fn settle(&mut self, pending: Pending) {
        // Its holder has ended its work, so there is nothing to notify.
        if self.leases.remove(&pending.token).is_some() {
            self.waiting.push_back(pending);
        } else {
            let _ = pending.reply.send(Err(Error::lease_lost()));
        }
    }

    /// Returns the next step of settlements, if it is time for one.
    pub(super) fn next_step(&mut self) -> Option<Vec<Settlement>> {
        if self.listed.is_some() || self.waiting.is_empty() || self.steps >= STEPS_MAX {
            return None;
        }
        let count = self.waiting.len().min(STEP_MAX);
        let step: Vec<Pending> = self.waiting.drain(..count).collect();
        let settlements = step.iter().map(Pending::settlement).collect();
        self.sent.extend(step);
        self.steps += 1;
        Some(settlements)
    }

    /// Takes the results of the oldest settlements without results.
    pub(super) fn settled(&mut self, results: Vec<SettlementResult>) {
        self.steps = self.steps.saturating_sub(1);
        for result in results {
            let Some(Pending { reply, .. }) = self.sent.pop_front() else { return };
            let result = match result.result {
                Some(Outcome::Refusal(refusal)) => Err(Error::from(refusal)),
                Some(Outcome::State(state)) => {
                    Ok(DeliveryState::try_from(state).unwrap_or_default())
                }
                Some(Outcome::LeaseRemaining(_)) | None => Ok(DeliveryState::Unspecified),
            };
            // The holder may have gone.
            let _ = reply.send(result);
        }
    }

    /// Returns whether every settlement has its result.
    pub(super) fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }

    /// Ends everything: all leases are lost, and settlements without a result end with this error.
    pub(super) fn end(&mut self, error: &Error) {
        for lost in self.leases.values() {
            lost.send_replace(true);
        }
        self.leases.clear();
        for pending in self.sent.drain(..).chain(self.waiting.drain(..)) {
            let _ = pending.reply.send(Err(error.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::{Ack, Refusal};

    fn lease(token: &str) -> LeasedDelivery {
        LeasedDelivery { lease_token: token.to_owned(), ..Default::default() }
    }

    fn tokens(new: &[New]) -> Vec<&str> {
        new.iter().map(|new| &new.leased.lease_token[..]).collect()
    }

    fn ack(held: &mut Held, token: &str) -> oneshot::Receiver<Result<DeliveryState, Error>> {
        let (reply, result) = oneshot::channel();
        let (token, action) = (token.to_owned(), Action::Ack(Ack {}));
        held.settle(Pending { token, action, reply });
        result
    }

    fn acked() -> SettlementResult {
        SettlementResult { result: Some(Outcome::State(DeliveryState::Acked.into())) }
    }

    /// Returns what a stream holds that has begun with these leases.
    fn holding(leases: &[&str]) -> (Held, Vec<New>) {
        let mut held = Held::default();
        held.begin();
        held.opened();
        let new = held.leased(leases.iter().map(|token| lease(token)).collect());
        (held, new)
    }

    #[test]
    fn what_is_held_is_not_handed_out_again_and_what_is_not_listed_is_lost() {
        let (mut held, new) = holding(&["a", "b"]);
        assert_eq!(tokens(&new), ["a", "b"]);
        held.begin();
        assert_eq!(tokens(&held.leased(vec![lease("b"), lease("c")])), ["c"]);
        held.opened();
        assert_eq!(new.iter().map(|new| *new.lost.borrow()).collect::<Vec<_>>(), [true, false]);
        let refused = ack(&mut held, "a").try_recv().expect("at once").expect_err("it is lost");
        assert_eq!(refused.reason(), "LEASE_LOST");
        assert!(held.is_settled());
    }

    #[test]
    fn a_settlement_is_sent_until_its_result_has_come() {
        let (mut held, _new) = holding(&["a", "b"]);
        let (mut a, mut b) = (ack(&mut held, "a"), ack(&mut held, "b"));
        assert_eq!(held.next_step().map(|step| step.len()), Some(2));
        assert_eq!(held.next_step(), None);
        held.settled(vec![acked()]);
        assert_eq!(a.try_recv(), Ok(Ok(DeliveryState::Acked)));

        held.begin();
        assert_eq!(held.next_step(), None, "the list of leases comes first");
        assert!(held.leased(vec![lease("b")]).is_empty(), "it is being settled");
        held.opened();
        assert_eq!(held.next_step().map(|step| step.len()), Some(1));
        let refusal = Refusal { reason: 20, ..Default::default() };
        held.settled(vec![SettlementResult { result: Some(Outcome::Refusal(refusal)) }]);
        assert!(b.try_recv().expect("a result").is_err());
        assert!(held.is_settled());
    }

    #[test]
    fn settlements_wait_while_two_steps_are_on_their_way() {
        let names: Vec<String> = (0..600).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (mut held, _new) = holding(&names);
        let mut results: Vec<_> = names[..1].iter().map(|name| ack(&mut held, name)).collect();
        assert_eq!(held.next_step().map(|step| step.len()), Some(1));
        results.extend(names[1..].iter().map(|name| ack(&mut held, name)));
        assert_eq!(held.next_step().map(|step| step.len()), Some(STEP_MAX));
        assert_eq!(held.next_step(), None);
        held.settled(vec![acked()]);
        assert_eq!(held.next_step().map(|step| step.len()), Some(STEP_MAX));
        assert!(!held.is_settled());
    }

    #[test]
    fn an_end_loses_all() {
        let (mut held, new) = holding(&["a", "b"]);
        let mut a = ack(&mut held, "a");
        held.end(&Error::closed("mail"));
        assert!(*new[1].lost.borrow());
        assert_eq!(
            a.try_recv().expect("a result").expect_err("no result").code(),
            tonic::Code::Cancelled
        );
    }
}
