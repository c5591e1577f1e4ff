//! The history indexed for the rules: calls with their answers, retries of one request, leases by
//! delivery.
//!
//! What it is not: a judge. Invariant: `from` and `till` are indices of observations between which
//! something happened in the hive. `a.till < b.from` means that `a` came first; any other order is
//! unknown.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::branch::Gone;
use crate::call::{Op, Reply};
use crate::event::{Answer, Event, History, Mark};
use crate::last::{Delivery, Final, Message};
use crate::noun::Handed;

/// A call and how it ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) caller: &'a str,
    pub(crate) request_id: &'a str,
    pub(crate) op: &'a Op,
    /// When it left.
    pub(crate) from: usize,
    /// When it ended, and how.
    pub(crate) answer: Option<(usize, &'a Answer)>,
    /// When the first call of the same request left.
    pub(crate) request_from: usize,
}

impl<'a> Call<'a> {
    /// Returns when it was done and its reply, or `None` if it is not known to be done.
    pub(crate) fn ok(&self) -> Option<(usize, &'a Reply)> {
        match self.answer {
            Some((till, Answer::Ok(reply))) => Some((till, reply)),
            Some((_, Answer::Refused(_) | Answer::Unknown(_))) | None => None,
        }
    }

    /// Returns the reason of a definite refusal.
    pub(crate) fn refused(&self) -> Option<&'a str> {
        match self.answer {
            Some((_, Answer::Refused(reason))) => Some(reason),
            Some((_, Answer::Ok(_) | Answer::Unknown(_))) | None => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Holder<'a> {
    Consumer(&'a str),
    Turn(u64),
}

/// A lease that a caller received, however often the answer came.
#[derive(Clone, Debug)]
pub(crate) struct Hand<'a> {
    pub(crate) handed: &'a Handed,
    pub(crate) holder: Holder<'a>,
    /// The first call of the request that it answers.
    pub(crate) from: usize,
    /// The first answer that brought it.
    pub(crate) till: usize,
    /// The call with that answer: an index into [`Index::calls`].
    pub(crate) call: usize,
    /// Whether it started its turn.
    pub(crate) wakes: bool,
}

impl Hand<'_> {
    pub(crate) fn name(&self) -> String {
        match &self.holder {
            Holder::Consumer(token) => format!("lease {token}"),
            Holder::Turn(turn) => format!("turn {turn}"),
        }
    }
}

pub(crate) type Key<'a> = (&'a str, u64);
/// A request's key: caller, RPC, request id.
pub(crate) type RequestKey<'a> = (&'a str, &'a str, &'a str);

