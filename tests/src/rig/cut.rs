//! A connection that a test can cut, as a client loses it that dies.
//!
//! Dropping a gRPC stream ends it cleanly. Invariant: a cut connection sends nothing more.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream as Socket;
use std::path::Path;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};

/// A channel over one connection, which is not made again.
#[derive(Debug)]
pub struct Line {
    channel: Channel,
    socket: Socket,
}

impl Line {
    /// Connects to a socket.
    pub async fn connect(path: &Path) -> io::Result<Self> {
        Self::connect_by(Endpoint::from_static("http://localhost"), path).await
    }

    /// Connects to a socket without room for an answer: no byte of a message of the broker fits.
    pub async fn connect_without_room(path: &Path) -> io::Result<Self> {
        let endpoint = Endpoint::from_static("http://localhost");
        Self::connect_by(endpoint.initial_stream_window_size(0), path).await
    }

    async fn connect_by(endpoint: Endpoint, path: &Path) -> io::Result<Self> {
        let connected = UnixStream::connect(path).await?.into_std()?;
        let socket = connected.try_clone()?;
        let mut once = Some(UnixStream::from_std(connected)?);
        let connector = tower::service_fn(move |_: Uri| {
            let stream = once.take().map(TokioIo::new);
            std::future::ready(stream.ok_or_else(|| io::Error::other("it is not made again")))
        });
        let channel = endpoint.connect_with_connector(connector).await.map_err(io::Error::other)?;
        Ok(Self { channel, socket })
    }

    /// Returns the channel.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Cuts the connection.
    pub fn cut(self) {
        // It may be closed already.
        drop(self.socket.shutdown(Shutdown::Both));
    }
}
