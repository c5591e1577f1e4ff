//! `LooseEndService`.

use hive_core::id::MessageId;
use hive_core::loose_end::Kind;
use hive_proto::convert::{self, IntoWire, message};
use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::rpc::edge::request;

#[tonic::async_trait]
impl v1::loose_end_service_server::LooseEndService for Rpc {
    async fn list_loose_ends(
        &self,
        request: Request<v1::ListLooseEndsRequest>,
    ) -> Result<Response<v1::ListLooseEndsResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let after = page.after.unwrap_or(0);
        let (found, more) =
            self.engine.list_loose_ends(caller, list.agent, after, page.rows).await?;
        let next = found.last().filter(|_| more).map(|loose_end| loose_end.id);
        Ok(Response::new(v1::ListLooseEndsResponse {
            loose_ends: found.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }

    async fn cancel_loose_end(
        &self,
        request: Request<v1::CancelLooseEndRequest>,
    ) -> Result<Response<v1::CancelLooseEndResponse>, Status> {
        let (actor, key, cancel) = request::action(request)?;
        let v1::CancelLooseEndRequest { request_id: _, kind, id } = cancel;
        let kind = convert::value::<Kind>(kind, "kind")?;
        let id = convert::id(id, |id| MessageId::new(id).map(MessageId::get), "id")?;
        self.engine.cancel_loose_end(actor, key, kind, id).await?;
        Ok(Response::new(v1::CancelLooseEndResponse {}))
    }

    async fn replace_loose_ends(
        &self,
        request: Request<v1::ReplaceLooseEndsRequest>,
    ) -> Result<Response<v1::ReplaceLooseEndsResponse>, Status> {
        let (actor, key, replace) = request::action(request)?;
        let v1::ReplaceLooseEndsRequest { request_id: _, label, loose_ends } = replace;
        let label = message::label(&label, "label")?;
        let entries =
            loose_ends.into_iter().map(|v1::PublishedLooseEnd { key, text }| (key, text)).collect();
        self.engine.replace_loose_ends(actor, key, label, entries).await?;
        Ok(Response::new(v1::ReplaceLooseEndsResponse {}))
    }
}
