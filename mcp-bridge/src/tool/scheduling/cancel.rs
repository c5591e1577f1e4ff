//! `cancel_schedule`: ends a schedule of the agent.

use hive_proto::v1::CancelScheduleRequest;
use hive_proto::v1::schedule_service_client::ScheduleServiceClient;
use rmcp::model::ToolAnnotations;

use super::OneSchedule;
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::tool::{Tool, removes};

pub(in crate::tool) struct CancelSchedule;

impl Tool for CancelSchedule {
    const NAME: &'static str = "cancel_schedule";
    const GROUP: Group = Group::Scheduling;
    const DESCRIPTION: &'static str = "End your schedule.";
    type Input = OneSchedule;

    fn annotations() -> ToolAnnotations {
        removes(true)
    }

    async fn run(broker: &Peer, call: &Call, input: OneSchedule) -> Result<String, Refusal> {
        let OneSchedule { id } = input;
        let request =
            CancelScheduleRequest { request_id: call.request_id.clone(), schedule_id: id };
        broker
            .call(call, request, |channel, request| async move {
                ScheduleServiceClient::new(channel).cancel_schedule(request).await
            })
            .await?;
        Ok(format!("Schedule #{id} has ended; the messages that it has sent stay."))
    }
}
