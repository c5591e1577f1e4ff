//! The socket of the metrics: HTTP/1.1 for a few collectors at a time.
//!
//! Anything may be at the other end: on loopback every local user. Invariant: there are at most
//! [`CONNECTIONS_MAX`] connections, each for one request of a bounded size, and for
//! [`CONNECTION_TIME`] at most; further ones wait in the kernel.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::page::Page;
use super::text;
use crate::rpc::listen::ListenError;
use crate::rpc::socket_file::{bind, group_id, remove, set_mode};

/// Connections at the same time.
const CONNECTIONS_MAX: usize = 8;
/// Time that a connection has for its request and the response.
const CONNECTION_TIME: Duration = Duration::from_secs(5);
/// Bytes of a request's head that are read.
const HEAD_BYTES_MAX: usize = 8 * 1024;
/// Pause after an error of accept, such as a lack of files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two attempts to open a port that another program has.
const PORT_PAUSE: Duration = Duration::from_secs(1);
/// The path of the page.
const PATH: &str = "/metrics";

/// The listening socket. A unix socket's file is removed with it.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
    _file: Option<OwnFile>,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

/// The file of a unix socket.
#[derive(Debug)]
struct OwnFile(PathBuf);

impl Drop for OwnFile {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

impl Door {
    /// Opens a unix socket, for this user and, if there is one, for this group.
    pub fn open(path: &Path, group: Option<&str>) -> Result<Self, ListenError> {
        let fail = |source| ListenError::Io { path: path.to_path_buf(), source };
        let gid = group
            .map(|group| {
                let gid = group_id(group).map(|gid| (group, gid));
                gid.ok_or_else(|| ListenError::NoSuchGroup(group.to_owned()))
            })
            .transpose()?;
        let listener = bind(path)?;
        let file = OwnFile(path.to_path_buf());
        set_mode(path, 0o600)?;
        if let Some((group, gid)) = gid {
            // In a directory that hands its group down it is right already.
            if std::fs::metadata(path).map_err(fail)?.gid() != gid {
                std::os::unix::fs::chown(path, None, Some(gid)).map_err(|source| {
                    let (path, group) = (path.to_path_buf(), group.to_owned());
                    ListenError::NotInGroup { path, group, source }
                })?;
            }
            set_mode(path, 0o660)?;
        }
        listener.set_nonblocking(true).map_err(fail)?;
        let listener = Listener::Unix(UnixListener::from_std(listener).map_err(fail)?);
        Ok(Self { listener, _file: Some(file) })
    }

    /// Opens a port.
    pub fn port(address: SocketAddr) -> io::Result<Self> {
        let listener = StdTcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener: Listener::Tcp(TcpListener::from_std(listener)?), _file: None })
    }

    /// Opens a port and serves the page until `stop`. A port that another program has is tried
    /// again and again: any local user can take it, and must not keep the broker from starting.
    pub async fn serve_port(address: SocketAddr, page: Arc<Page>, stop: CancellationToken) {
        let mut is_said = false;
        loop {
            match Self::port(address) {
                Ok(door) => return door.serve(page, stop).await,
                Err(error) if !is_said => {
                    tracing::error!(%address, %error, "the metrics cannot be offered (broker.metrics.listen); is another program there? it is tried again");
                    is_said = true;
                }
                Err(_) => {}
            }
            if stop.run_until_cancelled(tokio::time::sleep(PORT_PAUSE)).await.is_none() {
                return;
            }
        }
    }

    /// Serves the page until `stop`.
    pub async fn serve(self, page: Arc<Page>, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let is_port = matches!(self.listener, Listener::Tcp(_));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = stop.run_until_cancelled(self.next(&places)).await;
            let Some((stream, place)) = accepted else { break };
            let page = Arc::clone(&page);
            connections.spawn(async move {
                let served =
                    tokio::time::timeout(CONNECTION_TIME, answer(stream, page, is_port)).await;
                if !matches!(served, Ok(Ok(()))) {
                    tracing::debug!("a collector of metrics was not served");
                }
                drop(place);
            });
        }
        // What has not been sent by now is of no use to a collector.
        connections.shutdown().await;
    }

    /// Returns the next connection, once there is a place for it.
    async fn next(
        &self,
        places: &Arc<Semaphore>,
    ) -> (Box<dyn Stream>, Option<OwnedSemaphorePermit>) {
        // The semaphore is never closed.
        let place = Arc::clone(places).acquire_owned().await.ok();
        loop {
            let accepted = match &self.listener {
                Listener::Unix(listener) => {
                    listener.accept().await.map(|(stream, _)| Box::new(stream) as Box<dyn Stream>)
                }
                Listener::Tcp(listener) => {
                    listener.accept().await.map(|(stream, _)| Box::new(stream) as Box<dyn Stream>)
                }
            };
            match accepted {
                Ok(stream) => return (stream, place),
                Err(error) => {
                    tracing::debug!(%error, "a collector of metrics was not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Answers one request.
async fn answer(stream: Box<dyn Stream>, page: Arc<Page>, is_port: bool) -> hyper::Result<()> {
    let service = service_fn(move |request: Request<Incoming>| {
        let page = Arc::clone(&page);
        async move {
            let is_for_us = !is_port || is_of_this_host(request.headers());
            Ok::<_, Infallible>(if is_for_us {
                respond(request.method(), request.uri().path(), &page).await
            } else {
                let sentence = "Name this host by its address or as localhost.\n";
                plain(StatusCode::FORBIDDEN, sentence)
            })
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_TIME)
        .max_buf_size(HEAD_BYTES_MAX)
        // A collector calls each few seconds; a connection that waits would keep its place.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

/// Returns whether a request names this host by an address or as localhost. A browser of this host
/// that shows a page of another one names that, even if its name leads here (DNS rebinding).
fn is_of_this_host(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST) else { return true };
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok()
    })
}

async fn respond(method: &Method, path: &str, page: &Page) -> Response<String> {
    if path != PATH {
        return plain(StatusCode::NOT_FOUND, "The metrics are at /metrics.\n");
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "Use GET.\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let mut found = Response::new(page.text().await.to_string());
    let kind = HeaderValue::from_static(text::CONTENT_TYPE);
    found.headers_mut().insert(CONTENT_TYPE, kind);
    found
}

fn plain(status: StatusCode, sentence: &str) -> Response<String> {
    let mut response = Response::new(sentence.to_owned());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
