//! Connecting to a broker: a gRPC channel over a unix socket.
//!
//! Invariant: the path is checked before anything is tried, so a wrong one is a clear error and not
//! a timeout.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hive_core::limits::SOCKET_PATH_BYTES_MAX;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};

/// Why no connection was made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Linux cannot address it.
    #[error("the socket path {} has {} bytes, more than the {SOCKET_PATH_BYTES_MAX} that Linux allows; choose a shorter directory", .0.display(), .0.as_os_str().len())]
    PathTooLong(PathBuf),
    /// Nobody answers there.
    #[error("no broker answers on {}", .path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the host said.
        #[source]
        source: io::Error,
    },
    /// Somebody answers who is no broker.
    #[error("what answers on {} does not speak gRPC", .path.display())]
    NotABroker {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        #[source]
        source: tonic::transport::Error,
    },
}

/// Connects at once; an error if nobody answers.
pub async fn connect(path: &Path) -> Result<Channel, ConnectError> {
    check(path)?;
    // A plain connect first: its error names the cause, where the channel's says only "transport
    // error".
    let probe = UnixStream::connect(path).await;
    probe.map_err(|source| ConnectError::Unreachable { path: path.to_path_buf(), source })?;
    let connector = connector(path);
    endpoint()
        .connect_with_connector(connector)
        .await
        .map_err(|source| ConnectError::NotABroker { path: path.to_path_buf(), source })
}

/// A channel that connects when first used, and again after every loss.
pub fn connect_lazy(path: &Path) -> Result<Channel, ConnectError> {
    check(path)?;
    Ok(endpoint().connect_with_connector_lazy(connector(path)))
}

fn check(path: &Path) -> Result<(), ConnectError> {
    if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return Err(ConnectError::PathTooLong(path.to_path_buf()));
    }
    Ok(())
}

fn endpoint() -> Endpoint {
    // The authority is never resolved; the socket is the address.
    Endpoint::from_static("http://localhost").connect_timeout(Duration::from_secs(5))
}

fn connector(
    path: &Path,
) -> impl tower::Service<Uri, Response = TokioIo<UnixStream>, Error = io::Error, Future: Send>
+ Send
+ 'static
+ use<> {
    let path = path.to_path_buf();
    tower::service_fn(move |_: Uri| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    })
}
