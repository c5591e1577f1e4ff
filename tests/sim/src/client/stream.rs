//! Consumers on streams: clients that take mail one by one on a connection of their own, and come
//! back after a break, in time or too late or never.
//!
//! Each lease is recorded as the answer to a receive for one delivery, which is recorded before the
//! window has room for it. So the window never has room for two that the history does not know.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use hive_broker::engine::mail::stream::{Open, Window};
use hive_core::limits::ALONE_FROM_ATTEMPT;
use hive_history::{Answer, CallNo, Handed, LASTING_MS, Reply};

use crate::call::{Call, Who};
use crate::line::{Line, Orphans, Said, Say};
use crate::world::World;

/// What a program knows across its connections.
struct Hold {
    id: String,
    grace_ms: u64,
    held: Vec<Handed>,
    /// The tokens of these.
    tokens: Rc<RefCell<Vec<String>>>,
    /// The receive without an answer.
    awaited: Option<CallNo>,
    /// Settlements without results, to be repeated.
    unsure: Vec<Call>,
}

impl Hold {
    /// Changes what is held.
    fn change(&mut self, change: impl FnOnce(&mut Vec<Handed>)) {
        change(&mut self.held);
        self.tokens.replace(self.held.iter().map(|handed| handed.token.clone()).collect());
    }
}

/// Why a connection ended.
enum End {
    /// It can be opened again.
    Broken,
    /// Not now.
    Refused,
    /// Its client closed it.
    Closed,
}

fn unknown() -> Answer {
    Answer::Unknown(String::new())
}

impl World {
    /// Runs a program that takes mail on streams of one id, until it ends.
    pub(crate) async fn consume_on_a_stream(self: &Rc<Self>, who: &Who) {
        let grace_ms = self.dice.weighted(&[(3, 30_000), (1, 1_000), (1, 600_000)]);
        let id = self.request();
        let mut hold = Hold {
            id,
            grace_ms,
            held: Vec::new(),
            tokens: Rc::default(),
            awaited: None,
            unsure: Vec::new(),
        };
        loop {
            let end = match self.open(who, &mut hold).await {
                Ok(line) => self.take_and_settle(who, &mut hold, line).await,
                Err(end) => end,
            };
            match end {
                End::Closed => break,
                // Without another connection its leases end with their grace.
                End::Broken if !self.healing.get() && self.dice.chance(200) => break,
                End::Broken => self.pause(2 * hold.grace_ms.min(60_000)).await,
                // A harness is attached, or the agent is gone for a while.
                End::Refused => {
                    if self.rest(self.dice.between(5_000, 90_000)).await {
                        self.sleep(60_000).await;
                    }
                }
            }
        }
        if let Some(awaited) = hold.awaited {
            self.answered(awaited, unknown());
        }
    }

    /// Records a call of the stream.
    fn note(&self, who: &Who, call: &Call) -> CallNo {
        self.invoke(who, "", call).own.expect("each call of a stream is observed")
    }

    /// Opens a connection. It lists the leases that live; the others are lost.
    async fn open(self: &Rc<Self>, who: &Who, hold: &mut Hold) -> Result<Line<Say, Said>, End> {
        let lasting = |handed: &Handed| {
            let call = Call::Extend { token: handed.token.clone(), lease_ms: LASTING_MS };
            (handed.token.clone(), self.note(who, &call))
        };
        let renewed: Vec<(String, CallNo)> = hold.held.iter().map(lasting).collect();
        let open = Open {
            id: hold.id.clone(),
            window: Window::new(0, 0),
            grace: Duration::from_millis(hold.grace_ms),
        };
        let orphans =
            Orphans { who: who.clone(), grace_ms: hold.grace_ms, held: Rc::clone(&hold.tokens) };
        let line = self.stream_deliveries(orphans, open);
        let heard = match line {
            Some(mut line) => line.hear().await.map(|heard| (line, heard)),
            None => None,
        };
        let (line, all) = match heard {
            Some((line, Said::Opened(all))) => (line, all),
            other => {
                renewed.into_iter().for_each(|(_, call)| self.answered(call, unknown()));
                let is_refused = matches!(&other, Some((_, Said::Ended(Err(Some(_))))));
                if let Some((line, _)) = other {
                    line.cut();
                }
                return Err(if is_refused { End::Refused } else { End::Broken });
            }
        };
        let lives = |token: &str| all.iter().any(|handed| handed.token == token);
        for (token, call) in renewed {
            let answer = if lives(&token) {
                Answer::Ok(Reply::Extended)
            } else {
                Answer::Refused("LEASE_LOST".to_owned())
            };
            self.answered(call, answer);
        }
        hold.change(|held| held.retain(|handed| lives(&handed.token)));
        let is_new = |handed: &&Handed| !hold.held.iter().any(|known| known.token == handed.token);
        let new: Vec<Handed> = all.iter().filter(is_new).cloned().collect();
        match hold.awaited.take() {
            Some(awaited) if new.is_empty() => self.answered(awaited, unknown()),
            Some(awaited) => self.got(who, hold, awaited, new),
            None if new.is_empty() => {}
            None => self.wrong(format!("a stream lists leases that it never had: {new:?}")),
        }
        Ok(line)
    }

