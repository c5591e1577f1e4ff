//! Connections of streams: the end at the broker, which the RPC layer would be, and the network
//! between it and its client.
//!
//! Invariant: a step reaches the client in the order in which the broker sent it, or the connection
//! is broken.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use hive_broker::engine::mail::send_stream::SendStream;
use hive_broker::engine::mail::stream::{Open, Window};
use hive_broker::engine::{Actor, Engine, Refusal};
use hive_core::reason::Reason;
use hive_history::{Answer, Handed, Reply};
use tokio::sync::mpsc;

use crate::call::{Call, Who};
use crate::exec::TaskId;
use crate::plan::Fault;
use crate::serve::{caller, prepared};
use crate::world::{World, say};
use crate::{seen, settle};

/// The client's end of a connection.
#[derive(Debug)]
pub(crate) struct Line<S, H> {
    world: Rc<World>,
    say: mpsc::UnboundedSender<S>,
    hear: mpsc::UnboundedReceiver<H>,
    server: TaskId,
}

impl<S, H> Line<S, H> {
    /// Says something; it is lost if the broker's end is gone.
    pub(crate) fn say(&self, step: S) {
        drop(self.say.send(step));
    }

    /// Waits for the next step; `None` if the connection broke.
    pub(crate) async fn hear(&mut self) -> Option<H> {
        self.hear.recv().await
    }

    /// Breaks the connection, if it still stands.
    pub(crate) fn cut(self) {
        self.world.exec.kill(self.server);
    }
}

/// The tokens that a client holds on its stream. When the stream ends they have their grace, which
/// is recorded at that time, whatever the client does then.
pub(crate) struct Orphans {
    pub(crate) who: Who,
    pub(crate) grace_ms: u64,
    pub(crate) held: Rc<RefCell<Vec<String>>>,
}

/// The end of a stream of deliveries.
struct Ending {
    world: Rc<World>,
    orphans: Orphans,
    /// The tokens that were sent: some of them the client may not have read yet.
    sent: RefCell<BTreeSet<String>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Orphans { who, grace_ms, held } = &self.orphans;
        let mut all = self.sent.take();
        all.extend(held.borrow().iter().cloned());
        for token in &all {
            let extend = Call::Extend { token: token.clone(), lease_ms: *grace_ms };
            // Whether the lease still lives then is not known.
            if let Some(call) = self.world.invoke(who, "", &extend).own {
                self.world.answered(call, Answer::Unknown(String::new()));
            }
        }
    }
}

/// A message of a client on a stream of deliveries.
#[derive(Debug)]
pub(crate) enum Say {
    Settle(Vec<Call>),
    Window(u32),
    /// It closes its side.
    Close,
}

/// A message of the broker on a stream of deliveries.
#[derive(Debug)]
pub(crate) enum Said {
    /// The leases that the stream had before.
    Opened(Vec<Handed>),
    Leased(Vec<Handed>),
    Settled(Vec<Answer>),
    /// The stream was closed, or refused for a reason; `None`: it may be opened again.
    Ended(Result<(), Option<Reason>>),
}

/// Groups of messages, as they are read together.
type Groups = mpsc::UnboundedReceiver<Vec<(String, Call)>>;

/// The answer to a message of a stream of messages.
#[derive(Debug)]
pub(crate) enum Sent {
    Answer(Answer),
    /// The stream ended; `None`: an outcome is unknown.
    Ended(Option<Reason>),
}

/// Returns the reason of a refusal, if it is definite.
fn definite(refusal: &Refusal) -> Option<Reason> {
    let reason = refusal.reason();
    let is_unknown =
        matches!(reason, Reason::Draining | Reason::StorageUnavailable | Reason::Internal);
    (!is_unknown).then_some(reason)
}

fn actor(who: &Who) -> Actor {
    let process_token = who.process.as_ref().map(|(token, _)| token.clone());
    Actor { caller: caller(&who.name), process_token, cause: Default::default() }
}

