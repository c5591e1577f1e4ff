//! Posting over HTTP/1.1: the client of webhooks and of traces.
//!
//! Invariant: a body is posted once, to that URL and no other: redirects are not followed. The URL
//! and the headers may hold secrets, so logs and errors have only the host.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prost::bytes::Bytes;
use rustls::{ClientConfig, RootCertStore};

/// Time limit for the answer of a server.
const LIMIT: Duration = Duration::from_secs(10);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Why there is no client for a URL.
#[derive(Debug)]
pub enum NoPoster {
    /// The URL cannot be called.
    Url(http::uri::InvalidUri),
    /// The host has no certificates by which to trust a server.
    NoCertificates(std::io::Error),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    /// The server could not be reached.
    #[error("{host} could not be reached: {reason}")]
    NotReached {
        /// The host of the URL.
        host: String,
        /// The error with all its causes.
        reason: String,
    },
    /// The server did not answer within its time limit.
    #[error("{host} did not answer within {} s", .limit.as_secs())]
    NoAnswer {
        /// The host of the URL.
        host: String,
        /// The time limit.
        limit: Duration,
    },
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status of the response.
    pub status: StatusCode,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// Empty if it is too long, or breaks off.
    pub body: Bytes,
}

/// A client for one URL.
pub struct Poster {
    url: Uri,
    headers: HeaderMap,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl fmt::Debug for Poster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Poster({})", self.host())
    }
}

impl Poster {
    /// Returns a client for this URL. For https the host's own certificates are read, once.
    pub fn new(url: &str) -> Result<Self, NoPoster> {
        let url: Uri = url.parse().map_err(NoPoster::Url)?;
        let connector = HttpsConnectorBuilder::new();
        let connector = if url.scheme() == Some(&http::uri::Scheme::HTTPS) {
            connector.with_native_roots().map_err(NoPoster::NoCertificates)?.https_only()
        } else {
            let no_roots = ClientConfig::builder().with_root_certificates(RootCertStore::empty());
            connector.with_tls_config(no_roots.with_no_client_auth()).https_or_http()
        };
        let client = Client::builder(TokioExecutor::new())
            // Posts are rare, so no connection is kept for the next one.
            .pool_max_idle_per_host(0)
            .build(connector.enable_http1().build());
        let agent = HeaderValue::from_static(concat!("hived/", env!("CARGO_PKG_VERSION")));
        let headers = HeaderMap::from_iter([(USER_AGENT, agent)]);
        Ok(Self { url, headers, client })
    }

    /// Returns a client that sends these headers, too.
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Posts a body of this type, and waits for the answer.
    pub fn post(
        &self,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, PostError>> + Send + '_>> {
        // Boxed, so that this crate has its code.
        Box::pin(self.posted(content_type, body))
    }

    async fn posted(&self, content_type: &'static str, body: Vec<u8>) -> Result<Answer, PostError> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        let content_type = HeaderValue::from_static(content_type);
        request.headers_mut().insert(CONTENT_TYPE, content_type);
        let answered = async {
            let (head, body) = self.client.request(request).await?.into_parts();
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            let retry_after = head.headers.get(RETRY_AFTER).and_then(seconds);
            Ok(Answer { status: head.status, retry_after, body })
        };
        match tokio::time::timeout(LIMIT, answered).await {
            Ok(answered) => answered.map_err(|error: hyper_util::client::legacy::Error| {
                PostError::NotReached { host: self.host(), reason: chain(&error) }
            }),
            Err(_) => Err(PostError::NoAnswer { host: self.host(), limit: LIMIT }),
        }
    }

    /// Returns the host of the URL, with its port.
    pub fn host(&self) -> String {
        self.url.authority().map(ToString::to_string).unwrap_or_default()
    }
}

fn seconds(value: &HeaderValue) -> Option<Duration> {
    value.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// Returns an error with all its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