/// All observations under the keys that the rules use.
#[derive(Debug)]
pub(crate) struct Index<'a> {
    pub(crate) history: &'a History,
    pub(crate) last: &'a Final,
    /// What is known of what restores took back.
    pub(crate) gone: &'a Gone,
    pub(crate) calls: Vec<Call<'a>>,
    pub(crate) requests: BTreeMap<RequestKey<'a>, Vec<usize>>,
    pub(crate) hands: Vec<Hand<'a>>,
    /// Leases of a delivery, in the order of `till`.
    pub(crate) by_delivery: BTreeMap<Key<'a>, Vec<usize>>,
    pub(crate) by_token: HashMap<&'a str, usize>,
    pub(crate) by_turn: HashMap<u64, Vec<usize>>,
    /// Turns whose beginning was answered.
    pub(crate) begun: HashSet<u64>,
    /// Calls that name a token.
    pub(crate) token_calls: HashMap<&'a str, Vec<usize>>,
    /// Calls that name a turn as theirs: `EndTurn`, and what carries its process token.
    pub(crate) turn_calls: HashMap<u64, Vec<usize>>,
    /// Decisions of the operator about a delivery.
    pub(crate) decisions: HashMap<Key<'a>, Vec<usize>>,
    pub(crate) by_caller: HashMap<&'a str, Vec<usize>>,
    pub(crate) messages: HashMap<u64, &'a Message>,
    pub(crate) deliveries: HashMap<Key<'a>, &'a Delivery>,
    pub(crate) marks: Vec<(usize, &'a Mark)>,
    /// The maximum wall clock time up to each observation.
    pub(crate) wall_max: Vec<i64>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(history: &'a History, last: &'a Final, gone: &'a Gone) -> Self {
        let mut index = Self {
            history,
            last,
            gone,
            calls: Vec::new(),
            requests: BTreeMap::new(),
            hands: Vec::new(),
            by_delivery: BTreeMap::new(),
            by_token: HashMap::new(),
            by_turn: HashMap::new(),
            begun: HashSet::new(),
            token_calls: HashMap::new(),
            turn_calls: HashMap::new(),
            decisions: HashMap::new(),
            by_caller: HashMap::new(),
            messages: last.messages.iter().map(|message| (message.id, message)).collect(),
            deliveries: last
                .deliveries
                .iter()
                .map(|delivery| ((delivery.agent.as_str(), delivery.message), delivery))
                .collect(),
            marks: Vec::new(),
            wall_max: Vec::with_capacity(history.observations.len()),
        };
        index.pair();
        index.group();
        index.lease();
        index
    }

    /// Pairs calls with answers.
    fn pair(&mut self) {
        let mut open = HashMap::new();
        for (at, observation) in self.history.observations.iter().enumerate() {
            let before = self.wall_max.last().copied().unwrap_or(i64::MIN);
            self.wall_max.push(before.max(observation.wall));
            match &observation.event {
                Event::Invoked { call, caller, request_id, op } => {
                    open.insert(*call, self.calls.len());
                    self.calls.push(Call {
                        caller,
                        request_id,
                        op,
                        from: at,
                        answer: None,
                        request_from: at,
                    });
                }
                Event::Answered { call, answer } => {
                    if let Some(place) = open.remove(call) {
                        self.calls[place].answer = Some((at, answer));
                    }
                }
                Event::Mark(mark) => self.marks.push((at, mark)),
                Event::Saw(_) => {}
            }
        }
    }

    /// Groups calls by what they have in common.
    fn group(&mut self) {
        for place in 0..self.calls.len() {
            let call = self.calls[place];
            self.by_caller.entry(call.caller).or_default().push(place);
            if !call.request_id.is_empty() {
                let calls =
                    self.requests.entry((call.caller, call.op.rpc(), call.request_id)).or_default();
                calls.push(place);
                let first = calls[0];
                self.calls[place].request_from = self.calls[first].from;
            }
            match call.op {
                Op::Ack { token }
                | Op::Nack { token, .. }
                | Op::Release { token }
                | Op::Extend { token, .. } => {
                    self.token_calls.entry(token).or_default().push(place);
                }
                Op::EndTurn { turn, .. }
                | Op::Send { turn, .. }
                | Op::Receive { turn, .. }
                | Op::Ask { turn, .. }
                | Op::Schedule { turn, .. }
                | Op::Remind { turn, .. } => {
                    if *turn != 0 {
                        self.turn_calls.entry(*turn).or_default().push(place);
                    }
                }
                Op::Decide { agent, message, .. } => {
                    self.decisions.entry((agent.as_str(), *message)).or_default().push(place);
                }
                Op::Wake { .. }
                | Op::Attach { .. }
                | Op::BeginTurn { .. }
                | Op::Answer { .. }
                | Op::CancelQuestion { .. }
                | Op::ReadQuestion { .. }
                | Op::CancelReminder { .. }
                | Op::CancelTurn { .. }
                | Op::ReportProblem { .. }
                | Op::Other { .. } => {}
            }
        }
    }

    /// Finds the leases, each once.
    fn lease(&mut self) {
        let mut known: HashMap<(Key<'a>, Holder<'a>), usize> = HashMap::new();
        let mut answers: Vec<usize> =
            (0..self.calls.len()).filter(|place| self.calls[*place].ok().is_some()).collect();
        answers.sort_by_key(|place| self.calls[*place].ok().map(|(till, _)| till));
        for place in answers {
            let call = self.calls[place];
            let Some((till, reply)) = call.ok() else { continue };
            if let Reply::Turn { turn, .. } = reply {
                self.begun.insert(*turn);
            }
            let handed: Vec<(&'a Handed, Holder<'a>, bool)> = match (reply, call.op) {
                (Reply::Leased(all), Op::Receive { turn, .. }) => {
                    let holder = |handed: &'a Handed| {
                        if *turn == 0 {
                            Holder::Consumer(&handed.token)
                        } else {
                            Holder::Turn(*turn)
                        }
                    };
                    all.iter().map(|handed| (handed, holder(handed), false)).collect()
                }
                (Reply::Turn { turn, delivery: Some(handed), .. }, _) => {
                    vec![(handed, Holder::Turn(*turn), true)]
                }
                _ => Vec::new(),
            };
            for (handed, holder, wakes) in handed {
                let key = (handed.agent.as_str(), handed.message);
                let hand = Hand {
                    handed,
                    holder: holder.clone(),
                    from: call.request_from,
                    till,
                    call: place,
                    wakes,
                };
                let next = self.hands.len();
                if let Some(first) = known.get(&(key, holder.clone())) {
                    let first = &mut self.hands[*first];
                    first.from = first.from.min(hand.from);
                    continue;
                }
                known.insert((key, holder.clone()), next);
                match holder {
                    Holder::Consumer(token) => drop(self.by_token.insert(token, next)),
                    Holder::Turn(turn) => self.by_turn.entry(turn).or_default().push(next),
                }
                self.by_delivery.entry(key).or_default().push(next);
                self.hands.push(hand);
            }
        }
    }

    /// Returns whether a delivery was handed over while a backup was made that was restored later.
    pub(crate) fn is_blurred(&self, (agent, message): Key<'_>) -> bool {
        !self.gone.handed.is_empty() && self.gone.handed.contains(&(agent.to_owned(), message))
    }

    pub(crate) fn is_opaque(&self, agent: &str) -> bool {
        self.history.setting.opaque.iter().any(|opaque| opaque == agent)
    }

    /// Returns the leases of a delivery.
    pub(crate) fn leases<'s>(
        &'s self,
        key: Key<'s>,
    ) -> impl Iterator<Item = &'s Hand<'a>> + use<'s, 'a> {
        self.by_delivery
            .get(&key)
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .map(|place| &self.hands[*place])
    }

    /// Returns the calls in a group, in the order in which they left.
    pub(crate) fn of<'s, K: std::hash::Hash + Eq>(
        &'s self,
        group: &'s HashMap<K, Vec<usize>>,
        key: &K,
    ) -> impl Iterator<Item = &'s Call<'a>> + use<'s, 'a, K> {
        group.get(key).map_or(&[][..], Vec::as_slice).iter().map(|place| &self.calls[*place])
    }

    pub(crate) fn calls_of(&self, caller: &str) -> impl Iterator<Item = &Call<'a>> + use<'_, 'a> {
        self.by_caller
            .get(caller)
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .map(|place| &self.calls[*place])
    }

    /// Returns an observation's time, in ms.
    pub(crate) fn at(&self, observation: usize) -> u64 {
        self.history.observations[observation].at
    }

    /// Returns the wall clock at an observation.
    pub(crate) fn wall(&self, observation: usize) -> i64 {
        self.history.observations[observation].wall
    }

    /// Returns whether all calls of a request ended with a definite refusal.
    pub(crate) fn is_refused(&self, request: &[usize]) -> bool {
        request.iter().all(|place| self.calls[*place].refused().is_some())
    }
}
