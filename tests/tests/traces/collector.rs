//! A collector of traces on loopback, and the spans that it was sent.
//!
//! Invariant: it answers with the status that a test has set, and keeps what it has taken.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use hive_tests::rig::soon;
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::otlp::any_value::Value;
use crate::otlp::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse, KeyValue,
    Span,
};

/// A span as a test looks at it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    /// Empty for the first of a trace.
    pub(crate) parent: String,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The spans that it links to.
    pub(crate) links: Vec<String>,
    pub(crate) is_error: bool,
    pub(crate) nanos: (u64, u64),
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::Text(text) => text.clone(),
        Value::Flag(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Fraction(number) => number.to_string(),
    };
    let pair = |attribute: &KeyValue| {
        let value = attribute.value.as_ref().and_then(|value| value.value.as_ref());
        // claude has lists, too.
        (attribute.key.clone(), value.map(text).unwrap_or_default())
    };
    let pairs: BTreeMap<_, _> = attributes.iter().map(pair).collect();
    assert_eq!(pairs.len(), attributes.len(), "the keys of attributes are unique");
    pairs
}

impl From<Span> for Seen {
    fn from(span: Span) -> Self {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8), "{span:?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
        Self {
            name: span.name,
            trace: hex(&span.trace_id),
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            attributes: texts(&span.attributes),
            links: span.links.iter().map(|link| hex(&link.span_id)).collect(),
            is_error: span.status.is_some_and(|status| status.code == 2),
            nanos: (span.start_time_unix_nano, span.end_time_unix_nano),
        }
    }
}

/// What the collector has got.
#[derive(Debug, Default)]
struct Got {
    spans: Vec<Seen>,
    resource: BTreeMap<String, String>,
    headers: HeaderMap,
    posts: usize,
}

/// The collector.
#[derive(Debug)]
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    got: Arc<Mutex<Got>>,
    posts: watch::Receiver<usize>,
    status: watch::Sender<StatusCode>,
    rejected: watch::Sender<i64>,
    _server: JoinSet<()>,
}

impl Collector {
    /// Starts a collector on any port.
    pub(crate) async fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().expect("an address")).await
    }

    pub(crate) async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let got = Arc::new(Mutex::new(Got::default()));
        let (posted, posts) = watch::channel(0);
        let (status, answer) = watch::channel(StatusCode::OK);
        let (rejected, rejects) = watch::channel(0);
        let to = Arc::clone(&got);
        let take = move |headers: HeaderMap, body: Bytes| {
            let (to, posted, answer) = (Arc::clone(&to), posted.clone(), answer.clone());
            let part = ExportTracePartialSuccess { rejected_spans: *rejects.borrow() };
            async move {
                let status = *answer.borrow();
                let mut got = to.lock().unwrap_or_else(PoisonError::into_inner);
                if status.is_success() {
                    let request = ExportTraceServiceRequest::decode(body).expect("OTLP");
                    for spans in request.resource_spans {
                        let resource = texts(&spans.resource.expect("a resource").attributes);
                        let scopes = spans.scope_spans.into_iter();
                        let spans: Vec<Span> = scopes.flat_map(|scope| scope.spans).collect();
                        if resource["service.name"] == "hived" {
                            assert!(spans.iter().all(|span| span.flags & 1 == 1), "{spans:?}");
                            got.resource = resource;
                            got.headers = headers.clone();
                        }
                        got.spans.extend(spans.into_iter().map(Seen::from));
                    }
                }
                got.posts += 1;
                posted.send_replace(got.posts);
                let response = ExportTraceServiceResponse { partial_success: Some(part) };
                (status, response.encode_to_vec())
            }
        };
        let router = Router::new().route("/v1/traces", post(take));
        let mut server = JoinSet::new();
        server.spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self { address, got, posts, status, rejected, _server: server }
    }

    /// Returns the part of a configuration that names the collector.
    pub(crate) fn config(&self) -> String {
        format!("[broker.traces]\notlp = \"http://{}/v1/traces\"\n", self.address)
    }

    /// Answers posts with this status from now on; only those that succeed are taken.
    pub(crate) fn answer(&self, status: StatusCode) {
        self.status.send_replace(status);
    }

    /// Says of each further post that so many of its spans were not taken.
    pub(crate) fn reject(&self, spans: i64) {
        self.rejected.send_replace(spans);
    }

    pub(crate) fn spans(&self) -> Vec<Seen> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner).spans.clone()
    }

    pub(crate) fn resource(&self) -> BTreeMap<String, String> {
        self.got.lock().unwrap_or_else(PoisonError::into_inner).resource.clone()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
        Some(got.headers.get(name)?.to_str().expect("text").to_owned())
    }

    /// Waits until so many posts have arrived, answered or refused.
    pub(crate) async fn posts(&self, count: usize) {
        let mut posts = self.posts.clone();
        let arrived = async { drop(posts.wait_for(|posts| *posts >= count).await) };
        soon(&format!("{count} posts arrive"), arrived).await;
    }

    /// Waits until spans have arrived of which this is true.
    pub(crate) async fn until(&self, what: &str, is_true: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let mut posts = self.posts.clone();
        let look = async {
            loop {
                let spans = self.spans();
                if is_true(&spans) {
                    return spans;
                }
                posts.changed().await.expect("the collector runs");
            }
        };
        match tokio::time::timeout(hive_tests::rig::PATIENCE, look).await {
            Ok(spans) => spans,
            Err(_) => panic!("{what}: only {:#?}", self.spans()),
        }
    }

    /// Waits for a span of each of these names; returns them in that order.
    pub(crate) async fn named<const N: usize>(&self, names: [&str; N]) -> [Seen; N] {
        let is_there =
            |spans: &[Seen]| names.iter().all(|name| spans.iter().any(|span| span.name == *name));
        let spans = self.until(&format!("the spans {names:?}"), is_there).await;
        names.map(|name| {
            let found: Vec<&Seen> = spans.iter().filter(|span| span.name == name).collect();
            let [one] = found[..] else { panic!("{name}: {spans:#?}") };
            one.clone()
        })
    }
}
