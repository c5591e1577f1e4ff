//! The link to the broker that this program starts: the sandbox of each agent.
//!
//! A new broker knows no sandbox. It gets the whole list, and answers agents only after that. So
//! this module keeps all registrations, with a descriptor for each namespace.
//!
//! Invariant: [`Registrar::sandbox`] returns when the registration is in force, however often the
//! broker is started again in between.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use hive_core::limits::{ISOLATION_NOTE_CHARS_MAX, ISOLATION_NOTES_MAX};
use hive_proto::supervisor::link::{self, Link, LinkError};
use hive_proto::supervisor::{Reached, SUPERVISOR_FD_ENV, ToBroker, ToUp};
use tokio::sync::{mpsc, oneshot};

use crate::output::note;
use crate::output::text::visible_line;
use crate::spawn::spawn;
use crate::supervise::process::start::{Prepared, Ready, Start, Started, Watch};
use crate::supervise::setup::environment::Env;

#[derive(Clone, Debug)]
pub(crate) struct Registrar {
    orders: mpsc::UnboundedSender<Order>,
}

#[derive(Debug)]
enum Order {
    /// A broker was started, with the other end of this socket.
    Connected(OwnedFd),
    Registered {
        agent: String,
        number: u64,
        namespace: Option<OwnedFd>,
        done: oneshot::Sender<u64>,
    },
    Isolation {
        agent: String,
        number: u64,
        shown: Shown,
    },
    Gone {
        agent: String,
        number: u64,
    },
}

/// A harness that is registered; its end is reported when this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    agent: String,
    number: u64,
    orders: mpsc::UnboundedSender<Order>,
}

impl Registrar {
    /// Starts the link; a broker is connected when it starts ([`BrokerStart`]).
    pub(crate) fn start() -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        spawn("link to the broker", Keeper::default().run(inbox));
        Self { orders }
    }

    /// Registers the pid namespace of an agent's sandbox, and waits until that is in force.
    pub(crate) async fn sandbox(&self, agent: String, namespace: OwnedFd) -> Registration {
        let (registration, done) = self.register(agent, Some(namespace));
        // The keeper ends with this program.
        let _ = done.await;
        registration
    }

    /// Registers an agent without a sandbox; the receiver completes when that is in force.
    pub(crate) fn unconfined(&self, agent: String) -> (Registration, Ready) {
        self.register(agent, None)
    }

    fn register(&self, agent: String, namespace: Option<OwnedFd>) -> (Registration, Ready) {
        let (done, in_force) = oneshot::channel();
        let number = next_number();
        self.order(Order::Registered { agent: agent.clone(), number, namespace, done });
        (Registration { agent, number, orders: self.orders.clone() }, in_force)
    }

    fn order(&self, order: Order) {
        // The keeper ends with this program.
        let _ = self.orders.send(order);
    }
}

/// Returns the number of the next registration: the end of an earlier one must not end a later one.
fn next_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Registration {
    pub(crate) fn isolation(&self, shown: Shown) {
        let _ = self.orders.send(Order::Isolation {
            agent: self.agent.clone(),
            number: self.number,
            shown,
        });
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Gone { agent: self.agent.clone(), number: self.number });
    }
}

#[derive(Debug)]
struct Entry {
    number: u64,
    namespace: Option<OwnedFd>,
    shown: Option<Shown>,
    /// Present until a broker has confirmed it.
    done: Option<oneshot::Sender<u64>>,
}

/// Keeps the list, and sends it to each broker.
#[derive(Debug, Default)]
struct Keeper {
    entries: BTreeMap<String, Entry>,
    link: Option<Link>,
}

