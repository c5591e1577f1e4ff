//! Reminders, loose ends and status lines: recorded, and answered with what the test put there.

use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::loose_end_service_server::LooseEndService;
use hive_proto::v1::reminder_service_server::ReminderService;
use hive_proto::v1::status_service_server::StatusService;
use hive_proto::v1::*;
use tonic::{Request, Response, Status, async_trait};

use super::services::Service;
use super::{Rpc, seconds_on};

#[async_trait]
impl ReminderService for Service {
    async fn create_reminder(
        &self,
        request: Request<CreateReminderRequest>,
    ) -> Result<Response<CreateReminderResponse>, Status> {
        let CreateReminderRequest { request_id, body, due } = request.get_ref().clone();
        let due_time = due.map(|due| match due {
            Due::Delay(delay) => seconds_on(delay.seconds),
            Due::DueTime(time) => time,
        });
        self.take(&request, Rpc::Remind, |state| {
            let known = state.receipts.get(&request_id).copied();
            let id = known.unwrap_or_else(|| state.next_id());
            state.receipts.insert(request_id, id);
            let reminder =
                Reminder { id, agent: "alice".to_owned(), body, due_time, ..Reminder::default() };
            Ok(CreateReminderResponse { reminder: Some(reminder), already_set: state.already_done })
        })
        .await
    }

    async fn cancel_reminder(
        &self,
        _: Request<CancelReminderRequest>,
    ) -> Result<Response<CancelReminderResponse>, Status> {
        Err(Status::unimplemented("CancelReminder"))
    }

    async fn list_reminders(
        &self,
        _: Request<ListRemindersRequest>,
    ) -> Result<Response<ListRemindersResponse>, Status> {
        Err(Status::unimplemented("ListReminders"))
    }
}

#[async_trait]
impl LooseEndService for Service {
    async fn list_loose_ends(
        &self,
        request: Request<ListLooseEndsRequest>,
    ) -> Result<Response<ListLooseEndsResponse>, Status> {
        self.take(&request, Rpc::ListLooseEnds, |state| {
            Ok(ListLooseEndsResponse {
                loose_ends: state.loose_ends.clone(),
                next_page_token: String::new(),
            })
        })
        .await
    }

    async fn cancel_loose_end(
        &self,
        request: Request<CancelLooseEndRequest>,
    ) -> Result<Response<CancelLooseEndResponse>, Status> {
        self.take(&request, Rpc::CancelLooseEnd, |_| Ok(CancelLooseEndResponse {})).await
    }

    async fn replace_loose_ends(
        &self,
        _: Request<ReplaceLooseEndsRequest>,
    ) -> Result<Response<ReplaceLooseEndsResponse>, Status> {
        Err(Status::unimplemented("ReplaceLooseEnds"))
    }
}

#[async_trait]
impl StatusService for Service {
    async fn set_status_text(
        &self,
        request: Request<SetStatusTextRequest>,
    ) -> Result<Response<SetStatusTextResponse>, Status> {
        self.take(&request, Rpc::SetStatusText, |_| Ok(SetStatusTextResponse {})).await
    }

    async fn report_harness_status(
        &self,
        _: Request<ReportHarnessStatusRequest>,
    ) -> Result<Response<ReportHarnessStatusResponse>, Status> {
        Err(Status::unimplemented("ReportHarnessStatus"))
    }
}
