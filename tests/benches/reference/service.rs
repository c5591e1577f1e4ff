//! The calls of the reference server.
//!
//! Invariant: a call that changes something ends after the commit of its change.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

use crate::inbox::Inboxes;
use crate::wire::{
    ACK, AckRequest, AckResponse, PAGE, RECEIVE, ReceiveRequest, ReceiveResponse, SEND,
    SendRequest, SendResponse,
};
use crate::writer::Job;

/// The service on every socket.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    pub(crate) inboxes: Arc<Inboxes>,
    pub(crate) writer: Sender<Job>,
}

impl Mail {
    async fn send(self, request: SendRequest) -> Result<Response<SendResponse>, Status> {
        let inbox = self.inboxes.of(&request.to);
        let (answer, answered) = oneshot::channel();
        self.queue(Job::Send { request, inbox, answer })?;
        let id = answered.await.map_err(|_| stopped())?;
        Ok(Response::new(SendResponse { id }))
    }

    async fn receive(self, request: ReceiveRequest) -> Result<Response<ReceiveResponse>, Status> {
        let max = usize::try_from(request.max).unwrap_or(PAGE).clamp(1, PAGE);
        let messages = self.inboxes.of(&request.inbox).take(max).await;
        Ok(Response::new(ReceiveResponse { messages }))
    }

    async fn ack(self, request: AckRequest) -> Result<Response<AckResponse>, Status> {
        if request.ids.len() > PAGE {
            return Err(Status::invalid_argument(format!("at most {PAGE} ids are one ack")));
        }
        let (answer, answered) = oneshot::channel();
        self.queue(Job::Ack { ids: request.ids, answer })?;
        answered.await.map_err(|_| stopped())?;
        Ok(Response::new(AckResponse {}))
    }

    fn queue(&self, job: Job) -> Result<(), Status> {
        self.writer.send(job).map_err(|_| stopped())
    }
}

fn stopped() -> Status {
    Status::unavailable("the writer has stopped")
}

impl NamedService for Mail {
    const NAME: &'static str = "reference.Mail";
}

impl Service<http::Request<Body>> for Mail {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let mail = self.clone();
        match request.uri().path() {
            SEND => Box::pin(async move {
                let send = service_fn(|request: Request<SendRequest>| {
                    mail.clone().send(request.into_inner())
                });
                Ok(Grpc::new(ProstCodec::default()).unary(send, request).await)
            }),
            RECEIVE => Box::pin(async move {
                let receive = service_fn(|request: Request<ReceiveRequest>| {
                    mail.clone().receive(request.into_inner())
                });
                Ok(Grpc::new(ProstCodec::default()).unary(receive, request).await)
            }),
            ACK => Box::pin(async move {
                let ack = service_fn(|request: Request<AckRequest>| {
                    mail.clone().ack(request.into_inner())
                });
                Ok(Grpc::new(ProstCodec::default()).unary(ack, request).await)
            }),
            _ => Box::pin(async { Ok(Status::unimplemented("no such call").into_http()) }),
        }
    }
}
