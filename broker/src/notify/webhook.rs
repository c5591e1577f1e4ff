//! A webhook that tells the operator: one POST per item.
//!
//! Invariant: what it is given is posted once, to that URL and no other: redirects are not
//! followed. The URL may hold a secret, so no log or error has more of it than the host.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Request, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::{NotifyError, SetUpError, item};
use crate::engine::attention::Item;

/// How long a server may take to answer.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// The webhook of the configuration.
pub(super) struct Webhook {
    url: Uri,
    client: Posts,
}

enum Posts {
    Plain(Client<HttpConnector, String>),
    Tls(Client<HttpsConnector<HttpConnector>, String>),
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.host())
    }
}

impl Webhook {
    /// A webhook at this URL. For https the host's own certificates are read, once.
    pub(super) fn new(url: &str) -> Result<Self, SetUpError> {
        let url: Uri = url.parse().map_err(SetUpError::Url)?;
        let mut pool = Client::builder(TokioExecutor::new());
        // Items are rare; nothing is kept open for the next one.
        pool.pool_max_idle_per_host(0);
        let client = if url.scheme() == Some(&http::uri::Scheme::HTTPS) {
            let tls = HttpsConnectorBuilder::new()
                .with_native_roots()
                .map_err(SetUpError::NoCertificates)?;
            Posts::Tls(pool.build(tls.https_only().enable_http1().build()))
        } else {
            Posts::Plain(pool.build_http())
        };
        Ok(Self { url, client })
    }

    /// Posts an item, and waits for the answer.
    pub(super) async fn post(&self, item: &Item) -> Result<(), NotifyError> {
        let request = Request::post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("hived/", env!("CARGO_PKG_VERSION")))
            .body(item::json(item))
            .expect("a URL that was parsed and two plain headers");
        let answer = async {
            match &self.client {
                Posts::Plain(client) => client.request(request).await,
                Posts::Tls(client) => client.request(request).await,
            }
        };
        let answered = tokio::time::timeout(LIMIT, answer).await;
        let answered =
            answered.map_err(|_| NotifyError::NoAnswer { host: self.host(), limit: LIMIT })?;
        let answer = answered.map_err(|error| NotifyError::NotReached {
            host: self.host(),
            reason: chain(&error),
        })?;
        // Its body is nothing to us.
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

/// An error and all that caused it.
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