    /// Records what a receive of the stream got.
    fn got(&self, who: &Who, hold: &mut Hold, awaited: CallNo, new: Vec<Handed>) {
        for handed in &new {
            self.learn_delivery(&who.name, handed.message);
            let is_alone = |handed: &Handed| handed.attempt >= ALONE_FROM_ATTEMPT;
            let is_held = |handed: &&Handed| !self.decided.borrow().contains(&handed.message);
            let held: Vec<&Handed> = hold.held.iter().filter(is_held).collect();
            if !held.is_empty() && (is_alone(handed) || held.iter().any(|one| is_alone(one))) {
                let message = handed.message;
                self.wrong(format!("message {message} came on a stream beside {held:?}"));
            }
        }
        self.answered(awaited, Answer::Ok(Reply::Leased(new.clone())));
        hold.change(|held| held.extend(new));
    }

    /// Takes mail on a connection and settles it, until the connection ends.
    async fn take_and_settle(
        self: &Rc<Self>,
        who: &Who,
        hold: &mut Hold,
        mut line: Line<Say, Said>,
    ) -> End {
        let most = usize::try_from(self.dice.between(1, 4)).unwrap_or(1);
        let mut window = 0;
        let again = std::mem::take(&mut hold.unsure);
        if !again.is_empty()
            && let Err(end) = self.settle_on(who, hold, &mut line, again).await
        {
            return end;
        }
        loop {
            let room = hold.held.len() + 1;
            if hold.held.len() < most && window != room {
                hold.awaited = hold.awaited.or_else(|| Some(self.await_one(who)));
                line.say(Say::Window(u32::try_from(room).unwrap_or(1)));
                window = room;
            }
            let healing = self.healing.get();
            let is_full = hold.held.len() >= most;
            let patience = match (healing, hold.held.is_empty()) {
                (true, true) => u64::MAX,
                (true, false) => 0,
                (false, true) => self.dice.between(1_000, 600_000),
                (false, false) if is_full => self.dice.span(60_000),
                (false, false) => self.dice.span(20_000),
            };
            tokio::select! {
                biased;
                heard = line.hear() => match self.heard(who, hold, heard) {
                    Ok(None) => continue,
                    Ok(Some(_)) => self.wrong("results come without settlements".to_owned()),
                    Err(end) => {
                        line.cut();
                        return end;
                    }
                },
                () = self.wait(patience) => {}
            }
            if !healing && self.dice.chance(60) {
                line.cut();
                return End::Broken;
            }
            if !healing && self.dice.chance(60) {
                return self.close(who, hold, line).await;
            }
            if hold.held.is_empty() {
                continue;
            }
            let count =
                if healing { hold.held.len() } else { 1 + self.dice.index(hold.held.len()) };
            // Less room first, so that a settlement makes none.
            window = hold.held.len() - count;
            line.say(Say::Window(u32::try_from(window).unwrap_or(0)));
            let calls: Vec<Call> =
                hold.held[..count].iter().map(|handed| self.settlement(handed)).collect();
            let settled = if !healing && self.dice.chance(200) {
                self.settle_beside(who, hold, &mut line, calls).await
            } else {
                self.settle_on(who, hold, &mut line, calls).await
            };
            if let Err(end) = settled {
                line.cut();
                return end;
            }
        }
    }

    /// Waits this long; for ever if it is the greatest number.
    async fn wait(&self, ms: u64) {
        if ms == u64::MAX {
            std::future::pending::<()>().await;
        }
        self.sleep(ms).await;
    }

    /// Records a receive for one delivery of a stream.
    fn await_one(&self, who: &Who) -> CallNo {
        let call = Call::Receive {
            max: 1,
            wait_ms: 0,
            lease_ms: LASTING_MS,
            tool_use: String::new(),
            settle: Vec::new(),
        };
        self.note(who, &call)
    }

