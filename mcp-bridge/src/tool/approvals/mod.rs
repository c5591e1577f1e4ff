//! The tools of the group `approvals`: a tool for each change that an agent may ask for.
//!
//! Invariant: a tool asks and does not wait. If a grant allowed the change, its text reports that
//! the change is made; otherwise the operator's answer is a later message.

pub(crate) mod action;
pub(super) mod create_agent;
pub(super) mod retire_agent;
pub(super) mod set_agent;
pub(super) mod set_policy;

use hive_proto::v1::effect::Effect as Asked;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::{AskQuestionRequest, AskQuestionResponse, Effect, Policy, QuestionState};

use super::{recipient, schema};
use crate::call::Call;
use crate::error::Refusal;
use crate::peer::Peer;
use crate::render::{one_line, question_state};

const LINE_CHARS_MAX: usize = 300;

/// Asks the operator to approve a change.
pub(super) async fn ask(
    broker: &Peer,
    call: &Call,
    effect: Asked,
    why: String,
    ttl_seconds: Option<u64>,
) -> Result<String, Refusal> {
    let unasked = unasked(&effect);
    let request = AskQuestionRequest {
        request_id: call.request_id.clone(),
        to: Some(recipient::parse("operator")),
        text: why,
        options: Vec::new(),
        multi: false,
        ttl: ttl_seconds.map(|seconds| schema::span("ttl_seconds", seconds)).transpose()?,
        effect: Some(Effect { effect: Some(effect) }),
    };
    let asked = broker
        .call(call, request, |channel, request| async move {
            QuestionServiceClient::new(channel).ask_question(request).await
        })
        .await?;
    Ok(render(unasked, &asked))
}

/// Returns the changed part of a policy that a list gives; its name goes into the mask.
fn listed(mask: &mut Vec<String>, field: &str, list: Option<Vec<String>>) -> Vec<String> {
    if list.is_some() {
        mask.push(field.to_owned());
    }
    list.unwrap_or_default()
}

/// Returns a policy with these lists, and the names of those that are given.
fn policy(
    tool_groups: Option<Vec<String>>,
    allowed_recipients: Option<Vec<String>>,
    capabilities: Option<Vec<String>>,
) -> (Policy, Vec<String>) {
    let mut mask = Vec::new();
    let policy = Policy {
        tool_groups: listed(&mut mask, "tool_groups", tool_groups),
        allowed_recipients: listed(&mut mask, "allowed_recipients", allowed_recipients),
        capabilities: listed(&mut mask, "capabilities", capabilities),
        ..Policy::default()
    };
    (policy, mask)
}

/// Returns why an effect that is applied at once is.
const fn unasked(effect: &Asked) -> &'static str {
    match effect {
        Asked::CreateAgent(_)
        | Asked::RetireAgent(_)
        | Asked::SetAgent(_)
        | Asked::SetPolicy(_)
        | Asked::RunAction(_)
        | Asked::CreateSchedule(_) => "your policy grants it, without an approval",
        // By a grant, or because it makes the schedule do less.
        Asked::ChangeSchedule(_) => "it needs no approval",
    }
}

fn render(unasked: &str, asked: &AskQuestionResponse) -> String {
    let question = asked.question.clone().unwrap_or_default();
    let id = question.id;
    let state = question.state();
    let mut text = match (asked.already_asked, state) {
        (_, QuestionState::Answered) if question.closed_by.is_empty() => {
            format!("Done: {unasked} (question #{id}).")
        }
        (true, _) => format!(
            "Not asked again: an earlier attempt of this turn has already asked this as question #{id}, which is {}.",
            question_state(state)
        ),
        (false, _) => format!(
            "Asked the operator to approve it: question #{id}. Nothing is changed yet; the decision comes as a message, so go on with other work or end the turn."
        ),
    };
    for change in question.approval.unwrap_or_default().changes {
        let [field, before, after] = [&change.field, &change.before, &change.after]
            .map(|part| one_line(part, LINE_CHARS_MAX));
        let before = if before.is_empty() { String::new() } else { format!("{before} -> ") };
        let after = if after.is_empty() { "nothing".to_owned() } else { after };
        text.push_str(&format!("\n{field}: {before}{after}"));
        if !change.exceeds.is_empty() {
            text.push_str(&format!(" (more than you have: {})", one_line(&change.exceeds, 200)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::{
        Approval, ChangeScheduleEffect, CreateScheduleEffect, EffectChange, Question,
    };

    use super::*;

    fn asked(state: QuestionState) -> AskQuestionResponse {
        let change = EffectChange {
            field: "policy.tool_groups".to_owned(),
            before: "meta".to_owned(),
            after: "meta, execution".to_owned(),
            exceeds: "alice does not have execution".to_owned(),
        };
        let approval = Approval { changes: vec![change], ..Approval::default() };
        let mut question = Question { id: 7, approval: Some(approval), ..Question::default() };
        question.set_state(state);
        AskQuestionResponse { question: Some(question), already_asked: false }
    }

    #[test]
    fn the_text_says_whether_the_change_is_made() {
        let diff = "\npolicy.tool_groups: meta -> meta, execution (more than you have: alice does not have execution)";
        let granted = unasked(&Asked::CreateSchedule(CreateScheduleEffect::default()));
        let open = render(granted, &asked(QuestionState::Open));
        assert!(
            open.starts_with(
                "Asked the operator to approve it: question #7. Nothing is changed yet;"
            )
        );
        assert!(open.ends_with(diff), "{open}");
        let done = render(granted, &asked(QuestionState::Answered));
        assert!(done.starts_with("Done: your policy grants it"), "{done}");
        let narrowed = unasked(&Asked::ChangeSchedule(ChangeScheduleEffect::default()));
        let done = render(narrowed, &asked(QuestionState::Answered));
        assert!(done.starts_with("Done: it needs no approval (question #7)."), "{done}");
        let again = AskQuestionResponse { already_asked: true, ..asked(QuestionState::Open) };
        let again = render(granted, &again);
        assert!(again.starts_with("Not asked again: "), "{again}");
    }

    #[test]
    fn only_lists_that_are_given_are_changed() {
        let (policy, mask) = policy(Some(vec!["meta".to_owned()]), None, Some(Vec::new()));
        assert_eq!(mask, ["tool_groups", "capabilities"]);
        assert_eq!(policy.tool_groups, ["meta"]);
    }
}
