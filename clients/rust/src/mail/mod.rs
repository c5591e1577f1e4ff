//! Mail: the deliveries of an agent as a stream that outlives breaks of the connection and restarts
//! of the broker.
//!
//! Invariant: a task owns the stream; it ends with the [`Mail`]. What the program holds is settled
//! by it, released by [`Mail::close`], or lost, of which the delivery notifies.

mod delivery;
mod held;
mod session;

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::TryStreamExt as _;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_stream::Stream;

pub use self::delivery::Delivery;
use self::held::{Held, Order};
use self::session::Session;
use crate::error::Error;
use crate::hive::Hive;
use crate::v1::{DeliveryWindow, OpenDeliveries};

/// How a program takes its mail.
#[derive(Clone, Debug)]
pub struct MailOptions {
    /// Deliveries that may be out at once; the broker lowers it to its maximum, 256.
    pub window: u32,
    /// Bytes of their bodies; 0: the maximum of the broker, 3 MiB. One delivery always fits.
    pub window_bytes: u32,
    /// How long leases live on after a break of the connection; `None`: the broker's 30 s.
    pub orphan_grace: Option<Duration>,
    /// The name of the stream; empty: a new one. A newer stream of the same name replaces this one.
    pub stream_id: String,
}

impl Default for MailOptions {
    fn default() -> Self {
        Self { window: 8, window_bytes: 0, orphan_grace: None, stream_id: String::new() }
    }
}

/// The mail of an agent, a stream of its deliveries.
///
/// To drop it breaks the stream: leases live on for their grace, and end with an attempt. Close it
/// to release them at once.
#[derive(Debug)]
pub struct Mail {
    handed: mpsc::UnboundedReceiver<Result<Delivery, Error>>,
    closer: MailCloser,
    /// The one task; it is aborted with this.
    task: JoinSet<()>,
    window: usize,
}

/// Closes a [`Mail`] from another place than the one that reads it.
#[derive(Clone, Debug)]
pub struct MailCloser {
    orders: mpsc::UnboundedSender<Order>,
    closed: watch::Sender<bool>,
}

impl MailCloser {
    /// Ends the reading of the mail, as [`Mail::close`] does, and does not wait for it.
    pub fn close(&self) {
        self.closed.send_replace(true);
        // If the task has ended, there is nothing to close.
        let _ = self.orders.send(Order::Close);
    }
}

impl Hive {
    /// Takes the mail of the agent of this socket. Without a connection it waits for one.
    #[must_use]
    pub fn mail(&self, options: MailOptions) -> Mail {
        let MailOptions { window, window_bytes, orphan_grace, stream_id } = options;
        let (sender, orders) = mpsc::unbounded_channel();
        let (handed, received) = mpsc::unbounded_channel();
        let stream_id = if stream_id.is_empty() { self.request_id() } else { stream_id };
        let open = OpenDeliveries {
            stream_id,
            window: Some(DeliveryWindow { deliveries: window, bytes: window_bytes }),
            orphan_grace: orphan_grace.and_then(|grace| grace.try_into().ok()),
        };
        let session = Session {
            hive: self.clone(),
            open,
            orders,
            sender: sender.clone(),
            handed,
            held: Held::default(),
            closing: false,
        };
        let mut task = JoinSet::new();
        task.spawn(session.run());
        Mail {
            handed: received,
            closer: MailCloser { orders: sender, closed: watch::Sender::new(false) },
            task,
            window: usize::try_from(window).unwrap_or(usize::MAX).max(1),
        }
    }
}

impl Mail {
    /// Waits for the next delivery; `None` once the mail is closed. An error ends the mail.
    pub async fn next(&mut self) -> Option<Result<Delivery, Error>> {
        let mut closed = self.closer.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => None,
            delivery = self.handed.recv() => delivery,
        }
    }

    /// Works on each delivery, on as many at once as the window allows, until the mail is closed or
    /// broken for good. `Ok` of the handler acks its delivery and `Err` nacks it with its text. If
    /// the lease is lost, or the mail closed, the future of the handler is dropped.
    pub async fn each<H, F, E>(&mut self, handler: H) -> Result<(), Error>
    where
        H: Fn(&Delivery) -> F,
        F: Future<Output = Result<(), E>>,
        E: std::fmt::Display,
    {
        let (mut closed, window) = (self.closer.closed.subscribe(), self.window);
        let handled = self.try_for_each_concurrent(window, |delivery| {
            let work = handler(&delivery);
            handle(delivery, work)
        });
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => Ok(()),
            ended = handled => ended,
        }
    }

    /// Returns what closes this mail from another place.
    #[must_use]
    pub fn closer(&self) -> MailCloser {
        self.closer.clone()
    }

    /// Ends the mail: waits for the results of settlements, releases everything that is not
    /// settled, without an attempt, and ends the stream. It waits at most 10 s.
    pub async fn close(&mut self) {
        self.closer.close();
        self.handed.close();
        // It ends by itself, or its leases do.
        let _ = tokio::time::timeout(CLOSE_MAX, self.task.join_next()).await;
        self.task.abort_all();
    }
}

/// The longest wait of a close.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// Settles a delivery by the result of its work, unless its lease is lost before.
async fn handle<E: std::fmt::Display>(
    delivery: Delivery,
    work: impl Future<Output = Result<(), E>>,
) -> Result<(), Error> {
    let worked = tokio::select! {
        biased;
        () = delivery.lost() => return Ok(()),
        worked = work => worked,
    };
    // A refusal means that the lease was lost, and another holder works on it.
    let _ = match worked {
        Ok(()) => delivery.ack().await,
        Err(error) => delivery.nack(error.to_string()).await,
    };
    Ok(())
}

impl Stream for Mail {
    type Item = Result<Delivery, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if *self.closer.closed.borrow() {
            return Poll::Ready(None);
        }
        self.handed.poll_recv(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::held::New;
    use super::*;
    use crate::v1::{self, LeasedDelivery, Message};

    #[tokio::test]
    async fn a_close_cancels_handlers_before_their_leases_end() {
        let (orders, mut ordered) = mpsc::unbounded_channel();
        let (sender, handed) = mpsc::unbounded_channel();
        let closer = MailCloser { orders: orders.clone(), closed: watch::Sender::new(false) };
        let mut mail = Mail { handed, closer, task: JoinSet::new(), window: 1 };
        let (_lease, lost) = watch::channel(false);
        let message = Some(Message::default());
        let delivery = Some(v1::Delivery { message, ..Default::default() });
        let leased = LeasedDelivery { delivery, ..Default::default() };
        let delivery = Delivery::new(New { leased, lost }, orders).expect("it has a message");
        sender.send(Ok(delivery)).expect("the mail is open");

        let closer = mail.closer();
        let hang = |_: &Delivery| {
            closer.close();
            std::future::pending::<Result<(), String>>()
        };
        assert_eq!(mail.each(hang).await, Ok(()));
        assert!(matches!(ordered.recv().await, Some(Order::Close)));
        assert!(mail.next().await.is_none());
    }
}