    /// Decides what happens to a delivery.
    pub(crate) fn settlement(&self, handed: &Handed) -> Call {
        let token = handed.token.clone();
        if self.healing.get() {
            return Call::Ack { token };
        }
        match self.dice.weighted(&[(14, 0), (4, 1), (1, 2), (3, 3)]) {
            0 => Call::Ack { token },
            1 => Call::Nack { token, permanent: false },
            2 => Call::Nack { token, permanent: true },
            _ => Call::Release { token },
        }
    }

    /// Takes in what the broker said; returns results.
    fn heard(
        &self,
        who: &Who,
        hold: &mut Hold,
        heard: Option<Said>,
    ) -> Result<Option<Vec<Answer>>, End> {
        match heard {
            Some(Said::Leased(new)) => {
                // What the operator has decided makes room that the consumer does not know of.
                let is_decided = |handed: &Handed| self.decided.borrow().contains(&handed.message);
                let has_room = || hold.held.iter().any(is_decided).then(|| self.await_one(who));
                match hold.awaited.take().or_else(has_room) {
                    Some(awaited) if new.len() == 1 => self.got(who, hold, awaited, new),
                    _ => self.wrong(format!("a stream got more than it has room for: {new:?}")),
                }
                Ok(None)
            }
            Some(Said::Settled(answers)) => Ok(Some(answers)),
            Some(Said::Opened(_)) => {
                self.wrong("a stream is opened twice".to_owned());
                Ok(None)
            }
            Some(Said::Ended(Ok(()))) => Err(End::Closed),
            Some(Said::Ended(Err(Some(_)))) => Err(End::Refused),
            Some(Said::Ended(Err(None))) | None => Err(End::Broken),
        }
    }

    /// Settles on the stream, and waits for the results. Without results it is repeated on the next
    /// connection.
    async fn settle_on(
        self: &Rc<Self>,
        who: &Who,
        hold: &mut Hold,
        line: &mut Line<Say, Said>,
        calls: Vec<Call>,
    ) -> Result<(), End> {
        let noted: Vec<CallNo> = calls.iter().map(|call| self.note(who, call)).collect();
        line.say(Say::Settle(calls.clone()));
        loop {
            let heard = line.hear().await;
            match self.heard(who, hold, heard) {
                Ok(None) => {}
                Ok(Some(answers)) => {
                    for (call, answer) in noted.into_iter().zip(answers) {
                        self.answered(call, answer);
                    }
                    forget(hold, &calls);
                    return Ok(());
                }
                Err(end) => {
                    noted.into_iter().for_each(|call| self.answered(call, unknown()));
                    hold.unsure = calls;
                    return Err(end);
                }
            }
        }
    }

    /// Settles leases of the stream by a call of its own. Without results that is repeated on the
    /// next connection, too.
    async fn settle_beside(
        self: &Rc<Self>,
        who: &Who,
        hold: &mut Hold,
        line: &mut Line<Say, Said>,
        calls: Vec<Call>,
    ) -> Result<(), End> {
        // The call could overtake the window. Once this has its result, the window is in place.
        self.settle_on(who, hold, line, Vec::new()).await?;
        if self.insist(who, Call::Settle { entries: calls.clone() }, 4).await.is_done() {
            forget(hold, &calls);
            return Ok(());
        }
        hold.unsure = calls;
        Err(End::Broken)
    }

    /// Closes its side, which releases the rest.
    async fn close(self: &Rc<Self>, who: &Who, hold: &mut Hold, mut line: Line<Say, Said>) -> End {
        let release =
            |handed: &Handed| self.note(who, &Call::Release { token: handed.token.clone() });
        let noted: Vec<CallNo> = hold.held.iter().map(release).collect();
        line.say(Say::Close);
        let end = loop {
            match line.hear().await {
                // It came too late to be taken, and may be released already.
                Some(Said::Leased(_)) => {}
                heard => {
                    if let Err(end) = self.heard(who, hold, heard) {
                        break end;
                    }
                }
            }
        };
        // What each release did is not known: the lease may have ended before.
        noted.into_iter().for_each(|call| self.answered(call, unknown()));
        if matches!(end, End::Closed) {
            hold.change(Vec::clear);
        }
        line.cut();
        end
    }
}

/// Forgets what was settled.
fn forget(hold: &mut Hold, calls: &[Call]) {
    let is_settled = |handed: &Handed| {
        calls.iter().any(|call| {
            let (Call::Ack { token } | Call::Nack { token, .. } | Call::Release { token }) = call
            else {
                return false;
            };
            *token == handed.token
        })
    };
    hold.change(|held| held.retain(|handed| !is_settled(handed)));
}
