//! Schedules as a hostile agent would use them: to have more sent than the operator has approved,
//! to flood its targets and the operator, and to write in the voice of Hive.
//!
//! Invariant: what an approval or a policy has not allowed changes no row of a schedule, and each
//! target has at most one message of a schedule that it has not read.

mod words;

use hive_core::reason::Reason;
use hive_proto::v1::effect::Effect;
use hive_proto::v1::*;
use hive_tests::rig::{Rig, clock, fresh_id, request};
use prost_types::{Duration, Timestamp};
use tokio::task::JoinSet;
use tonic::transport::Channel;

use crate::ask::{call, did, done, refused};

const DAY: i64 = 24 * 3600;

/// Groups of an agent that asks for schedules.
const GROUPS: &str = "tool_groups = [\"messaging\", \"inbox\", \"scheduling\"]\n";

/// The whole second that is this many days ahead.
fn in_days(days: i64) -> Timestamp {
    Timestamp { nanos: 0, ..clock::in_millis(1000 * DAY * days) }
}

fn days(days: i64) -> Option<Duration> {
    Some(Duration { seconds: DAY * days, nanos: 0 })
}

/// A schedule to bob that is due in ten days and each ten days after that, at most one day late.
fn calm(body: &str) -> CreateScheduleEffect {
    CreateScheduleEffect {
        body: body.to_owned(),
        targets: request::texts(&["bob"]),
        first_time: Some(in_days(10)),
        interval: days(10),
        late_max: days(1),
        ..CreateScheduleEffect::default()
    }
}

fn create(schedule: CreateScheduleEffect) -> AskQuestionRequest {
    request::effect(Effect::CreateSchedule(schedule))
}

fn change(change: ChangeScheduleEffect) -> AskQuestionRequest {
    request::effect(Effect::ChangeSchedule(change))
}

async fn asked(channel: &Channel, request: &AskQuestionRequest) -> Question {
    done::<AskQuestionResponse>(channel, request).await.question.expect("a question")
}

fn approval(question: &Question) -> AnswerQuestionRequest {
    AnswerQuestionRequest {
        choices: request::texts(&["approve"]),
        diff_digest: question.approval.as_ref().expect("an approval").diff_digest.clone(),
        ..request::answer(question.id, "")
    }
}

/// Asks for a schedule and approves it as the operator; its id.
async fn approved(rig: &Rig, owner: &str, schedule: CreateScheduleEffect) -> u64 {
    let question = asked(&rig.agent(owner).await.channel(), &create(schedule)).await;
    let operator = rig.operator().await;
    did(&operator.channel(), &approval(&question)).await;
    operator.schedules(owner).await.last().expect("a schedule").id
}

fn fire(schedule_id: u64) -> FireScheduleRequest {
    FireScheduleRequest { request_id: fresh_id(), schedule_id }
}

/// Returns all schedules on disk with their targets.
fn rows(rig: &Rig) -> [Vec<String>; 2] {
    let mut tables = rig.on_disk();
    ["schedule", "schedule_target"].map(|table| tables.remove(table).expect("a table"))
}

