//! Reminders and loose ends, as the script has them.

use hive_core::reason::Reason;
use hive_proto::status::refusal;
use hive_proto::v1::loose_end_service_server::LooseEndService;
use hive_proto::v1::reminder_service_server::ReminderService;
use hive_proto::v1::*;
use tonic::{Request, Response, Status};

use super::{Answer, Script, open, refused, unused};

fn known(agent: &str) -> Result<(), Status> {
    if ["", "ada", "bob", "operator"].contains(&agent) {
        return Ok(());
    }
    refused(Reason::AgentNotFound, format!("there is no agent `{agent}`"))
}

#[tonic::async_trait]
impl ReminderService for Script {
    async fn create_reminder(
        &self,
        _: Request<CreateReminderRequest>,
    ) -> Answer<CreateReminderResponse> {
        unused()
    }

    async fn cancel_reminder(
        &self,
        request: Request<CancelReminderRequest>,
    ) -> Answer<CancelReminderResponse> {
        let CancelReminderRequest { request_id, reminder_id } = request.into_inner();
        self.change(&request_id, format!("cancel reminder {reminder_id}"));
        let reminder = open::reminders().into_iter().find(|reminder| reminder.id == reminder_id);
        let refused = || {
            refusal(Reason::ReminderNotFound, format!("there is no reminder {reminder_id}"), None)
        };
        let reminder = reminder.ok_or_else(refused)?;
        if reminder.state() != ReminderState::Pending {
            return Err(refusal(
                Reason::WrongState,
                format!("reminder {reminder_id} is not pending any more"),
                None,
            ));
        }
        let reminder = Some(Reminder { state: ReminderState::Cancelled.into(), ..reminder });
        Ok(Response::new(CancelReminderResponse { reminder }))
    }

    async fn list_reminders(
        &self,
        request: Request<ListRemindersRequest>,
    ) -> Answer<ListRemindersResponse> {
        let ListRemindersRequest { page_size: _, page_token: _, agent, states } =
            request.into_inner();
        known(&agent)?;
        let mut reminders = if self.empty { Vec::new() } else { open::reminders() };
        let pending = states.is_empty();
        reminders.retain(|reminder| agent.is_empty() || reminder.agent == agent);
        reminders.retain(|reminder| {
            states.contains(&reminder.state)
                || pending && reminder.state() == ReminderState::Pending
        });
        Ok(Response::new(ListRemindersResponse { reminders, next_page_token: String::new() }))
    }
}

#[tonic::async_trait]
impl LooseEndService for Script {
    /// Short pages, so that paging is used.
    async fn list_loose_ends(
        &self,
        request: Request<ListLooseEndsRequest>,
    ) -> Answer<ListLooseEndsResponse> {
        let ListLooseEndsRequest { page_size: _, page_token, agent } = request.into_inner();
        known(&agent)?;
        let mut all = if self.empty { Vec::new() } else { open::loose_ends() };
        all.retain(|loose_end| agent.is_empty() || loose_end.agent == agent);
        let first = page_token.parse().unwrap_or(0_usize);
        let next_page_token =
            if first + 2 < all.len() { (first + 2).to_string() } else { String::new() };
        Ok(Response::new(ListLooseEndsResponse {
            loose_ends: all.into_iter().skip(first).take(2).collect(),
            next_page_token,
        }))
    }

    async fn cancel_loose_end(
        &self,
        _: Request<CancelLooseEndRequest>,
    ) -> Answer<CancelLooseEndResponse> {
        unused()
    }

    async fn replace_loose_ends(
        &self,
        _: Request<ReplaceLooseEndsRequest>,
    ) -> Answer<ReplaceLooseEndsResponse> {
        unused()
    }
}
