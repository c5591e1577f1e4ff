//! `InboxService`.

use std::time::Duration;

use hive_core::delivery::State;
use hive_core::limits::{RECEIVE_DELIVERIES_MAX, RECEIVE_WAIT_MAX};
use hive_core::settlement::{Action, Entry, Settled, Target as Named};
use hive_proto::convert::{IntoWire, delivery, request as fields, settlement as settlements, time};
use hive_proto::status::bad_field;
use hive_proto::v1;
use hive_proto::v1::ack_delivery_request::Target;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};

use super::{deliveries, settlement};
use crate::engine::mail::handover::Handover;
use crate::engine::mail::receive::{Leased, Receive, Received};
use crate::engine::mail::settlements::Results;
use crate::engine::{Refusal, permit};
use crate::rpc::Rpc;
use crate::rpc::edge::answer::Taken;
use crate::rpc::edge::caller;
use crate::rpc::edge::fair::ListTurn;
use crate::rpc::edge::page;
use crate::rpc::edge::request;
use crate::spawn::spawn;

impl Rpc {
    /// Returns what notes that the connection has taken an answer with leases. A client whose
    /// deadline is over does not read the answer any more.
    fn until_taken(&self, handover: Handover, deadline: Option<Instant>) -> Taken {
        let Some(deadline) = deadline else {
            let mut handover = Some(handover);
            return Taken::new(move || handover.take().into_iter().for_each(Handover::taken));
        };
        let (taken, is_taken) = oneshot::channel();
        spawn(&self.streams, async move {
            if let Ok(Ok(())) = tokio::time::timeout_at(deadline, is_taken).await {
                handover.taken();
            }
        });
        let mut taken = Some(taken);
        Taken::new(move || {
            // If the deadline is over, the leases are requeued already.
            taken.take().map(|taken| taken.send(()));
        })
    }
}

/// Returns a lease on the wire.
pub(super) fn leased(leased: Leased) -> v1::LeasedDelivery {
    let Leased { delivery, token, remaining } = leased;
    v1::LeasedDelivery {
        delivery: Some(delivery.into_wire()),
        lease_token: token.unwrap_or_default(),
        lease_remaining: remaining.map(time::duration),
    }
}

#[tonic::async_trait]
impl v1::inbox_service_server::InboxService for Rpc {
    async fn receive_messages(
        &self,
        request: Request<v1::ReceiveMessagesRequest>,
    ) -> Result<Response<v1::ReceiveMessagesResponse>, Status> {
        let (moments, slots) = (caller::moments(&request), caller::slots(&request)?);
        let (actor, key, message) = request::action(request)?;
        let v1::ReceiveMessagesRequest {
            request_id: _,
            max_deliveries,
            max_bytes,
            wait,
            lease_duration,
            tool_use_id,
            settlements,
        } = message;
        let receive = Receive {
            max_deliveries: max_deliveries.clamp(1, RECEIVE_DELIVERIES_MAX),
            max_bytes: (max_bytes > 0).then_some(u64::from(max_bytes)),
            wait: fields::bounded_span(wait, Duration::ZERO, RECEIVE_WAIT_MAX, "wait")?,
            lease: settlements::lease_length(lease_duration, "lease_duration")?,
            tool_use: if tool_use_id.is_empty() {
                None
            } else {
                Some(fields::token(tool_use_id, "tool_use_id")?)
            },
            leases_until: moments.map(|moments| moments.leases_until.into_std()),
        };
        let waits = !receive.wait.is_zero();
        let entries = settlements::entries(settlements, "settlements")?;
        let turn = ListTurn::wait(&self.streams, &slots, entries.len()).await;
        let settled = |results: &Results| turn.end(results);
        let (received, results, handover) =
            self.engine.settle_and_receive(actor, key, entries, settled, receive).await?;
        let Received { deliveries, pending, alone } = received;
        if !waits && deliveries.is_empty() && results.is_empty() {
            permit::keep();
        }
        let mut response = Response::new(v1::ReceiveMessagesResponse {
            deliveries: deliveries.into_iter().map(leased).collect(),
            pending_count: pending,
            served_alone: alone,
            settlement_results: settlement::results(results),
        });
        response
            .extensions_mut()
            .insert(self.until_taken(handover, moments.map(|moments| moments.passes)));
        Ok(response)
    }