/// Returns edits that each have something sent that was not approved, some beside an edit that
/// narrows.
fn widening(schedule_id: u64) -> Vec<(&'static str, ChangeScheduleEffect)> {
    let none = ChangeScheduleEffect { schedule_id, ..ChangeScheduleEffect::default() };
    let zero = Some(Duration::default());
    let cy = request::texts(&["cy"]);
    vec![
        ("another text", ChangeScheduleEffect { body: Some("Obey.".to_owned()), ..none.clone() }),
        (
            "a space more",
            ChangeScheduleEffect { body: Some("Report. ".to_owned()), ..none.clone() },
        ),
        ("one more target", ChangeScheduleEffect { targets_add: cy.clone(), ..none.clone() }),
        (
            "another target",
            ChangeScheduleEffect {
                targets_add: cy,
                targets_remove: request::texts(&["bob"]),
                ..none.clone()
            },
        ),
        ("more often", ChangeScheduleEffect { interval: days(9), ..none.clone() }),
        ("sooner", ChangeScheduleEffect { first_time: Some(in_days(9)), ..none.clone() }),
        (
            "sooner, by a first time in the past",
            ChangeScheduleEffect { first_time: Some(in_days(-1)), ..none.clone() },
        ),
        (
            "sooner and less often",
            ChangeScheduleEffect {
                first_time: Some(in_days(1)),
                interval: days(100),
                ..none.clone()
            },
        ),
        ("a zone", ChangeScheduleEffect { zone: Some("Europe/Berlin".to_owned()), ..none.clone() }),
        ("any lateness", ChangeScheduleEffect { late_max: zero, ..none.clone() }),
        ("more lateness", ChangeScheduleEffect { late_max: days(2), ..none.clone() }),
        (
            "more lateness and less often",
            ChangeScheduleEffect { late_max: days(2), interval: days(20), ..none },
        ),
    ]
}

#[tokio::test]
async fn edits_that_widen_a_schedule_change_nothing_without_an_approval() {
    let mut rig = Rig::new(&format!("[agents.ada]\n{GROUPS}[agents.bob]\n[agents.cy]\n"));
    rig.start_broker().await;
    let id = approved(&rig, "ada", calm("Report.")).await;
    let ada = rig.agent("ada").await.channel();
    let before = rows(&rig);
    let mut questions = Vec::new();
    for (what, edit) in widening(id) {
        let question = asked(&ada, &change(edit)).await;
        assert_eq!(question.state(), QuestionState::Open, "{what}");
        let shown = question.approval.as_ref().expect("an approval");
        assert!(!shown.changes.is_empty(), "{what}");
        refused(what, call(&ada, &approval(&question)).await, &[Reason::NotTheTarget]);
        questions.push(question);
    }
    assert_eq!(rows(&rig), before, "nothing is changed before an approval");

    // A diff that the operator has seen is no approval of what the schedule would be after others.
    let operator = rig.operator().await.channel();
    let [first, others @ ..] = &questions[..] else { panic!("questions") };
    did(&operator, &approval(first)).await;
    let same_text = &others[0];
    let refusal = call(&operator, &approval(same_text)).await;
    refused("an older diff", refusal, &[Reason::DiffChanged]);
    let [changed] = &rig.operator().await.schedules("ada").await[..] else { panic!("one") };
    assert_eq!(changed.body, "Obey.");
    assert_eq!(changed.targets.len(), 1);
}

#[tokio::test]
async fn a_step_back_after_a_narrowing_edit_is_asked_for() {
    let mut rig = Rig::new(&format!("[agents.ada]\n{GROUPS}[agents.bob]\n[agents.cy]\n"));
    rig.start_broker().await;
    let targets = request::texts(&["bob", "cy"]);
    let id = approved(&rig, "ada", CreateScheduleEffect { targets, ..calm("Report.") }).await;
    let ada = rig.agent("ada").await.channel();
    let none = ChangeScheduleEffect { schedule_id: id, ..ChangeScheduleEffect::default() };
    let cy = request::texts(&["cy"]);
    for (narrowing, back) in [
        (
            ChangeScheduleEffect { targets_remove: cy.clone(), ..none.clone() },
            ChangeScheduleEffect { targets_add: cy, ..none.clone() },
        ),
        (
            ChangeScheduleEffect { interval: days(20), ..none.clone() },
            ChangeScheduleEffect { interval: days(10), ..none.clone() },
        ),
        (
            ChangeScheduleEffect { first_time: Some(in_days(30)), ..none.clone() },
            ChangeScheduleEffect { first_time: Some(in_days(10)), ..none.clone() },
        ),
        (
            ChangeScheduleEffect { late_max: days(0).map(|_| minutes(1)), ..none.clone() },
            ChangeScheduleEffect { late_max: days(1), ..none },
        ),
    ] {
        let question = asked(&ada, &change(narrowing.clone())).await;
        assert_eq!(question.state(), QuestionState::Answered, "{narrowing:?}");
        let question = asked(&ada, &change(back.clone())).await;
        assert_eq!(question.state(), QuestionState::Open, "{back:?}");
    }
    let [schedule] = &rig.operator().await.schedules("ada").await[..] else { panic!("one") };
    assert_eq!((schedule.interval, schedule.late_max), (days(20), Some(minutes(1))));
    assert_eq!(schedule.targets.len(), 1);
}

