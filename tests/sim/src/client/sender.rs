//! Senders on streams: many messages in order, repeated until each has an answer.
//!
//! Invariant of the broker that is checked here: messages that were said in order are accepted in
//! order, however often the connection breaks.

use std::rc::Rc;

use hive_history::{Answer, CallNo, Reply};

use crate::call::{Call, To, Who};
use crate::line::Sent;
use crate::world::World;

/// A message, and its answer.
struct Item {
    request_id: String,
    call: Call,
    answer: Option<Answer>,
}

impl World {
    /// Sends messages of the operator on streams until all is healed: now and then, and whenever
    /// the disk goes bad, so that some outcomes are unknown.
    pub(crate) async fn operate_on_streams(self: Rc<Self>) {
        let who = Who::operator();
        while !self.healing.get() {
            tokio::select! {
                biased;
                () = self.disk_bad.notified() => {}
                _ = self.rest(self.dice.span(1_800_000 * self.calm / self.haste)) => {}
            }
            self.send_on_a_stream(&who).await;
        }
    }

    /// Sends some messages on streams.
    pub(crate) async fn send_on_a_stream(self: &Rc<Self>, who: &Who) {
        let item = |_| Item {
            request_id: self.request(),
            call: Call::Send {
                to: To::Name(self.anybody()),
                body: self.fresh("streamed"),
                reply_to: 0,
            },
            answer: None,
        };
        let mut items: Vec<Item> = (0..self.dice.between(2, 8)).map(item).collect();
        for _ in 0..8 {
            self.send_all(who, &mut items).await;
            if items.iter().all(|item| item.answer.is_some()) {
                break;
            }
            self.pause(10_000).await;
        }
        let accepted = items.iter().filter_map(|item| match &item.answer {
            Some(Answer::Ok(Reply::Sent { message, .. })) => Some(*message),
            _ => None,
        });
        let accepted: Vec<u64> = accepted.collect();
        if !accepted.is_sorted() {
            self.wrong(format!("messages of one stream were accepted in the order {accepted:?}"));
        }
    }

    /// Says all messages without an answer on one connection, and waits for their answers.
    async fn send_all(self: &Rc<Self>, who: &Who, items: &mut [Item]) {
        let Some(mut line) = self.stream_messages(who) else { return };
        let mut open: Vec<(usize, CallNo)> = Vec::new();
        let waiting: Vec<usize> =
            (0..items.len()).filter(|place| items[*place].answer.is_none()).collect();
        let mut rest = waiting.as_slice();
        while !rest.is_empty() {
            let (group, later) = rest.split_at(1 + self.dice.index(rest.len()));
            rest = later;
            let said = group.iter().map(|place| {
                let Item { request_id, call, .. } = &items[*place];
                let observed = self.invoke(who, request_id, call).own;
                open.extend(observed.map(|observed| (*place, observed)));
                (request_id.clone(), call.clone())
            });
            let said = said.collect();
            line.say(said);
            // Long enough for a disk to fail and to work again on the same stream.
            self.pause(self.dice.weighted(&[(3, 0), (2, 2_000), (2, 60_000)])).await;
        }
        let mut open = open.into_iter();
        let patience = self.dice.between(5_000, 60_000);
        let mut next = open.next();
        while let Some((place, call)) = next {
            let heard = tokio::select! {
                biased;
                heard = line.hear() => heard,
                () = self.sleep(patience) => None,
            };
            match heard {
                Some(Sent::Answer(answer)) => {
                    self.answered(call, answer.clone());
                    items[place].answer = Some(answer);
                    next = open.next();
                }
                // It is refused for now; nothing behind it was looked at.
                Some(Sent::Ended(Some(reason))) => {
                    self.answered(call, Answer::Refused(reason.to_string()));
                    break;
                }
                Some(Sent::Ended(None)) | None => {
                    self.answered(call, Answer::Unknown(String::new()));
                    break;
                }
            }
        }
        open.for_each(|(_, call)| self.answered(call, Answer::Unknown(String::new())));
        line.cut();
    }
}
