//! A broker that is played: it answers as the contract says, keeps nothing, and tells the test what
//! it was asked.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use hive_core::reason::Reason;
use hive_proto::status::refusal;
use hive_proto::v1;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::status_service_server::{StatusService, StatusServiceServer};
use hive_proto::v1::turn_service_server::{TurnService, TurnServiceServer};
use hive_proto::v1::wake_service_server::{WakeService, WakeServiceServer};
use tokio::net::UnixListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status, Streaming};

use super::PATIENCE;

/// What the broker was asked.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Attach(v1::AttachRequest),
    Open(v1::TurnKind),
    End(Box<v1::EndTurnRequest>),
    Status(v1::HarnessState),
    Ack(u64, String),
    Line(String),
    #[allow(dead_code, reason = "the isolated journeys do not look at it")]
    Wake(v1::WakeRequest),
}

type ToHarness = mpsc::Sender<Result<v1::AttachResponse, Status>>;

#[derive(Default)]
struct State {
    epoch: u64,
    token: String,
    next_turn_id: u64,
    open_turn: Option<u64>,
    mail: VecDeque<v1::BeginTurnResponse>,
    answers: VecDeque<v1::EndTurnResponse>,
    stream: Option<ToHarness>,
    occupied: bool,
}

#[derive(Clone)]
struct Service {
    state: Arc<Mutex<State>>,
    mail: Arc<Notify>,
    asked: mpsc::UnboundedSender<Asked>,
}

/// The played broker.
pub(crate) struct Broker {
    path: PathBuf,
    service: Service,
    asked: mpsc::UnboundedReceiver<Asked>,
    server: JoinHandle<()>,
}

impl Broker {
    pub(crate) async fn start(path: &Path) -> Self {
        let (sender, asked) = mpsc::unbounded_channel();
        let state = State { next_turn_id: 7, ..State::default() };
        let service =
            Service { state: Arc::new(Mutex::new(state)), mail: Arc::default(), asked: sender };
        let server = listen(path, &service);
        Self { path: path.to_path_buf(), service, asked, server }
    }

    /// Dies: every connection breaks.
    pub(crate) async fn stop(&mut self) {
        self.server.abort();
        let _ = (&mut self.server).await;
        self.service.state.lock().expect("not poisoned").stream = None;
        let _ = std::fs::remove_file(&self.path);
    }

    /// Comes back with what it knew.
    pub(crate) fn again(&mut self) {
        self.server = listen(&self.path, &self.service);
    }

    /// Puts a message into the inbox.
    pub(crate) fn mail(&self, id: u64, body: &str, change: impl FnOnce(&mut v1::Delivery)) {
        let origin = v1::Origin { kind: v1::OriginKind::Agent.into(), name: "alice".into() };
        let message =
            v1::Message { id, origin: Some(origin), body: body.into(), ..v1::Message::default() };
        let mut delivery =
            v1::Delivery { message: Some(message), attempt: 1, ..v1::Delivery::default() };
        change(&mut delivery);
        let begun =
            v1::BeginTurnResponse { delivery: Some(delivery), ..v1::BeginTurnResponse::default() };
        self.service.state.lock().expect("not poisoned").mail.push_back(begun);
        self.service.mail.notify_waiters();
    }

    /// Refuses every harness that does not take over.
    pub(crate) fn occupy(&self) {
        self.service.state.lock().expect("not poisoned").occupied = true;
    }

    /// What the next end of a turn is answered with.
    pub(crate) fn answer(&self, answer: v1::EndTurnResponse) {
        self.service.state.lock().expect("not poisoned").answers.push_back(answer);
    }

    /// Tells the harness something.
    pub(crate) async fn tell(&self, step: Result<Step, Status>) {
        let stream =
            self.service.state.lock().expect("not poisoned").stream.clone().expect("attached");
        let _ = stream.send(step.map(|step| v1::AttachResponse { step: Some(step) })).await;
    }

    /// Takes the session away, as another harness would.
    pub(crate) async fn fence(&self) {
        self.service.state.lock().expect("not poisoned").token.clear();
        self.tell(Err(refusal(Reason::LeaseLost, "another harness took over", None))).await;
        self.service.state.lock().expect("not poisoned").stream = None;
    }

