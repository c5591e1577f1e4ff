//! `ReminderService`.

use hive_core::id::ReminderId;
use hive_proto::convert::{self, IntoWire, reminder as reminders, time};
use hive_proto::status::bad_field;
use hive_proto::v1;
use hive_proto::v1::create_reminder_request::Due as WireDue;
use tonic::{Request, Response, Status};

use crate::engine::mail::reminder::Due;
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::rpc::edge::request;

#[tonic::async_trait]
impl v1::reminder_service_server::ReminderService for Rpc {
    async fn create_reminder(
        &self,
        request: Request<v1::CreateReminderRequest>,
    ) -> Result<Response<v1::CreateReminderResponse>, Status> {
        let (actor, key, create) = request::sending(request)?;
        let v1::CreateReminderRequest { request_id: _, body, due } = create;
        let due = match due {
            Some(WireDue::Delay(delay)) => Due::In(time::span(delay, "delay")?),
            Some(WireDue::DueTime(due_time)) => Due::At(time::wall_time(due_time, "due_time")?),
            None => return Err(bad_field("due", "say when: set `delay` or `due_time`")),
        };
        let (reminder, already_set) = self.engine.set_reminder(actor, key, body, due).await?;
        Ok(Response::new(v1::CreateReminderResponse {
            reminder: Some(reminder.into_wire()),
            already_set,
        }))
    }

    async fn cancel_reminder(
        &self,
        request: Request<v1::CancelReminderRequest>,
    ) -> Result<Response<v1::CancelReminderResponse>, Status> {
        let (actor, key, cancel) = request::action(request)?;
        let id = convert::id(cancel.reminder_id, ReminderId::new, "reminder_id")?;
        let reminder = self.engine.cancel_reminder(actor, key, id).await?;
        Ok(Response::new(v1::CancelReminderResponse { reminder: Some(reminder.into_wire()) }))
    }

    async fn list_reminders(
        &self,
        request: Request<v1::ListRemindersRequest>,
    ) -> Result<Response<v1::ListRemindersResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let states = reminders::states(&list.states, "states")?;
        let (found, more) =
            self.engine.list_reminders(caller, list.agent, states, page.after, page.rows).await?;
        let next = found.last().filter(|_| more).map(|reminder| reminder.id);
        Ok(Response::new(v1::ListRemindersResponse {
            reminders: found.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }
}
