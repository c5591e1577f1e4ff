//! The socket of the metrics: HTTP/1.1 for a few collectors at a time.
//!
//! Anything may be at the other end: on loopback every local user. Invariant: there are at most
//! [`CONNECTIONS_MAX`] connections, each for one request of a bounded size, and for
//! [`CONNECTION_TIME`] at most; further ones wait in the kernel.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
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
/// Headers that a request may have.
const HEADERS_MAX: usize = 64;
/// Bytes that are read and ignored after the head, so that the response arrives.
const REST_BYTES_MAX: u64 = 64 * 1024;
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

/// Returns whether the directory of this path gives its group to files in it.
fn hands_down(path: &Path) -> bool {
    let dir = path.parent().and_then(|dir| std::fs::metadata(dir).ok());
    dir.is_some_and(|dir| dir.mode() & 0o2000 != 0)
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
    /// Opens a unix socket, for this user and for `group`; without it for the group that the
    /// directory hands down, or else for the operators. Without operators it is this user's alone.
    pub fn open(
        path: &Path,
        group: Option<&str>,
        operators: Option<&str>,
    ) -> Result<Self, ListenError> {
        let is_handed_down = group.is_none() && hands_down(path);
        let group = group.or(operators);
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
            if !is_handed_down && std::fs::metadata(path).map_err(fail)?.gid() != gid {
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

/// Answers one request, and ends the connection: a collector calls each few seconds, and one that
/// waits would keep its place.
async fn answer(mut stream: Box<dyn Stream>, page: Arc<Page>, is_port: bool) -> io::Result<()> {
    let Some(response) = response(&mut stream, &page, is_port).await? else { return Ok(()) };
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await?;
    // Closed with unread bytes, the kernel would take back what the collector has not read yet.
    tokio::io::copy(&mut stream.take(REST_BYTES_MAX), &mut tokio::io::sink()).await?;
    Ok(())
}

/// Reads the head of a request and returns the response; `None` if the connection ends before it.
async fn response(
    stream: &mut Box<dyn Stream>,
    page: &Page,
    is_port: bool,
) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                return Ok(Some(respond(&request, page, is_port).await));
            }
            Ok(httparse::Status::Partial) if head.len() < HEAD_BYTES_MAX => {}
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                let status = "431 Request Header Fields Too Large";
                return Ok(Some(plain(status, "The head of the request is too long.\n")));
            }
            Err(error) => {
                return Ok(Some(plain(
                    "400 Bad Request",
                    &format!("This is no request: {error}.\n"),
                )));
            }
        }
        let room = HEAD_BYTES_MAX - head.len();
        if stream.take(room as u64).read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
}

async fn respond(request: &httparse::Request<'_, '_>, page: &Page, is_port: bool) -> String {
    let hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    if is_port && !hosts.map(|host| host.value).all(is_of_this_host) {
        return plain("403 Forbidden", "Name this host by its address or as localhost.\n");
    }
    let uri = request.path.and_then(|path| path.parse::<Uri>().ok());
    if uri.is_none_or(|uri| uri.path() != PATH) {
        return plain("404 Not Found", "The metrics are at /metrics.\n");
    }
    match request.method {
        Some("GET") => whole("200 OK", text::CONTENT_TYPE, &page.text().await),
        // As for GET, without the page.
        Some("HEAD") => head_of("200 OK", text::CONTENT_TYPE, page.text().await.len()),
        _ => {
            let refused = plain("405 Method Not Allowed", "Use GET.\n");
            refused.replacen("\r\n", "\r\nallow: GET, HEAD\r\n", 1)
        }
    }
}

/// Returns whether a request names this host by an address or as localhost. A browser of this host
/// that shows a page of another one names that, even if its name leads here (DNS rebinding).
fn is_of_this_host(host: &[u8]) -> bool {
    let authority = Authority::try_from(host);
    authority.is_ok_and(|authority| {
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok()
    })
}

fn plain(status: &str, sentence: &str) -> String {
    whole(status, "text/plain; charset=utf-8", sentence)
}

fn whole(status: &str, kind: &str, body: &str) -> String {
    let mut response = head_of(status, kind, body.len());
    response.push_str(body);
    response
}

fn head_of(status: &str, kind: &str, bytes: usize) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {bytes}\r\nconnection: close\r\n\r\n"
    )
}
