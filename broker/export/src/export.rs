//! The export of the configuration: the queue, and the posts of what waits in it.
//!
//! Invariant: a post that fails delays nothing but later posts.

use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use hive_core::config::Traces;
use hive_core::secret::{CREDENTIALS_ENV, SecretError};
use tokio_util::sync::CancellationToken;

use crate::exporter::{ExportError, Exporter};
use crate::queue::{Counts, Queue};

/// Why no traces can be exported.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The URL cannot be called.
    #[error("the URL of `broker.traces.otlp` cannot be called")]
    Url(#[source] http::uri::InvalidUri),
    /// A header that is kept elsewhere cannot be read.
    #[error("the header `{name}` of `broker.traces.headers` is not known")]
    Secret {
        /// The name of the header.
        name: String,
        /// The error.
        #[source]
        source: SecretError,
    },
    /// A header that is kept elsewhere cannot be sent; it is not shown.
    #[error(
        "the secret of the header `{0}` of `broker.traces.headers` cannot be sent; it must be one line without control characters"
    )]
    Header(String),
    /// The host has no certificates by which to trust a server.
    #[error(
        "`broker.traces.otlp` is an https URL, and this host has no certificates to know its server by; install them (often a package \
         `ca-certificates`), or name them in SSL_CERT_FILE"
    )]
    NoCertificates(#[source] std::io::Error),
}

/// Everything that exports traces.
#[derive(Debug)]
pub struct Export {
    queue: Queue,
    exporter: Exporter,
    counts: Arc<Counts>,
}

impl Export {
    /// Returns the export of the configuration. Files of headers are read once, so a changed one
    /// applies after a restart.
    pub fn new(traces: &Traces, hive_name: &str) -> Result<Self, TracesError> {
        let credentials = std::env::var_os(CREDENTIALS_ENV);
        let mut headers = Vec::with_capacity(traces.headers.len());
        for (name, secret) in &traces.headers {
            let value = secret.value(credentials.as_deref(), |path| File::open(path));
            let value =
                value.map_err(|source| TracesError::Secret { name: name.clone(), source })?;
            headers.push((name.clone(), value));
        }
        let exporter = Exporter::new(&traces.otlp, headers, hive_name)?;
        let counts = Arc::new(Counts::default());
        Ok(Self { queue: Queue::new(Arc::clone(&counts)), exporter, counts })
    }

    /// Returns the queue of the spans that wait.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Returns how many spans were exported and dropped.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Posts what waits, until `ended` is cancelled and nothing waits any more. Each post is
    /// reported.
    #[must_use]
    pub fn post<'e>(
        &'e self,
        ended: &'e CancellationToken,
        report: &'e (dyn Fn(Result<(), ExportError>) + Send + Sync),
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'e>> {
        // Boxed, so that this crate has its code.
        Box::pin(self.post_all(ended, report))
    }

    async fn post_all(
        &self,
        ended: &CancellationToken,
        report: &(dyn Fn(Result<(), ExportError>) + Send + Sync),
    ) {
        loop {
            let batch = self.queue.take();
            if batch.is_empty() {
                if ended.is_cancelled() {
                    return;
                }
                tokio::select! {
                    () = self.queue.added() => {}
                    () = ended.cancelled() => {}
                }
                continue;
            }
            let spans = batch.len();
            let post = self.exporter.encode(&batch);
            let mut failures = 0;
            loop {
                let error = match self.exporter.post(post.clone(), spans).await {
                    Ok(taken) => {
                        self.counts.add_exported(taken);
                        self.counts.add_dropped(spans - taken);
                        report(Ok(()));
                        break;
                    }
                    Err(error) => error,
                };
                // Of a broker that ends, each batch is posted once.
                let pause = error.pause(failures).filter(|_| !ended.is_cancelled());
                report(Err(error));
                let Some(pause) = pause else {
                    self.counts.add_dropped(spans);
                    break;
                };
                failures += 1;
                ended.run_until_cancelled(tokio::time::sleep(pause)).await;
            }
        }
    }
}
