//! The page of the metrics, if the broker offers one.

use std::io;
use std::time::Duration;

use hive_core::config::{Config, Metrics};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use super::collect::Collector;

const NAME: &str = "metrics.txt";
const ANSWER_MAX: Duration = Duration::from_secs(10);
const PAGE_BYTES_MAX: u64 = 4 << 20;
const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
const OK: &str = "HTTP/1.1 200 ";

pub(super) async fn page(collector: &mut Collector<'_>, config: Option<&Config>) {
    let Some(place) = config.and_then(|config| config.broker.metrics.as_ref()) else {
        return collector.missing(NAME, "the configuration offers no metrics");
    };
    let page = tokio::time::timeout(ANSWER_MAX, async {
        match place {
            Metrics::Socket { path, .. } => read(UnixStream::connect(path).await?).await,
            Metrics::Listen(address) => read(TcpStream::connect(address).await?).await,
        }
    });
    match page.await {
        Ok(Ok(page)) => collector.text(NAME, &page),
        Ok(Err(error)) => collector.missing(NAME, &error.to_string()),
        Err(_) => collector.missing(NAME, "the broker did not answer in time"),
    }
}

async fn read(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<String> {
    stream.write_all(REQUEST).await?;
    let mut answer = String::new();
    stream.take(PAGE_BYTES_MAX).read_to_string(&mut answer).await?;
    let parts = answer.split_once("\r\n\r\n").filter(|(head, _)| head.starts_with(OK));
    let no_page = || io::Error::other("what answered is not the page of a broker");
    parts.map(|(_, page)| page.to_owned()).ok_or_else(no_page)
}