impl World {
    /// Connects to the broker that serves now; `None` if there is none.
    fn connect<S: 'static, H: 'static, W: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        name: &str,
        serve: impl FnOnce(Arc<Engine>, mpsc::UnboundedReceiver<S>, mpsc::UnboundedSender<H>) -> W,
    ) -> Option<Line<S, H>> {
        let (broker, engine) = self.serving()?;
        let (say, said) = mpsc::unbounded_channel();
        let (tell, hear) = mpsc::unbounded_channel();
        let served = serve(engine, said, tell);
        let server = self.exec.spawn(broker.group, name.to_owned(), served);
        Some(Line { world: Rc::clone(self), say, hear, server })
    }

    /// Opens a stream of deliveries.
    pub(crate) fn stream_deliveries(
        self: &Rc<Self>,
        orphans: Orphans,
        open: Open,
    ) -> Option<Line<Say, Said>> {
        let (world, name) = (Rc::clone(self), format!("stream {}", open.id));
        let actor = actor(&orphans.who);
        self.connect(&name, move |engine, said, tell| async move {
            let ending = Ending { world: Rc::clone(&world), orphans, sent: RefCell::default() };
            let told = tell.clone();
            let served =
                world.serve_deliveries(engine, actor, open, said, tell, &ending.sent).await;
            if let Err(refusal) = served {
                say!(world, "the stream ends: {refusal}");
                drop(told.send(Said::Ended(Err(definite(&refusal)))));
            }
        })
    }

    /// Serves a stream of deliveries until it ends or breaks.
    async fn serve_deliveries(
        self: &Rc<Self>,
        engine: Arc<Engine>,
        actor: Actor,
        open: Open,
        mut said: mpsc::UnboundedReceiver<Say>,
        tell: mpsc::UnboundedSender<Said>,
        sent: &RefCell<BTreeSet<String>>,
    ) -> Result<(), Refusal> {
        let (mut stream, held) = engine.open_stream(actor.clone(), open).await?;
        let taken = stream.taken();
        let handed = |leased: &hive_broker::engine::mail::receive::Leased| {
            seen::handed(&leased.delivery, leased.token.as_deref())
        };
        let mut next = Some(Said::Opened(held.iter().map(handed).collect()));
        loop {
            if let Some(step) = next.take() {
                let tokens: Vec<String> = match &step {
                    Said::Opened(all) | Said::Leased(all) => {
                        all.iter().map(|handed| handed.token.clone()).collect()
                    }
                    Said::Settled(_) | Said::Ended(_) => Vec::new(),
                };
                if self.fails(Fault::Delay, 60) {
                    self.sleep(self.dice.span(3_000)).await;
                }
                let is_lost = self.fails(Fault::LostReply, 25);
                // The transport may have taken what its client does not get.
                if is_lost && self.dice.chance(300) {
                    taken.add(tokens.clone());
                }
                if is_lost || tell.send(step).is_err() {
                    return Ok(());
                }
                sent.borrow_mut().extend(tokens.iter().cloned());
                taken.add(tokens);
            }
            tokio::select! {
                biased;
                heard = said.recv() => match heard {
                    Some(Say::Settle(calls)) => {
                        let entries = settle::entries(&calls);
                        let results = engine.settle(actor.clone(), entries).await?;
                        next = Some(Said::Settled(settle::answers(&calls, results)));
                    }
                    Some(Say::Window(deliveries)) => {
                        stream.set_window(Window::new(deliveries, 0)).await;
                    }
                    Some(Say::Close) => {
                        stream.close().await?;
                        drop(tell.send(Said::Ended(Ok(()))));
                        return Ok(());
                    }
                    None => return Ok(()),
                },
                leases = stream.next() => {
                    next = Some(Said::Leased(leases?.deliveries.iter().map(handed).collect()));
                }
            }
        }
    }

    /// Opens a stream of messages, which are said in groups.
    pub(crate) fn stream_messages(
        self: &Rc<Self>,
        who: &Who,
    ) -> Option<Line<Vec<(String, Call)>, Sent>> {
        let (world, who) = (Rc::clone(self), who.clone());
        self.connect("messages", move |engine, mut said: Groups, tell| async move {
            let mut stream = SendStream::new(engine, actor(&who));
            while let Some(group) = said.recv().await {
                let sends = group.iter().filter_map(|(id, call)| prepared(call, &who, id));
                let (answers, end) = stream.send(sends.collect()).await;
                if world.fails(Fault::LostReply, 40) {
                    return;
                }
                for answer in answers {
                    let answer = match answer {
                        Ok(receipt) => Answer::Ok(Reply::Sent {
                            message: receipt.message.get(),
                            already: receipt.already_sent,
                            skipped: receipt.skipped,
                        }),
                        Err(refusal) => Answer::Refused(refusal.reason().to_string()),
                    };
                    if tell.send(Sent::Answer(answer)).is_err() {
                        return;
                    }
                }
                if let Some(end) = end {
                    say!(world, "the stream of messages ends: {end}");
                    drop(tell.send(Sent::Ended(definite(&end))));
                    return;
                }
            }
        })
    }
}