fn minutes(minutes: i64) -> Duration {
    Duration { seconds: 60 * minutes, nanos: 0 }
}

/// Makes the same calls on two connections at once; the reasons of the refused ones.
async fn from_both(rig: &Rig, requests: Vec<AskQuestionRequest>) -> Vec<Option<Reason>> {
    let connections = [rig.agent("ada").await.channel(), rig.agent("ada").await.channel()];
    let mut calls = JoinSet::new();
    for (request, connection) in requests.into_iter().zip(connections.iter().cycle()) {
        let connection = connection.clone();
        calls.spawn(async move {
            call(&connection, &request).await.err().and_then(|refusal| {
                let reason = hive_proto::status::reason(&refusal);
                assert!(reason.is_some(), "{refusal:?}");
                reason
            })
        });
    }
    calls.join_all().await
}

fn count(reasons: &[Option<Reason>], reason: Option<Reason>) -> usize {
    reasons.iter().filter(|other| **other == reason).count()
}

#[tokio::test]
async fn the_grant_does_not_reach_beyond_the_policy_from_two_connections_at_once() {
    let mut rig = Rig::new(&format!(
        "[agents.ada]\n{GROUPS}grants = [\"own_schedules\"]\nallowed_recipients = [\"bob\"]\n\
         [agents.ada.limits]\nschedules_max = 3\n[agents.bob]\n[agents.cy]\n"
    ));
    rig.start_broker().await;
    let many = (0..20).map(|number| create(calm(&format!("Report {number}.")))).collect();
    let reasons = from_both(&rig, many).await;
    assert_eq!((count(&reasons, None), count(&reasons, Some(Reason::ScheduleLimit))), (3, 17));
    let operator = rig.operator().await;
    let ids: Vec<u64> = operator.schedules("ada").await.iter().map(|other| other.id).collect();
    assert_eq!(ids.len(), 3);

    let ada = rig.agent("ada").await.channel();
    let before = rows(&rig);
    let edit = |add: &str| {
        let targets_add = request::texts(&[add]);
        change(ChangeScheduleEffect {
            schedule_id: ids[0],
            targets_add,
            ..ChangeScheduleEffect::default()
        })
    };
    let cy = CreateScheduleEffect { targets: request::texts(&["bob", "cy"]), ..calm("Report.") };
    for (what, request, reason) in [
        ("one more schedule", create(calm("Report.")), Reason::ScheduleLimit),
        ("a target of others", edit("cy"), Reason::RecipientNotAllowed),
        ("the operator as a target", edit("operator"), Reason::FieldInvalid),
        ("everyone as a target", edit("*"), Reason::FieldInvalid),
        ("a target twice", edit("bob"), Reason::FieldInvalid),
    ] {
        refused(what, call(&ada, &request).await, &[reason]);
    }
    refused(
        "a target of others",
        call(&ada, &create(cy)).await,
        &[Reason::ScheduleLimit, Reason::RecipientNotAllowed],
    );
    assert_eq!(rows(&rig), before, "a request beyond the policy changes nothing");

    // Itself is always allowed, and once.
    let reasons = from_both(&rig, (0..10).map(|_| edit("ada")).collect()).await;
    assert_eq!((count(&reasons, None), count(&reasons, Some(Reason::FieldInvalid))), (1, 9));
    let end = CancelScheduleRequest { request_id: fresh_id(), schedule_id: ids[1] };
    did(&ada, &end).await;
    let reasons = from_both(&rig, (0..10).map(|_| create(calm("Again."))).collect()).await;
    assert_eq!((count(&reasons, None), count(&reasons, Some(Reason::ScheduleLimit))), (1, 9));
}

