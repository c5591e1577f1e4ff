//! Connecting to a broker: a gRPC channel over a unix socket.
//!
//! Invariant: the path is checked before the first attempt, so a wrong path is a clear error and
//! not a timeout.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hive_core::limits::SOCKET_PATH_BYTES_MAX;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::handshake::{self, ADDITIONS, Handshake, Program};

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Linux does not allow a path of this length.
    #[error("the socket path {} has {} bytes, more than the {SOCKET_PATH_BYTES_MAX} that Linux allows; choose a shorter directory", .0.display(), .0.as_os_str().len())]
    PathTooLong(PathBuf),
    /// It is an address as gRPC libraries write it.
    #[error("{} is a URI; Hive's programs take the path alone, without `unix:`", .0.display())]
    Uri(PathBuf),
    /// No process answers on the socket.
    #[error("no broker answers on {}", .path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// Error of the host.
        #[source]
        source: io::Error,
    },
    /// The answering process is not a broker.
    #[error("what answers on {} does not speak gRPC", .path.display())]
    NotABroker {
        /// The socket.
        path: PathBuf,
        /// The fault.
        #[source]
        source: tonic::transport::Error,
    },
}

/// Connects a program at once; returns an error if no broker answers. The first call makes the
/// handshake.
pub async fn connect_as(program: Program, path: &Path) -> Result<handshake::Channel, ConnectError> {
    let handshake = Handshake::new(program, ADDITIONS);
    let channel = connect_counted(path, handshake.connections()).await?;
    Ok(handshake::Channel::new(channel, handshake))
}

/// Returns a program's channel to a broker that connects at first use, and again after every loss.
/// The first call of each connection makes the handshake.
pub fn connect_lazy_as(
    handshake: Handshake,
    path: &Path,
) -> Result<handshake::Channel, ConnectError> {
    check(path)?;
    let connector = connector(path, handshake.connections());
    let channel = endpoint().connect_with_connector_lazy(connector);
    Ok(handshake::Channel::new(channel, handshake))
}

/// Connects at once, without a handshake; returns an error if no broker answers.
pub async fn connect(path: &Path) -> Result<Channel, ConnectError> {
    connect_counted(path, Arc::default()).await
}

async fn connect_counted(
    path: &Path,
    connections: Arc<AtomicU64>,
) -> Result<Channel, ConnectError> {
    check(path)?;
    // A plain connect first: its error names the cause, and the channel's error is only "transport
    // error".
    let probe = UnixStream::connect(path).await;
    probe.map_err(|source| ConnectError::Unreachable { path: path.to_path_buf(), source })?;
    endpoint()
        .connect_with_connector(connector(path, connections))
        .await
        .map_err(|source| ConnectError::NotABroker { path: path.to_path_buf(), source })
}

/// Returns a channel without a handshake that connects at first use, and again after every loss.
pub fn connect_lazy(path: &Path) -> Result<Channel, ConnectError> {
    check(path)?;
    Ok(endpoint().connect_with_connector_lazy(connector(path, Arc::default())))
}

fn check(path: &Path) -> Result<(), ConnectError> {
    if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return Err(ConnectError::PathTooLong(path.to_path_buf()));
    }
    if path.to_str().is_some_and(|text| text.starts_with("unix:")) {
        return Err(ConnectError::Uri(path.to_path_buf()));
    }
    Ok(())
}

fn endpoint() -> Endpoint {
    // The authority is never resolved; the socket is the address.
    Endpoint::from_static("http://localhost").connect_timeout(Duration::from_secs(5))
}

/// Returns a connector that counts its connections.
fn connector(
    path: &Path,
    connections: Arc<AtomicU64>,
) -> impl tower::Service<Uri, Response = TokioIo<UnixStream>, Error = io::Error, Future: Send>
+ Send
+ 'static
+ use<> {
    let path = path.to_path_buf();
    tower::service_fn(move |_: Uri| {
        let (path, connections) = (path.clone(), Arc::clone(&connections));
        async move {
            let stream = UnixStream::connect(path).await?;
            connections.fetch_add(1, Ordering::Release);
            Ok(TokioIo::new(stream))
        }
    })
}