    /// Waits until the broker is asked something of this kind.
    pub(crate) async fn next<T>(&mut self, what: &str, pick: impl Fn(Asked) -> Option<T>) -> T {
        let waiting = async {
            loop {
                let asked = self.asked.recv().await.expect("the service has the other end");
                if let Some(picked) = pick(asked) {
                    return picked;
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"))
    }

    pub(crate) async fn end(&mut self) -> v1::EndTurnRequest {
        self.next(
            "the end of a turn",
            |asked| if let Asked::End(end) = asked { Some(*end) } else { None },
        )
        .await
    }

    pub(crate) async fn status(&mut self, state: v1::HarnessState) {
        self.next(state.as_str_name(), |asked| {
            matches!(asked, Asked::Status(told) if told == state).then_some(())
        })
        .await;
    }

    pub(crate) async fn attach(&mut self) -> v1::AttachRequest {
        self.next(
            "an attach",
            |asked| if let Asked::Attach(attach) = asked { Some(attach) } else { None },
        )
        .await
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn listen(path: &Path, service: &Service) -> JoinHandle<()> {
    let listener = UnixListener::bind(path).expect("the socket is free");
    let server = tonic::transport::Server::builder()
        .add_service(TurnServiceServer::new(service.clone()))
        .add_service(StatusServiceServer::new(service.clone()))
        .add_service(WakeServiceServer::new(service.clone()))
        .serve_with_incoming(UnixListenerStream::new(listener));
    tokio::spawn(async move {
        let _ = server.await;
    })
}

impl Service {
    fn ask(&self, asked: Asked) {
        let _ = self.asked.send(asked);
    }

    fn check(&self, token: &str) -> Result<std::sync::MutexGuard<'_, State>, Status> {
        let state = self.state.lock().expect("not poisoned");
        if token.is_empty() || state.token != token {
            return Err(refusal(Reason::LeaseLost, "the session has ended", None));
        }
        Ok(state)
    }
}

#[tonic::async_trait]
impl TurnService for Service {
    type AttachStream = Pin<Box<dyn Stream<Item = Result<v1::AttachResponse, Status>> + Send>>;

    async fn attach(
        &self,
        request: Request<v1::AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let request = request.into_inner();
        let (sender, receiver) = mpsc::channel(16);
        let attached = {
            let mut state = self.state.lock().expect("not poisoned");
            if state.occupied && !request.take_over {
                return Err(refusal(Reason::AlreadyAttached, "a harness is attached", None));
            }
            let resumed = !request.session_token.is_empty() && request.session_token == state.token;
            if !resumed {
                state.epoch += 1;
                state.token = format!("session-{}", state.epoch);
                state.open_turn = None;
            }
            state.stream = Some(sender.clone());
            v1::Attached {
                session_token: state.token.clone(),
                session_epoch: state.epoch,
                resumed,
                agent: Some(v1::Agent {
                    name: "bob".into(),
                    policy: Some(v1::Policy {
                        tool_groups: vec!["messaging".into()],
                        ..v1::Policy::default()
                    }),
                    ..v1::Agent::default()
                }),
                open_turn: state.open_turn.map(|id| v1::Turn { id, ..v1::Turn::default() }),
                ..v1::Attached::default()
            }
        };
        self.ask(Asked::Attach(request));
        let _ = sender.send(Ok(v1::AttachResponse { step: Some(Step::Attached(attached)) })).await;
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn ack_command(
        &self,
        request: Request<v1::AckCommandRequest>,
    ) -> Result<Response<v1::AckCommandResponse>, Status> {
        let request = request.into_inner();
        drop(self.check(&request.session_token)?);
        self.ask(Asked::Ack(request.command_id, request.error));
        Ok(Response::new(v1::AckCommandResponse {}))
    }

    async fn begin_turn(
        &self,
        request: Request<v1::BeginTurnRequest>,
    ) -> Result<Response<v1::BeginTurnResponse>, Status> {
        let request = request.into_inner();
        loop {
            let mail = self.mail.notified();
            tokio::pin!(mail);
            mail.as_mut().enable();
            {
                let mut state = self.check(&request.session_token)?;
                if let Some(mut begun) = state.mail.pop_front() {
                    let id = state.next_turn_id;
                    state.next_turn_id += 1;
                    state.open_turn = Some(id);
                    begun.turn = Some(v1::Turn { id, ..v1::Turn::default() });
                    return Ok(Response::new(begun));
                }
            }
            mail.await;
        }
    }

    async fn open_turn(
        &self,
        request: Request<v1::OpenTurnRequest>,
    ) -> Result<Response<v1::OpenTurnResponse>, Status> {
        let request = request.into_inner();
        self.ask(Asked::Open(request.kind()));
        let mut state = self.check(&request.session_token)?;
        let id = state.next_turn_id;
        state.next_turn_id += 1;
        state.open_turn = Some(id);
        Ok(Response::new(v1::OpenTurnResponse {
            turn: Some(v1::Turn { id, ..v1::Turn::default() }),
        }))
    }

    async fn request_next_turn(
        &self,
        _: Request<v1::RequestNextTurnRequest>,
    ) -> Result<Response<v1::RequestNextTurnResponse>, Status> {
        Ok(Response::new(v1::RequestNextTurnResponse {}))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        let state = self.check(&request.into_inner().session_token)?;
        Ok(Response::new(v1::HeartbeatResponse { open_turn_id: state.open_turn.unwrap_or(0) }))
    }

    async fn report_turn_events(
        &self,
        request: Request<Streaming<v1::ReportTurnEventsRequest>>,
    ) -> Result<Response<v1::ReportTurnEventsResponse>, Status> {
        let mut requests = request.into_inner();
        let mut kept_count = 0;
        while let Some(request) = requests.next().await {
            for event in request?.events {
                kept_count += 1;
                self.ask(Asked::Line(event.line));
            }
        }
        Ok(Response::new(v1::ReportTurnEventsResponse { kept_count }))
    }

    async fn end_turn(
        &self,
        request: Request<v1::EndTurnRequest>,
    ) -> Result<Response<v1::EndTurnResponse>, Status> {
        let request = request.into_inner();
        let answer = {
            let mut state = self.check(&request.session_token)?;
            state.open_turn = None;
            state.answers.pop_front().unwrap_or_default()
        };
        self.ask(Asked::End(Box::new(request)));
        Ok(Response::new(answer))
    }

    async fn report_problem(
        &self,
        _request: Request<v1::ReportProblemRequest>,
    ) -> Result<Response<v1::ReportProblemResponse>, Status> {
        Err(Status::unimplemented("ReportProblem"))
    }

    type ServeLoginStream = ReceiverStream<Result<v1::ServeLoginResponse, Status>>;

    async fn serve_login(
        &self,
        _request: Request<Streaming<v1::ServeLoginRequest>>,
    ) -> Result<Response<Self::ServeLoginStream>, Status> {
        Err(Status::unimplemented("ServeLogin"))
    }
}

#[tonic::async_trait]
impl StatusService for Service {
    async fn set_status_text(
        &self,
        _: Request<v1::SetStatusTextRequest>,
    ) -> Result<Response<v1::SetStatusTextResponse>, Status> {
        Ok(Response::new(v1::SetStatusTextResponse {}))
    }

    async fn report_harness_status(
        &self,
        request: Request<v1::ReportHarnessStatusRequest>,
    ) -> Result<Response<v1::ReportHarnessStatusResponse>, Status> {
        let request = request.into_inner();
        drop(self.check(&request.session_token)?);
        self.ask(Asked::Status(request.state()));
        Ok(Response::new(v1::ReportHarnessStatusResponse {}))
    }
}

#[tonic::async_trait]
impl WakeService for Service {
    async fn wake(
        &self,
        request: Request<v1::WakeRequest>,
    ) -> Result<Response<v1::WakeResponse>, Status> {
        let request = request.into_inner();
        if request.body.len() > 32 * 1024 {
            return Err(refusal(Reason::BodyTooLarge, "the body has more than 32768 bytes", None));
        }
        self.ask(Asked::Wake(request));
        Ok(Response::new(v1::WakeResponse { message_id: 41, superseded_message_id: 0 }))
    }
}
