//! The stream of deliveries of a mail: opened, read, written, and opened again after a break.
//!
//! Invariant: it ends only when the mail is closed or dropped, or when the broker ends it for a
//! reason that no repeat can repair.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Status};

use super::delivery::Delivery;
use super::held::{Held, Order};
use crate::error::Error;
use crate::hive::Hive;
use crate::retry::Pauses;
use crate::v1::inbox_service_client::InboxServiceClient;
use crate::v1::stream_deliveries_request::Step as Ask;
use crate::v1::stream_deliveries_response::Step;
use crate::v1::{LeasedDelivery, StreamDeliveriesResponse};
use crate::v1::{OpenDeliveries, Pong, SettleDeliveriesRequest, StreamDeliveriesRequest};

/// The broker ends a stream whose caller does not answer its pings; that is no fault of the mail.
const STREAM_SILENT: &str = "STREAM_SILENT";

/// See the module.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) hive: Hive,
    pub(super) open: OpenDeliveries,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    /// For the deliveries.
    pub(super) sender: mpsc::UnboundedSender<Order>,
    pub(super) handed: mpsc::UnboundedSender<Result<Delivery, Error>>,
    pub(super) held: Held,
    pub(super) closing: bool,
}

/// The requests of the open stream.
type Requests = mpsc::UnboundedSender<StreamDeliveriesRequest>;

impl Session {
    /// Runs until the mail is closed, or broken for good.
    pub(super) async fn run(mut self) {
        let mut pauses = Pauses::new();
        let error = loop {
            match self.stream(&mut pauses).await {
                Ok(()) => break Error::closed("mail"),
                Err(error) if error.is_transient() || error.reason() == STREAM_SILENT => {
                    self.rest(pauses.after(&error)).await;
                    if self.is_over() {
                        break Error::closed("mail");
                    }
                }
                Err(error) => {
                    // The program may read no more.
                    let _ = self.handed.send(Err(error.clone()));
                    break error;
                }
            }
        };
        self.held.end(&error);
    }

    /// Waits without a stream, unless the mail is over.
    async fn rest(&mut self, pause: Duration) {
        let mut pause = pin!(sleep(pause));
        while !self.is_over() {
            tokio::select! {
                () = &mut pause => return,
                order = self.orders.recv() => self.take(order),
            }
        }
    }

    /// Returns whether nothing is left to do.
    fn is_over(&self) -> bool {
        self.closing && self.held.is_settled()
    }

    fn take(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Settle(pending)) => self.held.settle(pending),
            Some(Order::Close) | None => self.closing = true,
        }
    }

    /// Reads one stream to its end, which is Ok after a close.
    async fn stream(&mut self, pauses: &mut Pauses) -> Result<(), Error> {
        let (requests, outgoing) = mpsc::unbounded_channel();
        self.held.begin();
        ask(&requests, Ask::Open(self.open.clone()));
        let mut client = InboxServiceClient::new(self.hive.channel());
        let outgoing = self.hive.request(UnboundedReceiverStream::new(outgoing));
        let mut steps = client.stream_deliveries(outgoing).await?.into_inner();
        let mut is_open = false;
        loop {
            if is_open && self.is_over() {
                // Half-closed, the stream releases what is not settled.
                drop(requests);
                while steps.message().await?.is_some() {}
                return Ok(());
            }
            tokio::select! {
                biased;
                step = steps.message() => {
                    let ended = || Status::unavailable("the broker ended the stream");
                    let step = step?.ok_or_else(ended)?;
                    is_open |= self.read(step, &requests)?;
                    if is_open {
                        *pauses = Pauses::new();
                    }
                }
                order = self.orders.recv() => {
                    self.take(order);
                    // What was settled at the same time goes in one step.
                    while let Ok(order) = self.orders.try_recv() {
                        self.take(Some(order));
                    }
                }
            }
            while let Some(settlements) = self.held.next_step() {
                ask(&requests, Ask::Settle(SettleDeliveriesRequest { settlements }));
            }
        }
    }

    /// Takes a step of the broker; returns whether it completes the begin of the stream.
    fn read(&mut self, step: StreamDeliveriesResponse, requests: &Requests) -> Result<bool, Error> {
        match step.step {
            Some(Step::Opened(opened)) => {
                self.hand(opened.deliveries)?;
                if opened.complete {
                    self.held.opened();
                }
                return Ok(opened.complete);
            }
            Some(Step::Leased(leased)) => self.hand(leased.deliveries)?,
            Some(Step::Settled(settled)) => self.held.settled(settled.results),
            Some(Step::Ping(_)) => ask(requests, Ask::Pong(Pong {})),
            // A step of a later broker.
            None => {}
        }
        Ok(false)
    }

    /// Hands out leases that the program does not have. After a close they go back with the stream.
    fn hand(&mut self, leases: Vec<LeasedDelivery>) -> Result<(), Error> {
        for new in self.held.leased(leases) {
            let delivery = Delivery::new(new, self.sender.clone()).ok_or_else(|| {
                Error::local(Code::Internal, "the broker leased a delivery without a message")
            })?;
            if !self.closing {
                let _ = self.handed.send(Ok(delivery));
            }
        }
        Ok(())
    }
}

fn ask(requests: &Requests, step: Ask) {
    // If the stream has ended, its status follows.
    let _ = requests.send(StreamDeliveriesRequest { step: Some(step) });
}
