//! What a real broker does to a consumer only after a silence or a long break: a stand-in for it
//! asks whether the consumer is there, breaks the stream, and takes a lease away.
//!
//! What it is not: a broker; it sends the steps that the test writes down.

use std::fs::File;
use std::path::Path;

use hive_proto::v1::inbox_service_server::{InboxService, InboxServiceServer};
use hive_proto::v1::settlement::{Action, Target};
use hive_proto::v1::stream_deliveries_request::Step as Heard;
use hive_proto::v1::stream_deliveries_response::Step;
use hive_proto::v1::{
    AckDeliveryRequest, AckDeliveryResponse, DeliveriesOpened, Delivery, DeliveryState,
    ExtendLeaseRequest, ExtendLeaseResponse, GetInboxStatusRequest, GetInboxStatusResponse,
    LeasedDeliveries, LeasedDelivery, ListDeliveriesRequest, ListDeliveriesResponse, Message,
    NackDeliveryRequest, NackDeliveryResponse, Ping, ReceiveMessagesRequest,
    ReceiveMessagesResponse, SettleDeliveriesRequest, SettleDeliveriesResponse, SettlementResult,
    StreamDeliveriesRequest, StreamDeliveriesResponse, settlement_result,
};
use hive_tests::rig::{gone, soon};
use rustix::process::{Pid, Signal};
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::python;
use crate::workshop::Workshop;

type Answer = Result<StreamDeliveriesResponse, Status>;

/// One stream, at the end of the stand-in.
#[derive(Debug)]
struct Stream {
    inbound: Streaming<StreamDeliveriesRequest>,
    outbound: mpsc::Sender<Answer>,
}

impl Stream {
    /// Waits for the next message of the consumer; `None` once it has closed its side.
    async fn heard(&mut self) -> Option<Heard> {
        let message = soon("the consumer writes", self.inbound.message()).await;
        message.expect("the consumer is there").map(|message| message.step.expect("a step"))
    }

    /// Waits for `open`; the id of the stream.
    async fn open(&mut self) -> String {
        match self.heard().await {
            Some(Heard::Open(open)) => {
                assert!(open.window.is_some_and(|window| window.deliveries > 0));
                open.stream_id
            }
            other => panic!("{other:?}"),
        }
    }

    /// Waits for an ack; the token of the lease.
    async fn ack(&mut self) -> String {
        let Some(Heard::Settle(SettleDeliveriesRequest { settlements })) = self.heard().await
        else {
            panic!("the consumer settles")
        };
        let [settlement] = <[_; 1]>::try_from(settlements).expect("one settlement");
        assert!(matches!(settlement.action, Some(Action::Ack(_))), "{settlement:?}");
        match settlement.target {
            Some(Target::LeaseToken(token)) => token,
            other => panic!("{other:?}"),
        }
    }

    async fn send(&self, step: Step) {
        let sent = self.outbound.send(Ok(StreamDeliveriesResponse { step: Some(step) })).await;
        sent.expect("the consumer is there");
    }

    /// Lists these leases as the live ones.
    async fn opened(&self, tokens: &[&str]) {
        let deliveries = tokens.iter().map(|token| lease(token)).collect();
        self.send(Step::Opened(DeliveriesOpened { deliveries, complete: true })).await;
    }

    /// Ends the stream as the library of a client reports a broken connection.
    async fn breaks(self, code: Code) {
        let end = self.outbound.send(Err(Status::new(code, "the stand-in breaks"))).await;
        end.expect("the consumer is there");
    }
}

/// Returns a lease whose message has its token as the body.
fn lease(token: &str) -> LeasedDelivery {
    let message = Message { id: 1, body: token.to_owned(), ..Message::default() };
    LeasedDelivery {
        delivery: Some(Delivery { message: Some(message), ..Delivery::default() }),
        lease_token: token.to_owned(),
        ..LeasedDelivery::default()
    }
}

/// The process that works on the message with this body.
async fn worker(workshop: &mut Workshop, body: &str) -> Pid {
    let begin = format!("begun {body} ");
    workshop.rig.harness("consumer").says(&begin).await;
    let said = workshop.rig.read("consumer.log");
    let (_, rest) = said.split_once(&begin).expect("it is there");
    let pid = rest.split_whitespace().next().expect("a process id").parse().expect("a number");
    Pid::from_raw(pid).expect("a process id")
}

/// Serves the stand-in's socket for as long as this is polled.
async fn serve(socket: &Path, streams: mpsc::Sender<Stream>) {
    let listener = UnixListener::bind(socket).expect("a socket");
    let server = Server::builder().add_service(InboxServiceServer::new(StandIn { streams }));
    let served = server.serve_with_incoming(UnixListenerStream::new(listener)).await;
    served.expect("it serves");
}

