//! `bench-reference DIR [AGENTS]`: the server that `make bench` compares Hive with.
//!
//! It is the smallest server that keeps mail durably and serves it by gRPC: a table in SQLite with
//! a sync at each commit, one thread that commits what is queued, and long polls that are answered
//! from memory. It has no leases, request ids, policies or events. Invariant: it accepts nothing
//! before the commit, as Hive does.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod inbox;
mod service;
mod wire;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use inbox::Inboxes;
use service::Mail;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let dir = PathBuf::from(args.next().context("name the directory of the database")?);
    let agents = match args.next() {
        Some(text) => text.to_string_lossy().parse().context("the number of agents")?,
        None => 0_usize,
    };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(serve(dir, agents))
}

/// Serves `DIR/ref.sock`, and `DIR/aN.sock` for each agent.
async fn serve(dir: PathBuf, agents: usize) -> anyhow::Result<()> {
    let inboxes = Arc::new(Inboxes::default());
    let writer = writer::start(&dir.join("ref.db"), &inboxes)?;
    let (accepted, connections) = mpsc::channel(64);
    let agents = (0..agents).map(|agent| format!("a{agent}.sock"));
    for name in agents.chain(["ref.sock".to_owned()]) {
        let path = dir.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path)?;
        tokio::spawn(accept(listener, accepted.clone()));
    }
    let mail = Mail { inboxes, writer };
    let connections = ReceiverStream::new(connections);
    Ok(Server::builder().add_service(mail).serve_with_incoming(connections).await?)
}

async fn accept(listener: UnixListener, accepted: mpsc::Sender<io::Result<UnixStream>>) {
    loop {
        let connection = listener.accept().await.map(|(connection, _)| connection);
        if accepted.send(connection).await.is_err() {
            return;
        }
    }
}
