//! A broker that says what a case scripts: what no real one says, or says only by chance.
//!
//! Invariant: it answers calls of a method in the order of its script, and the last answer to all
//! further calls. What it gets and does not expect fails the case.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use anyhow::Result;
use futures_util::stream::{self, Stream, StreamExt as _};
use hive_client::codec::Raw;
use prost::bytes::Bytes;
use prost_reflect::MethodDescriptor;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::body::Body;
use tonic::server::{Grpc, StreamingService};
use tonic::{Request, Response, Status, Streaming};

use crate::path::Way;
use crate::pattern::Variables;
use crate::suite::{Answer, Script, Turn};
use crate::{json, refusal};

/// A scripted broker, which serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Scripted {
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    scripts: BTreeMap<String, Script>,
    calls: Mutex<BTreeMap<String, usize>>,
    faults: Mutex<Vec<String>>,
    way: Arc<Way>,
}

impl Scripted {
    /// Serves a script on a socket. `way` is the path of its clients.
    pub(crate) fn serve(
        mut scripts: BTreeMap<String, Script>,
        socket: &Path,
        way: Arc<Way>,
    ) -> Result<Self> {
        scripts.entry("ServerInfoService/GetServerInfo".to_owned()).or_insert_with(handshake);
        let shared =
            Arc::new(Shared { scripts, calls: Mutex::default(), faults: Mutex::default(), way });
        let listener = UnixListenerStream::new(UnixListener::bind(socket)?);
        let service = Service(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let server = tonic::transport::Server::builder();
            // It is dropped with the case.
            let _ = server.serve_with_incoming(service, listener).await;
        });
        Ok(Self { shared, _serving: serving })
    }

    /// Returns what was not as expected.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The handshake of a broker of this version.
fn handshake() -> Script {
    let info = json!({"version": "scripted", "contractRevision": 1, "capabilities": {}});
    let send = Turn { send: Some(info), ..Turn::default() };
    Script { answers: vec![Answer { turns: vec![send], ..Answer::default() }] }
}

impl Shared {
    /// Returns the next answer to a method.
    fn next(&self, method: &str) -> Option<Answer> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let call = calls.entry(method.to_owned()).or_insert(0);
        let answers = &self.scripts.get(method)?.answers;
        let answer = answers.get(*call).or(answers.last()).cloned();
        *call += 1;
        answer
    }

    fn fault(&self, fault: String) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
    }
}

#[derive(Clone, Debug)]
struct Service(Arc<Shared>);

impl tower::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let name = request.uri().path().trim_start_matches("/hive.v1.").to_owned();
        let answering = Answering { shared: Arc::clone(&self.0), name };
        Box::pin(async move { Ok(Grpc::new(Raw).streaming(answering, request).await) })
    }
}

/// One call.
struct Answering {
    shared: Arc<Shared>,
    name: String,
}

impl StreamingService<Bytes> for Answering {
    type Response = Bytes;
    type ResponseStream = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;
    type Future =
        Pin<Box<dyn Future<Output = Result<Response<Self::ResponseStream>, Status>> + Send>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let (shared, name) = (Arc::clone(&self.shared), self.name.clone());
        Box::pin(async move {
            let (Some(answer), Ok(method)) = (shared.next(&name), json::method(&name)) else {
                let fault = format!("{name} was called, and has no script");
                shared.fault(fault.clone());
                return Err(Status::unimplemented(fault));
            };
            let (sender, receiver) = mpsc::channel(16);
            let mut call = Call { shared, method, name, messages: request.into_inner(), sender };
            // It is polled with the answers, so it ends with the call.
            let answering = stream::once(async move {
                // A call that is to break may break early.
                let breaks = answer.cut;
                if let Err(fault) = call.answer(answer).await
                    && !breaks
                {
                    let fault = format!("{}: {fault:#}", call.name);
                    call.shared.fault(fault.clone());
                    let _ = call.sender.send(Err(Status::internal(fault))).await;
                }
                None
            });
            let answers = ReceiverStream::new(receiver).map(Some);
            let both = stream::select(answers, answering).filter_map(std::future::ready);
            let answers: Self::ResponseStream = Box::pin(both);
            Ok(Response::new(answers))
        })
    }
}

struct Call {
    shared: Arc<Shared>,
    method: MethodDescriptor,
    name: String,
    messages: Streaming<Bytes>,
    sender: mpsc::Sender<Result<Bytes, Status>>,
}

impl Call {
    async fn answer(&mut self, answer: Answer) -> Result<()> {
        let Answer { expect, turns, error, cut } = answer;
        // A call has its first message before it is answered.
        if let Some(pattern) =
            expect.or_else(|| (!self.method.is_client_streaming()).then(|| json!({})))
        {
            self.receive(&pattern).await?;
        }
        for Turn { send, receive, closed } in turns {
            if let Some(message) = send {
                let bytes = json::encode(self.method.output(), &message)?;
                // The client may have gone, which some cases want.
                let _ = self.sender.send(Ok(bytes)).await;
            }
            if let Some(pattern) = receive {
                self.receive(&pattern).await?;
            }
            if closed {
                while self.messages.message().await?.is_some() {}
            }
        }
        if cut {
            self.shared.way.cut();
        } else if let Some(error) = error {
            let _ = self.sender.send(Err(refusal::to_status(&error))).await;
        } else if self.method.is_server_streaming() {
            // It stays open for as long as the client wants.
            self.sender.closed().await;
        }
        Ok(())
    }

    async fn receive(&mut self, pattern: &Value) -> Result<()> {
        let Some(bytes) = self.messages.message().await? else {
            anyhow::bail!("the client closed its side before {pattern}");
        };
        let message = json::decode(self.method.input(), bytes)?;
        let matched = Variables::default().matches(pattern, &message, false);
        matched.map_err(|fault| anyhow::anyhow!("the client sent {message}: {fault}"))
    }
}