pub(crate) async fn pings_are_answered_and_lost_leases_end(file: &str) {
    let Some(mut workshop) = python::workshop().await else { return };
    let (dir, socket) = (workshop.dir(), workshop.rig.path("stand-in.sock"));
    for name in ["lost", "kept"] {
        workshop.succeeds(workshop.command("mkfifo", &[name])).await;
    }
    // A command ends when the pipe of its message is opened for writing.
    let script = "body=$(cat); echo \"begun $body $$\"; exec cat \"$body\"";
    let mut command = workshop.example(file, &["sh", "-c", script]);
    command.env("HIVE_SOCKET", &socket);
    let (streams, mut opened) = mpsc::channel::<Stream>(1);
    let scene = async {
        workshop.rig.spawn("consumer", command);
        let mut stream = soon("a stream is opened", opened.recv()).await.expect("it serves");
        let id = stream.open().await;
        stream.opened(&[]).await;
        let deliveries = vec![lease("lost"), lease("kept")];
        stream.send(Step::Leased(LeasedDeliveries { deliveries, pending_count: 0 })).await;
        let lost = worker(&mut workshop, "lost").await;
        worker(&mut workshop, "kept").await;
        stream.send(Step::Ping(Ping {})).await;
        assert!(matches!(stream.heard().await, Some(Heard::Pong(_))), "while commands run");

        stream.breaks(Code::Unavailable).await;
        let mut stream = soon("it is opened again", opened.recv()).await.expect("it serves");
        assert_eq!(stream.open().await, id);
        stream.opened(&["kept"]).await;
        gone(lost).await;
        let gate = dir.join("kept");
        let gate = tokio::task::spawn_blocking(move || File::options().write(true).open(gate));
        drop(gate.await.expect("no panic").expect("the command reads it"));
        assert_eq!(stream.ack().await, "kept");

        // The result does not come, so the settlement is repeated.
        stream.breaks(Code::Internal).await;
        let mut stream = soon("it is opened again", opened.recv()).await.expect("it serves");
        assert_eq!(stream.open().await, id);
        stream.opened(&[]).await;
        assert_eq!(stream.ack().await, "kept");
        let acked = settlement_result::Result::State(DeliveryState::Acked.into());
        let results = vec![SettlementResult { result: Some(acked) }];
        stream.send(Step::Settled(SettleDeliveriesResponse { results })).await;
        workshop.rig.harness("consumer").says("settled ack").await;

        workshop.rig.harness("consumer").signal(Signal::TERM);
        assert_eq!(stream.heard().await, None, "it closes its side");
        drop(stream);
        workshop.ended("consumer").await;
    };
    tokio::select! {
        () = serve(&socket, streams) => panic!("the stand-in ended"),
        () = scene => {}
    }
    workshop.rig.end().await;
}

/// The service of the stand-in.
#[derive(Debug)]
struct StandIn {
    streams: mpsc::Sender<Stream>,
}

#[tonic::async_trait]
impl InboxService for StandIn {
    type StreamDeliveriesStream = ReceiverStream<Answer>;

    async fn stream_deliveries(
        &self,
        request: Request<Streaming<StreamDeliveriesRequest>>,
    ) -> Result<Response<Self::StreamDeliveriesStream>, Status> {
        let (outbound, answers) = mpsc::channel(4);
        let stream = Stream { inbound: request.into_inner(), outbound };
        self.streams.send(stream).await.expect("the scene goes on");
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn receive_messages(
        &self,
        _: Request<ReceiveMessagesRequest>,
    ) -> Result<Response<ReceiveMessagesResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }

    async fn settle_deliveries(
        &self,
        _: Request<SettleDeliveriesRequest>,
    ) -> Result<Response<SettleDeliveriesResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }

    async fn ack_delivery(
        &self,
        _: Request<AckDeliveryRequest>,
    ) -> Result<Response<AckDeliveryResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }

    async fn nack_delivery(
        &self,
        _: Request<NackDeliveryRequest>,
    ) -> Result<Response<NackDeliveryResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }

    async fn extend_lease(
        &self,
        _: Request<ExtendLeaseRequest>,
    ) -> Result<Response<ExtendLeaseResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }

    async fn get_inbox_status(
        &self,
        _: Request<GetInboxStatusRequest>,
    ) -> Result<Response<GetInboxStatusResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }

    async fn list_deliveries(
        &self,
        _: Request<ListDeliveriesRequest>,
    ) -> Result<Response<ListDeliveriesResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }
}
