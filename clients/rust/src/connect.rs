//! Connecting to a broker: a gRPC channel over a unix socket.
//!
//! Invariant: the path is checked before the first attempt, so a wrong path is a clear error and
//! not a timeout.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, socket_with,
};
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::connections::{Connection, Connections};
use crate::handshake::{self, ADDITIONS, Handshake, Program};

/// The environment variable that names the socket for every client.
pub const SOCKET_ENV: &str = "HIVE_SOCKET";

/// Path of an agent's socket inside a container, and of every client without another one.
pub const DEFAULT_SOCKET: &str = "/run/hive/hive.sock";

/// The longest path of a unix socket that Linux allows, in bytes.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The longest time in which a connection opens.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Linux does not allow a path of this length.
    #[error("the socket path {} has {} bytes, more than the {SOCKET_PATH_BYTES_MAX} that Linux allows; choose a shorter directory", .0.display(), .0.as_os_str().len())]
    PathTooLong(PathBuf),
    /// It is an address as gRPC libraries write it.
    #[error("{} is a URI; Hive's programs take the path alone, without `unix:`", .0.display())]
    Uri(PathBuf),
    /// The mode or the access control list of the socket does not let this user in.
    #[error("this user may not connect to {}", .path.display())]
    NotAllowed {
        /// The socket.
        path: PathBuf,
        /// Error of the host.
        #[source]
        source: io::Error,
    },
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
    connections: Arc<Connections>,
) -> Result<Channel, ConnectError> {
    check(path)?;
    // A plain connect first: its error names the cause, and the channel's error is only "transport
    // error".
    open(path).await.map_err(|source| {
        let path = path.to_path_buf();
        if source.kind() == io::ErrorKind::PermissionDenied {
            ConnectError::NotAllowed { path, source }
        } else {
            ConnectError::Unreachable { path, source }
        }
    })?;
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
    Endpoint::from_static("http://localhost").connect_timeout(CONNECT_MAX)
}

/// Opens a connection. While others have filled the queue of the socket, it waits for its turn.
async fn open(path: &Path) -> io::Result<UnixStream> {
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let path = path.to_path_buf();
            let opened = tokio::task::spawn_blocking(move || open_in_turn(&path)).await?;
            UnixStream::from_std(opened?)
        }
        opened => opened,
    }
}

/// Opens a connection in a thread that waits. Only these have an order: attempts without waiting
/// would come later than all who wait.
fn open_in_turn(path: &Path) -> io::Result<std::os::unix::net::UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(CONNECT_MAX))?;
    let address = SocketAddrUnix::new(path)?;
    retry_on_intr(|| connect_to(&socket, &address))?;
    set_socket_timeout(&socket, Timeout::Send, None)?;
    let stream = std::os::unix::net::UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Returns a connector that counts its connections.
fn connector(
    path: &Path,
    connections: Arc<Connections>,
) -> impl tower::Service<Uri, Response = TokioIo<Connection>, Error = io::Error, Future: Send>
+ Send
+ 'static
+ use<> {
    let path = path.to_path_buf();
    tower::service_fn(move |_: Uri| {
        let (path, connections) = (path.clone(), Arc::clone(&connections));
        async move { Ok(TokioIo::new(connections.add(open(&path).await?))) }
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn a_full_queue_is_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("hive.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        rustix::net::listen(&listener, 1).expect("a short queue");
        let mut queue = Vec::new();
        let full = loop {
            match UnixStream::connect(&path).await {
                Ok(stream) => queue.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);

        let mut late = pin!(open(&path));
        tokio::select! {
            biased;
            opened = &mut late => panic!("the queue is full: {opened:?}"),
            () = tokio::task::yield_now() => {}
        }
        for _ in 0..=queue.len() {
            listener.accept().await.expect("a connection");
        }
        late.await.expect("it had its turn");
    }
}
