//! A delivery in the hands of a program: its message, its lease, and how it ends.
//!
//! Invariant: a delivery is settled at most once, because settling consumes it. One that is dropped
//! stays leased until its mail is closed.

use tokio::sync::{mpsc, oneshot, watch};
use tonic::Code;

use super::held::{New, Order, Pending};
use crate::error::Error;
use crate::v1::settlement::Action;
use crate::v1::{self, Ack, DeliveryState, Nack, Release};

/// The longest error of a nack, in bytes; the broker refuses a longer one, and ends the stream.
pub(super) const ERROR_BYTES_MAX: usize = 4096;

/// A leased delivery.
#[derive(Debug)]
pub struct Delivery {
    message: v1::Message,
    rest: v1::Delivery,
    token: String,
    orders: mpsc::UnboundedSender<Order>,
    lost: watch::Receiver<bool>,
}

impl Delivery {
    /// Returns a delivery, or `None` if a broker sent one without a message, which is not allowed.
    pub(super) fn new(new: New, orders: mpsc::UnboundedSender<Order>) -> Option<Self> {
        let New { leased, lost } = new;
        let mut rest = leased.delivery?;
        Some(Self { message: rest.message.take()?, rest, token: leased.lease_token, orders, lost })
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &v1::Message {
        &self.message
    }

    /// Returns everything else about the delivery; its `message` is unset.
    #[must_use]
    pub fn delivery(&self) -> &v1::Delivery {
        &self.rest
    }

    /// Returns the token of the lease: a secret of its holder.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Waits until the lease is lost: the broker gives the delivery to another holder. Stop the
    /// work on it.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut lost = self.lost.clone();
        async move {
            // Without the mail there is no lease.
            let _ = lost.wait_for(|lost| *lost).await;
        }
    }

    /// Settles the delivery as done; returns when that is on disk.
    pub async fn ack(self) -> Result<DeliveryState, Error> {
        self.settle(Action::Ack(Ack {})).await
    }

    /// Settles the delivery as failed, with an error for later readers: it is requeued with
    /// backoff, which uses an attempt, or becomes a dead letter. The state is READY or DEAD. An
    /// error of more than 4,096 bytes is cut.
    pub async fn nack(self, error: impl Into<String>) -> Result<DeliveryState, Error> {
        self.settle(Action::Nack(Nack { error: cut(error.into()), permanent: false })).await
    }

    /// Settles the delivery as one that no retry can make right: it becomes a dead letter.
    pub async fn nack_for_good(self, error: impl Into<String>) -> Result<DeliveryState, Error> {
        self.settle(Action::Nack(Nack { error: cut(error.into()), permanent: true })).await
    }

    /// Requeues the delivery at once, without an attempt: its work was not begun.
    pub async fn release(self) -> Result<DeliveryState, Error> {
        self.settle(Action::Release(Release {})).await
    }

    async fn settle(self, action: Action) -> Result<DeliveryState, Error> {
        let (reply, settled) = oneshot::channel();
        let order = Order::Settle(Pending { token: self.token, action, reply });
        if self.orders.send(order).is_err() {
            return Err(Error::closed("mail"));
        }
        settled.await.unwrap_or_else(|_| {
            let message = "the mail was closed before the result came, so it is not known";
            Err(Error::local(Code::Cancelled, message))
        })
    }
}

/// Returns an error in the length that the broker takes.
fn cut(mut error: String) -> String {
    error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
    error
}
