//! `fire_schedule_now`: sends the messages of a schedule besides its due times.

use std::fmt::Write as _;

use hive_proto::v1::schedule_service_client::ScheduleServiceClient;
use hive_proto::v1::{FireScheduleRequest, FireScheduleResponse, FiredTarget, ScheduleState};
use rmcp::model::ToolAnnotations;

use super::{NAME_CHARS_MAX, OneSchedule, state};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::{instant, one_line};
use crate::tool::{Tool, adds};

const PROBLEM_CHARS_MAX: usize = 300;

pub(in crate::tool) struct FireScheduleNow;

impl Tool for FireScheduleNow {
    const NAME: &'static str = "fire_schedule_now";
    const GROUP: Group = Group::Scheduling;
    const DESCRIPTION: &'static str = "Send your schedule's message now, too.";
    type Input = OneSchedule;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, input: OneSchedule) -> Result<String, Refusal> {
        let request =
            FireScheduleRequest { request_id: call.request_id.clone(), schedule_id: input.id };
        let fired = broker
            .call(call, request, |channel, request| async move {
                ScheduleServiceClient::new(channel).fire_schedule(request).await
            })
            .await?;
        Ok(render(input.id, &fired))
    }
}

fn render(id: u64, response: &FireScheduleResponse) -> String {
    let FireScheduleResponse { schedule, fired } = response;
    let schedule = schedule.clone().unwrap_or_default();
    let next = match (schedule.state(), &schedule.next_time) {
        (ScheduleState::Ended, _) => "; it was due once, so it has ended".to_owned(),
        (_, Some(next)) => format!("; its next due time is still {}", instant(next)),
        (other, None) => format!("; it is {}", state(other)),
    };
    let mut text = format!("Schedule #{id} has fired{next}.");
    for FiredTarget { agent, message_id, problem } in fired {
        let agent = one_line(agent, NAME_CHARS_MAX);
        match message_id {
            0 => {
                let problem = one_line(problem, PROBLEM_CHARS_MAX);
                write!(text, "\n{agent}: no message: {problem}")
            }
            message_id => write!(text, "\n{agent}: message #{message_id}"),
        }
        .expect("writing to a string never fails");
    }
    text
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::Schedule;

    use super::*;

    #[test]
    fn each_target_has_its_message_or_its_problem() {
        let target = |agent: &str, message_id, problem: &str| FiredTarget {
            agent: agent.to_owned(),
            message_id,
            problem: problem.to_owned(),
        };
        let next_time = Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 });
        let state = ScheduleState::Active.into();
        let schedule = Schedule { id: 7, state, next_time, ..Schedule::default() };
        let response = FireScheduleResponse {
            schedule: Some(schedule.clone()),
            fired: vec![
                target("ada", 12, ""),
                target("bob", 0, "its inbox is full.\nkim: message #1"),
            ],
        };
        assert_eq!(
            render(7, &response),
            "Schedule #7 has fired; its next due time is still 2023-11-14T22:13:20Z.\n\
             ada: message #12\n\
             bob: no message: its inbox is full.⏎kim: message #1"
        );
        let state = ScheduleState::Ended.into();
        let ended = FireScheduleResponse {
            schedule: Some(Schedule { state, next_time: None, ..schedule }),
            fired: vec![target("ada", 12, "")],
        };
        assert_eq!(
            render(7, &ended),
            "Schedule #7 has fired; it was due once, so it has ended.\nada: message #12"
        );
    }
}
