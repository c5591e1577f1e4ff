//! A collector: plain HTTP over a socket, and the samples of a page by name and labels.
//!
//! Invariant: what is read is exactly what the broker has sent; no library hides a fault of it.

use std::collections::BTreeMap;
use std::path::Path;

use hive_tests::rig::soon;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

/// The request of a collector.
pub(crate) const GET: &str = "GET /metrics HTTP/1.1\r\nHost: hive\r\nAccept: text/plain\r\n\r\n";

/// A page by the names of its samples with their labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) samples: BTreeMap<String, f64>,
}

impl Page {
    /// Returns the page of a whole response, which has to be a good one.
    pub(crate) fn of(response: &str) -> Self {
        let (head, text) = response.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
        assert!(head.lines().any(|line| line == kind), "{head}");
        let mut samples = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a sample");
            let value = value.parse().expect("a number");
            assert!(samples.insert(name.to_owned(), value).is_none(), "twice: {line}");
        }
        Self { text: text.to_owned(), samples }
    }

    pub(crate) fn value(&self, sample: &str) -> f64 {
        let found = self.samples.get(sample);
        *found.unwrap_or_else(|| panic!("there is no {sample} in\n{}", self.text))
    }

    /// Returns the names of the families, without labels.
    pub(crate) fn families(&self) -> Vec<&str> {
        let types = self.text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        types.filter_map(|line| line.split(' ').next()).collect()
    }
}

/// Sends bytes and returns all that comes until the end of the connection.
pub(crate) async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    request: &[u8],
) -> String {
    // A server that has refused a request need not read the rest of it.
    drop(stream.write_all(request).await);
    let mut response = Vec::new();
    let read = soon("the broker ends the connection", stream.read_to_end(&mut response)).await;
    drop(read);
    String::from_utf8(response).expect("text")
}

pub(crate) async fn unix(path: &Path) -> UnixStream {
    UnixStream::connect(path).await.expect("the socket is open")
}

pub(crate) async fn scrape(path: &Path) -> Page {
    Page::of(&exchange(unix(path).await, GET.as_bytes()).await)
}

/// Sends a request to a port that names this host.
pub(crate) async fn ask_port(address: &str, host: &str) -> String {
    let stream = TcpStream::connect(address).await.expect("the port is open");
    let get = GET.replace("Host: hive", &format!("Host: {host}"));
    exchange(stream, get.as_bytes()).await
}

/// Reads the page until it shows something: it is up to a second old.
pub(crate) async fn shows(path: &Path, what: &str, is_shown: impl Fn(&Page) -> bool) -> Page {
    let look = async {
        loop {
            let page = scrape(path).await;
            if is_shown(&page) {
                return page;
            }
        }
    };
    soon(what, look).await
}