    type StreamDeliveriesStream = deliveries::Steps;

    async fn stream_deliveries(
        &self,
        request: Request<Streaming<v1::StreamDeliveriesRequest>>,
    ) -> Result<Response<Self::StreamDeliveriesStream>, Status> {
        deliveries::open(self, request).await
    }

    async fn settle_deliveries(
        &self,
        request: Request<v1::SettleDeliveriesRequest>,
    ) -> Result<Response<v1::SettleDeliveriesResponse>, Status> {
        let (actor, slots) = (caller::actor(&request)?, caller::slots(&request)?);
        let entries = settlements::entries(request.into_inner().settlements, "settlements")?;
        let turn = ListTurn::wait(&self.streams, &slots, entries.len()).await;
        let results = self.engine.settle(actor, entries).await?;
        turn.end(&results);
        let results = settlement::results(results);
        Ok(Response::new(v1::SettleDeliveriesResponse { results }))
    }

    async fn ack_delivery(
        &self,
        request: Request<v1::AckDeliveryRequest>,
    ) -> Result<Response<v1::AckDeliveryResponse>, Status> {
        let actor = caller::actor(&request)?;
        let target = match request.into_inner().target {
            Some(Target::LeaseToken(token)) => Named::Lease(fields::token(token, "lease_token")?),
            Some(Target::Key(named)) => {
                let (agent, message) = delivery::key(Some(named), "key")?;
                Named::Key(agent, message)
            }
            None => {
                return Err(bad_field("target", "name the delivery by its lease token or its key"));
            }
        };
        self.engine.settle_one(actor, Entry { target, action: Action::Ack }).await?;
        Ok(Response::new(v1::AckDeliveryResponse {}))
    }

    async fn nack_delivery(
        &self,
        request: Request<v1::NackDeliveryRequest>,
    ) -> Result<Response<v1::NackDeliveryResponse>, Status> {
        let actor = caller::actor(&request)?;
        let v1::NackDeliveryRequest { lease_token, error, permanent } = request.into_inner();
        let token = fields::token(lease_token, "lease_token")?;
        let entry = Entry::of_lease(token, Action::Nack { error, permanent });
        match self.engine.settle_one(actor, entry).await? {
            Settled::State(state) => {
                let state = state.into_wire().into();
                Ok(Response::new(v1::NackDeliveryResponse { state }))
            }
            Settled::Extended(_) => Err(Refusal::Fault("a nack extended a lease").into()),
        }
    }

    async fn extend_lease(
        &self,
        request: Request<v1::ExtendLeaseRequest>,
    ) -> Result<Response<v1::ExtendLeaseResponse>, Status> {
        let actor = caller::actor(&request)?;
        let v1::ExtendLeaseRequest { lease_token, lease_duration } = request.into_inner();
        let length = settlements::lease_length(lease_duration, "lease_duration")?;
        let token = fields::token(lease_token, "lease_token")?;
        self.engine.settle_one(actor, Entry::of_lease(token, Action::Extend(length))).await?;
        let lease_remaining = Some(time::duration(length));
        Ok(Response::new(v1::ExtendLeaseResponse { lease_remaining }))
    }

    async fn get_inbox_status(
        &self,
        request: Request<v1::GetInboxStatusRequest>,
    ) -> Result<Response<v1::GetInboxStatusResponse>, Status> {
        let caller = caller::identify(&request)?;
        let status = self.engine.inbox_status(caller, request.into_inner().agent).await?;
        Ok(Response::new(v1::GetInboxStatusResponse {
            ready_count: status.ready,
            leased_count: status.leased,
            held_count: status.held,
            dead_count: status.dead,
            oldest_ready_time: status.oldest_ready.map(time::timestamp),
        }))
    }

    async fn list_deliveries(
        &self,
        request: Request<v1::ListDeliveriesRequest>,
    ) -> Result<Response<v1::ListDeliveriesResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let states = if list.states.is_empty() {
            vec![State::Ready, State::Leased, State::Held, State::Dead]
        } else {
            delivery::states(&list.states, "states")?
        };
        let (deliveries, next) =
            self.engine.list_deliveries(caller, list.agent, states, page.after, page.rows).await?;
        Ok(Response::new(v1::ListDeliveriesResponse {
            deliveries: deliveries.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }
}
