//! A webhook that notifies the operator: one POST per item.
//!
//! Invariant: an item is posted once, to that URL and no other: redirects are not followed. The URL
//! may hold a secret, so logs and errors have only its host.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};

use super::{NotifyError, SetUpError, item};
use crate::engine::mail::outbox::Item;

/// Time limit for the answer of a server.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// The webhook of the configuration.
pub(super) struct Webhook {
    url: Uri,
    client: Client<HttpsConnector<HttpConnector>, String>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.host())
    }
}

impl Webhook {
    /// Returns a webhook at this URL. For https the host's own certificates are read, once.
    pub(super) fn new(url: &str) -> Result<Self, SetUpError> {
        let url: Uri = url.parse().map_err(SetUpError::Url)?;
        let connector = HttpsConnectorBuilder::new();
        let connector = if url.scheme() == Some(&http::uri::Scheme::HTTPS) {
            connector.with_native_roots().map_err(SetUpError::NoCertificates)?.https_only()
        } else {
            let no_roots = ClientConfig::builder().with_root_certificates(RootCertStore::empty());
            connector.with_tls_config(no_roots.with_no_client_auth()).https_or_http()
        };
        let client = Client::builder(TokioExecutor::new())
            // Items are rare, so no connection is kept for the next one.
            .pool_max_idle_per_host(0)
            .build(connector.enable_http1().build());
        Ok(Self { url, client })
    }

    /// Posts an item, and waits for the answer.
    pub(super) async fn post(&self, item: &Item) -> Result<(), NotifyError> {
        let request = Request::post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("hived/", env!("CARGO_PKG_VERSION")))
            .body(item::json(item))
            .expect("a URL that was parsed and two plain headers");
        let answered = tokio::time::timeout(LIMIT, self.client.request(request)).await;
        let answered =
            answered.map_err(|_| NotifyError::NoAnswer { host: self.host(), limit: LIMIT })?;
        let answer = answered.map_err(|error| NotifyError::NotReached {
            host: self.host(),
            reason: chain(&error),
        })?;
        // The body of the response is not used.
        let status = answer.status();
        if status.is_success() {
            Ok(())
        } else {
            Err(NotifyError::Refused { host: self.host(), status })
        }
    }

    fn host(&self) -> String {
        self.url.authority().map(ToString::to_string).unwrap_or_default()
    }
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