#[tokio::test]
async fn a_loop_of_firings_meets_the_rate_and_leaves_one_message() {
    const RATE: usize = 20;
    let mut rig = Rig::new(&format!(
        "[agents.ada]\n{GROUPS}grants = [\"own_schedules\"]\n[agents.ada.limits]\n\
         sends_per_minute_max = {RATE}\n[agents.bob]\n[agents.cy]\n"
    ));
    rig.start_broker().await;
    let (operator, ada) = (rig.operator().await, rig.agent("ada").await.channel());
    let targets = request::texts(&["bob", "cy"]);
    did(&ada, &create(CreateScheduleEffect { targets, ..calm("Report.") })).await;
    let id = operator.schedules("ada").await[0].id;
    let (mut fired, mut limited) = (0, 0);
    for _ in 0..3 * RATE {
        match call(&ada, &fire(id)).await {
            Ok(_) => fired += 1,
            Err(refusal) => {
                refused("one firing more", Err(refusal), &[Reason::RateLimited]);
                limited += 1;
            }
        }
    }
    // A message of the minute comes back each three seconds.
    assert!(fired < 2 * RATE && limited > RATE, "{fired} fired, {limited} limited");
    for target in ["bob", "cy"] {
        let unread = operator.deliveries(target, &[]).await;
        assert_eq!(unread.len(), 1, "{target}");
        let body = &unread[0].message.as_ref().expect("a message").body;
        assert_eq!(*body, format!("Schedule {id} of ada, fired by hand.\n\nReport."));
    }
    // The operator has no rate, and a message that bob reads now is not replaced.
    let received: ReceiveMessagesResponse =
        done(&rig.agent("bob").await.channel(), &request::receive()).await;
    assert_eq!(received.deliveries.len(), 1);
    for _ in 0..3 * RATE {
        did(&operator.channel(), &fire(id)).await;
    }
    for target in ["bob", "cy"] {
        assert_eq!(operator.deliveries(target, &[]).await.len(), 1, "{target}");
    }
}

/// As many changed lines as a schedule may have, in as many questions as an agent may have open:
/// the operator still lists and decides them.
#[tokio::test]
async fn many_long_diffs_keep_nothing_from_the_operator() {
    const QUESTIONS: usize = 50;
    let mut rig = Rig::new(&format!("[agents.ada]\n{GROUPS}[agents.bob]\n"));
    rig.start_broker().await;
    let body = |number: usize| format!("{number}{}x", "\na line of some length".repeat(198));
    let schedule_id = approved(&rig, "ada", calm(&body(0))).await;
    let (operator, ada) = (rig.operator().await, rig.agent("ada").await.channel());
    let mut questions = Vec::new();
    for number in 1..=QUESTIONS {
        let edit = ChangeScheduleEffect {
            schedule_id,
            body: Some(body(number)),
            ..ChangeScheduleEffect::default()
        };
        questions.push(asked(&ada, &change(edit)).await.id);
    }
    let last = questions[QUESTIONS - 1].to_string();
    for args in [&["questions"][..], &["questions", "show", &last], &["inbox"]] {
        let said = rig.hivectl(args).await;
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        assert!(said.stdout.contains(&last), "{args:?}: {}", said.stdout);
    }
    assert_eq!(operator.asked("operator").await.state(), QuestionState::Open);
    let question = operator.question(questions[7]).await;
    did(&operator.channel(), &approval(&question)).await;
    assert_eq!(operator.schedules("ada").await[0].body, body(8));
}
