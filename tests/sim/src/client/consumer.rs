//! Consumers: clients without a harness that lease, work and settle, or forget to settle.

use std::rc::Rc;

use hive_history::{Handed, Kind, Origin, Reply};

use crate::call::{Call, To, Who};
use crate::net::Heard;
use crate::plan::Fault;
use crate::world::World;

impl World {
    /// Runs one consumer of an agent's inbox.
    pub(crate) async fn consume(self: Rc<Self>, agent: String) {
        let who = Who::agent(agent.clone());
        let mut boots = self.boots.subscribe();
        loop {
            boots.mark_unchanged();
            tokio::select! {
                biased;
                // The process dies with the host and forgets what it held.
                _ = boots.changed() => {}
                () = self.consume_for_a_while(&who) => return,
            }
            self.rest(self.dice.span(60_000)).await;
        }
    }

    async fn consume_for_a_while(self: &Rc<Self>, who: &Who) {
        // Settlements that wait for the next receive.
        let mut settle: Vec<Call> = Vec::new();
        loop {
            if settle.is_empty() && self.dice.chance(250) {
                self.consume_on_a_stream(who).await;
            }
            let healing = self.healing.get();
            if !healing && self.dice.chance(120) {
                self.send_on_a_stream(who).await;
            }
            let max = u32::try_from(self.dice.between(1, 6)).unwrap_or(1);
            let lease_ms = if healing {
                3_600_000
            } else {
                self.dice.weighted(&[(3, 60_000), (2, 5_000), (1, 600_000)])
            };
            // Long waits, which only a hint ends early.
            let wait_ms = if healing {
                30_000_000
            } else {
                self.dice.weighted(&[(4, 180_000), (1, 0), (1, 20_000)])
            };
            let receive = Call::Receive {
                max,
                wait_ms,
                lease_ms,
                tool_use: String::new(),
                settle: std::mem::take(&mut settle),
            };
            let request = self.request();
            let heard = loop {
                let heard = self.call(who, &request, receive.clone()).await;
                if !matches!(heard, Heard::Nothing) {
                    break heard;
                }
                self.pause(4_000).await;
            };
            match heard {
                Heard::Done(given) => {
                    let Reply::Leased(handed) = given.reply else { continue };
                    if handed.is_empty() && wait_ms == 0 {
                        self.rest(self.dice.span(120_000)).await;
                    }
                    for handed in &handed {
                        self.learn_delivery(&who.name, handed.message);
                    }
                    if !healing && self.dice.chance(250) {
                        self.pause(30_000).await;
                        settle = handed.iter().map(|handed| self.settlement(handed)).collect();
                        if self.dice.chance(300) {
                            let entries = std::mem::take(&mut settle);
                            drop(self.insist(who, Call::Settle { entries }, 4).await);
                        }
                        continue;
                    }
                    for handed in handed {
                        self.work_on(who, &handed).await;
                    }
                }
                // A harness is attached, or the agent is parked for a while.
                Heard::Refused(_) => {
                    if self.rest(self.dice.between(5_000, 90_000)).await {
                        self.sleep(60_000).await;
                    }
                }
                Heard::Nothing => {}
            }
        }
    }

    async fn work_on(self: &Rc<Self>, who: &Who, handed: &Handed) {
        let token = handed.token.clone();
        if self.healing.get() {
            drop(self.insist(who, Call::Ack { token }, 30).await);
            return;
        }
        self.pause(120_000).await;
        if handed.origin == Origin::System(Kind::QuestionAsked) && self.dice.chance(500) {
            self.answer_asked(who, handed).await;
        }
        if self.dice.chance(150) {
            drop(
                self.insist(
                    who,
                    Call::Extend {
                        token: token.clone(),
                        lease_ms: self.dice.between(1_000, 120_000),
                    },
                    3,
                )
                .await,
            );
            self.pause(60_000).await;
        }
        if self.may_schedule(&who.name) && self.dice.chance(100) {
            drop(self.manage_schedules(who).await);
        }
        if self.may_ask_approval(&who.name) && self.dice.chance(40) {
            drop(self.ask_approval(who).await);
        }
        if self.dice.chance(250) {
            let send = Call::Send {
                to: To::Name(self.anybody()),
                body: self.fresh("reply"),
                reply_to: handed.message,
            };
            drop(self.insist(who, send, 4).await);
        }
        let poison = (handed.message ^ self.plan.seed).is_multiple_of(13);
        match self.dice.weighted(&[(14, 0), (3, 1), (1, 2), (2, 3), (1, 4)]) {
            // Forgets the lease.
            3 => {}
            2 => drop(self.insist(who, Call::Nack { token, permanent: true }, 4).await),
            1 => drop(self.insist(who, Call::Nack { token, permanent: false }, 4).await),
            _ if poison => drop(self.insist(who, Call::Nack { token, permanent: false }, 4).await),
            other => {
                drop(self.insist(who, Call::Ack { token: token.clone() }, 4).await);
                if other == 4 && self.fails(Fault::Zombie, 500) {
                    // Settles again under another id, much later, or with the other outcome.
                    self.pause(60_000).await;
                    let again = if self.dice.chance(500) {
                        Call::Ack { token }
                    } else {
                        Call::Nack { token, permanent: false }
                    };
                    drop(self.insist(who, again, 2).await);
                }
            }
        }
    }
}
