//! `ScheduleService`.

use hive_core::id::{MessageId, ScheduleId};
use hive_proto::convert::{self, IntoWire, schedule as schedules};
use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::engine::schedule::Fired;
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::rpc::edge::request;

/// Returns the id of a schedule in a request.
pub(super) fn schedule_id(number: u64) -> Result<ScheduleId, Status> {
    Ok(convert::id(number, ScheduleId::new, "schedule_id")?)
}

fn fired(Fired { agent, message }: Fired) -> v1::FiredTarget {
    let (message_id, problem) = match message {
        Ok(id) => (MessageId::get(id), String::new()),
        Err(problem) => (0, problem),
    };
    v1::FiredTarget { agent: agent.into(), message_id, problem }
}

#[tonic::async_trait]
impl v1::schedule_service_server::ScheduleService for Rpc {
    async fn fire_schedule(
        &self,
        request: Request<v1::FireScheduleRequest>,
    ) -> Result<Response<v1::FireScheduleResponse>, Status> {
        let (actor, key, fire) = request::action(request)?;
        let id = schedule_id(fire.schedule_id)?;
        let (schedule, targets) = self.engine.fire_schedule(actor, key, id).await?;
        Ok(Response::new(v1::FireScheduleResponse {
            schedule: Some(schedule.into_wire()),
            fired: targets.into_iter().map(fired).collect(),
        }))
    }

    async fn cancel_schedule(
        &self,
        request: Request<v1::CancelScheduleRequest>,
    ) -> Result<Response<v1::CancelScheduleResponse>, Status> {
        let (actor, key, cancel) = request::action(request)?;
        let id = schedule_id(cancel.schedule_id)?;
        let schedule = self.engine.cancel_schedule(actor, key, id).await?;
        Ok(Response::new(v1::CancelScheduleResponse { schedule: Some(schedule.into_wire()) }))
    }

    async fn list_schedules(
        &self,
        request: Request<v1::ListSchedulesRequest>,
    ) -> Result<Response<v1::ListSchedulesResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let states = schedules::states(&list.states, "states")?;
        let (found, more) =
            self.engine.list_schedules(caller, list.agent, states, page.after, page.rows).await?;
        let next = found.last().filter(|_| more).map(|schedule| schedule.id);
        Ok(Response::new(v1::ListSchedulesResponse {
            schedules: found.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }
}
