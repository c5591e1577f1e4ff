//! The path between a client and a broker: a socket that passes on what it gets, until a case says
//! otherwise.
//!
//! Invariant: bytes are passed on whole and in order, or the connection breaks. Both sides see one
//! connection for each connection.

use std::io;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What a path does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Orders {
    /// Holds what the broker sends.
    held: bool,
    /// Accepts no connections.
    refused: bool,
    /// The number of orders to break all connections.
    cuts: u64,
}

/// The path to one socket.
#[derive(Debug)]
pub(crate) struct Way {
    socket: PathBuf,
    orders: watch::Sender<Orders>,
    _passing: JoinSet<()>,
}

impl Way {
    /// Opens a socket whose connections lead to another one.
    pub(crate) fn open(socket: PathBuf, target: PathBuf) -> io::Result<Self> {
        let listener = UnixListener::bind(&socket)?;
        let (orders, receiver) = watch::channel(Orders::default());
        let mut passing = JoinSet::new();
        passing.spawn(accept(listener, target, receiver));
        Ok(Self { socket, orders, _passing: passing })
    }

    /// Returns the socket for clients.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Holds what the broker sends.
    pub(crate) fn hold(&self) {
        self.orders.send_modify(|orders| orders.held = true);
    }

    /// Lets everything through again.
    pub(crate) fn release(&self) {
        self.orders.send_modify(|orders| (orders.held, orders.refused) = (false, false));
    }

    /// Breaks all connections.
    pub(crate) fn cut(&self) {
        self.orders.send_modify(|orders| orders.cuts += 1);
    }

    /// Breaks all connections and each new one, until [`Way::release`].
    pub(crate) fn refuse(&self) {
        self.orders.send_modify(|orders| {
            orders.cuts += 1;
            orders.refused = true;
        });
    }
}

async fn accept(listener: UnixListener, target: PathBuf, orders: watch::Receiver<Orders>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                if orders.borrow().refused {
                    continue;
                }
                connections.spawn(connect(client, target.clone(), orders.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connect(client: UnixStream, target: PathBuf, mut orders: watch::Receiver<Orders>) {
    let cuts = orders.borrow().cuts;
    // Without a broker the connection breaks, as one that was accepted by a dying broker.
    let Ok(broker) = UnixStream::connect(&target).await else { return };
    let (client_reader, client_writer) = client.into_split();
    let (broker_reader, broker_writer) = broker.into_split();
    let there = pass(client_reader, broker_writer, None);
    let back = pass(broker_reader, client_writer, Some(orders.clone()));
    tokio::select! {
        _ = orders.wait_for(|orders| orders.cuts != cuts) => {}
        // If either side ends, both do.
        _ = there => {}
        _ = back => {}
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut orders: Option<watch::Receiver<Orders>>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        if let Some(orders) = &mut orders {
            // The sender is in the way, which outlives its connections.
            let _ = orders.wait_for(|orders| !orders.held).await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}