impl Keeper {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Order>) {
        while let Some(order) = inbox.recv().await {
            match order {
                Order::Connected(socket) => self.connect(socket).await,
                Order::Registered { agent, number, namespace, done } => {
                    let entry = Entry { number, namespace, shown: None, done: Some(done) };
                    self.entries.insert(agent.clone(), entry);
                    self.describe(&agent).await;
                }
                Order::Isolation { agent, number, shown } => {
                    if let Some(entry) =
                        self.entries.get_mut(&agent).filter(|entry| entry.number == number)
                    {
                        entry.shown = Some(shown);
                        self.describe_isolation(&agent).await;
                    }
                }
                Order::Gone { agent, number } => {
                    if self.entries.get(&agent).is_some_and(|entry| entry.number == number) {
                        self.entries.remove(&agent);
                        self.say(&ToBroker::Gone { agent }, None).await;
                    }
                }
            }
        }
    }

    async fn connect(&mut self, socket: OwnedFd) {
        match Link::new(socket) {
            Ok(link) => self.link = Some(link),
            Err(error) => {
                note(&format!("the broker cannot be notified of sandboxes: {error}"));
                self.link = None;
            }
        }
        let agents: Vec<String> = self.entries.keys().cloned().collect();
        for agent in &agents {
            self.describe(agent).await;
            self.describe_isolation(agent).await;
        }
        self.say(&ToBroker::Complete, None).await;
    }

    async fn describe(&mut self, agent: &str) {
        let Some(entry) = self.entries.get(agent) else { return };
        let namespace = entry.namespace.as_ref().map(OwnedFd::try_clone);
        let name = agent.to_owned();
        let packet = match namespace {
            Some(Ok(_)) => ToBroker::Sandbox { agent: name },
            None => ToBroker::Unconfined { agent: name },
            Some(Err(error)) => {
                note(&format!("the sandbox of {agent} cannot be described to the broker: {error}"));
                return;
            }
        };
        let namespace = namespace.and_then(Result::ok);
        if self.say(&packet, namespace).await
            && let Some(entry) = self.entries.get_mut(agent)
            && let Some(done) = entry.done.take()
        {
            // A start that was given up waits no longer.
            let _ = done.send(entry.number);
        }
    }

    async fn describe_isolation(&mut self, agent: &str) {
        let Some(shown) = self.entries.get(agent).and_then(|entry| entry.shown.clone()) else {
            return;
        };
        let Shown { reached, notes, accepted, refused: _ } = shown;
        let notes = notes.iter().take(ISOLATION_NOTES_MAX).map(|note| shortened(note)).collect();
        let packet = ToBroker::Isolation { agent: agent.to_owned(), reached, notes, accepted };
        self.say(&packet, None).await;
    }

    /// Sends a packet; returns whether it is in force. The next broker gets everything again.
    async fn say(&mut self, packet: &ToBroker, namespace: Option<OwnedFd>) -> bool {
        let Some(link) = &self.link else { return false };
        match link.ask(packet, namespace.as_ref().map(OwnedFd::as_fd)).await {
            Ok(ToUp::Done) => true,
            Ok(ToUp::Refused { why }) => {
                note(&format!("the broker refuses a report on a sandbox: {}", visible_line(&why)));
                false
            }
            // The broker has ended; its end is reported, and the next broker is connected.
            Err(LinkError::Closed) => {
                self.link = None;
                false
            }
            // Nothing was sent, so the next packet gets its own answer.
            Err(error @ LinkError::TooLong(_)) => {
                note(&format!("the broker is not notified of a sandbox: {error}"));
                false
            }
            Err(error) => {
                note(&format!("the broker cannot be notified of a sandbox: {error}"));
                self.link = None;
                false
            }
        }
    }
}

/// Cuts a note to a length that a packet has room for. A control character takes more room than
/// others, so none is left.
fn shortened(note: &str) -> String {
    visible_line(note).chars().take(ISOLATION_NOTE_CHARS_MAX).collect()
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) reached: Reached,
    pub(crate) notes: Vec<String>,
    pub(crate) accepted: bool,
    /// Why the agent must not run: the level that the configuration states was not reached.
    pub(crate) refused: Option<String>,
}

/// Starts the broker with one end of a socket pair.
#[derive(Clone, Debug)]
pub(crate) struct BrokerStart {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Env,
    pub(crate) registrar: Registrar,
}

impl Start for BrokerStart {
    fn prepare(&self) -> Result<Prepared, String> {
        let Self { program, args, mut env, registrar } = self.clone();
        let (own, other) = link::pair().map_err(|error| format!("a pair of sockets: {error}"))?;
        env.insert(SUPERVISOR_FD_ENV.into(), other.as_raw_fd().to_string().into());
        let started: Started = Box::new(move |_| -> Watch {
            registrar.order(Order::Connected(own));
            Box::new(())
        });
        Ok(Prepared { program, args, env, inherited: vec![other], started, ready: None })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hive_proto::supervisor::Link;

    use super::*;

    async fn packet_after(broker: &Link, order: impl FnOnce()) -> ToBroker {
        order();
        let packet = tokio::time::timeout(Duration::from_secs(10), broker.recv::<ToBroker>())
            .await
            .expect("the link is kept");
        broker.send(&ToUp::Done, None).await.expect("the link is kept");
        packet.expect("a packet").0
    }

    #[tokio::test]
    async fn a_report_of_any_length_reaches_the_broker_and_the_next_one_too() {
        let (own, other) = link::pair().expect("a pair of sockets");
        let (broker, registrar) = (Link::new(other).expect("a link"), Registrar::start());
        assert_eq!(
            packet_after(&broker, || registrar.order(Order::Connected(own))).await,
            ToBroker::Complete
        );
        let mut ada = None;
        packet_after(&broker, || ada = Some(registrar.unconfined("ada".to_owned()).0)).await;
        for c in ['x', '\u{1}', '"', '🐝'] {
            let notes = vec![c.to_string().repeat(1_000); 1_000];
            let shown = Shown { reached: Reached::None, notes, accepted: false, refused: None };
            let got =
                packet_after(&broker, || ada.iter().for_each(|ada| ada.isolation(shown.clone())))
                    .await;
            let ToBroker::Isolation { notes, .. } = got else { panic!("{got:?}") };
            assert_eq!(
                (notes.len(), notes[0].chars().count()),
                (ISOLATION_NOTES_MAX, ISOLATION_NOTE_CHARS_MAX)
            );
        }
        // A report that exceeds every bound.
        let long = "x".repeat(hive_proto::supervisor::PACKET_BYTES_MAX);
        let _long = registrar.unconfined(long);
        let got = packet_after(&broker, || drop(registrar.unconfined("bob".to_owned()))).await;
        assert_eq!(got, ToBroker::Unconfined { agent: "bob".to_owned() });
    }
}
