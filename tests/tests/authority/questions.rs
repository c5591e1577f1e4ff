//! Questions between two agents: a third can neither answer, withdraw nor see them, nor find out by
//! a filter or a watch that any exist.

use std::collections::VecDeque;

use hive_core::reason::Reason;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::watch_questions_response::Step;
use hive_proto::v1::*;
use hive_tests::rig::{Rig, fresh_id, soon};
use prost::Message;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::calls::{answer, asked, channels, did, done, refused, reminded, set_policy, withdraw};

async fn trio() -> (Rig, [Channel; 4]) {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n[agents.cyd]\n");
    rig.start_broker().await;
    let channels = channels(&rig).await;
    (rig, channels)
}

async fn list(channel: &Channel, asker: &str, target: &str) -> Vec<u64> {
    let which = ListQuestionsRequest {
        asker: asker.to_owned(),
        target: target.to_owned(),
        ..ListQuestionsRequest::default()
    };
    let listed: ListQuestionsResponse = done(channel, &which).await;
    listed.questions.into_iter().map(|question| question.id).collect()
}

/// A watch of questions, read one by one.
struct Watch {
    stream: Streaming<WatchQuestionsResponse>,
    ready: VecDeque<(u64, Option<QuestionState>)>,
}

async fn watch(channel: &Channel, which: WatchQuestionsRequest) -> Watch {
    let watched = QuestionServiceClient::new(channel.clone()).watch_questions(which).await;
    Watch { stream: watched.expect("it may watch").into_inner(), ready: VecDeque::new() }
}

/// Returns the next question of a watch; 0 for the end of the snapshot.
async fn next(watch: &mut Watch) -> (u64, Option<QuestionState>) {
    loop {
        if let Some(question) = watch.ready.pop_front() {
            return question;
        }
        let step = soon("the watch has a step", watch.stream.message()).await;
        let step = step.expect("it goes on").expect("it goes on");
        let (questions, complete) = match step.step {
            Some(Step::Snapshot(part)) => (part.questions, part.complete),
            Some(Step::Batch(batch)) => (batch.questions, false),
            Some(Step::Progress(_)) | None => (Vec::new(), false),
        };
        let read = |question: &Question| (question.id, Some(question.state()));
        watch.ready.extend(questions.iter().map(read));
        watch.ready.extend(complete.then_some((0, None)));
    }
}

fn close(kind: LooseEndKind, id: u64) -> CancelLooseEndRequest {
    CancelLooseEndRequest { request_id: fresh_id(), kind: kind.into(), id }
}

#[tokio::test]
async fn only_the_target_and_the_operator_answer_and_only_the_asker_and_the_operator_withdraw() {
    let (rig, [ada, bob, _, operator]) = trio().await;
    let mut events = rig.watch_from_now().await;
    let id = asked(&ada, "bob", "which way?").await;
    let before = rig.on_disk();
    let refusal = refused(&ada, &answer(id, "left"), Reason::NotTheTarget).await;
    assert_eq!(
        refusal.message(),
        format!("question {id} was put to `bob`; only `bob` and the operator may answer it")
    );
    let event = events.kind("ada", EventKind::Refused).await;
    assert_eq!(event.detail, format!("answer: {}", refusal.message()));
    let refusal = refused(&bob, &withdraw(id), Reason::NotYours).await;
    assert_eq!(
        refusal.message(),
        format!("question {id} was asked by `ada`; only `ada` and the operator may withdraw it")
    );
    assert_eq!(
        events.kind("bob", EventKind::Refused).await.detail,
        format!("cancel question: {}", refusal.message())
    );
    refused(&bob, &close(LooseEndKind::QuestionAsked, id), Reason::NotYours).await;
    events.kind("bob", EventKind::Refused).await;
    // The kind of the loose end does not reveal its target either.
    refused(&bob, &close(LooseEndKind::QuestionOwed, id), Reason::FieldInvalid).await;
    let mut after = rig.on_disk();
    let logged = after["event"].len() - before["event"].len();
    assert_eq!(logged, 3);
    let rows = after.get_mut("event").expect("a table");
    rows.truncate(rows.len() - logged);
    assert_eq!(
        hive_tests::rig::on_disk::changes(&before, &after),
        [""; 0],
        "nothing but refusals was written"
    );
    let told: GetQuestionResponse = done(&operator, &GetQuestionRequest { question_id: id }).await;
    assert_eq!(told.question.expect("it").state(), QuestionState::Open);
    let answered: AnswerQuestionResponse = done(&bob, &answer(id, "right")).await;
    assert_eq!(answered.question.expect("it").closed_by, "bob");
    // A late answer learns the outcome.
    let late = refused(&operator, &answer(id, "left"), Reason::QuestionClosed).await;
    assert_eq!(late.message(), format!("question {id} has its outcome already: answered by bob"));
    refused(&ada, &withdraw(id), Reason::QuestionClosed).await;
}

/// Every verb on an id that a third agent may not read is refused as on an id that never existed:
/// the answers differ in the number only, and nothing is written, not even to the log.
#[tokio::test]
async fn what_a_third_may_not_read_does_not_exist_for_any_verb() {
    let (rig, [ada, bob, cyd, operator]) = trio().await;
    let policy = |tool_groups| Policy { tool_groups, ..Policy::default() };
    let closed = asked(&ada, "bob", "and before?").await;
    did(&bob, &answer(closed, "so")).await;
    let (open, reminder) = (asked(&ada, "bob", "which way?").await, reminded(&ada, "now").await);
    for groups in [Vec::new(), vec!["meta".to_owned()]] {
        did(&operator, &set_policy("cyd", &["tool_groups"], policy(groups))).await;
        let before = rig.on_disk();
        for (id, never) in [(open, open + 1_000_000), (closed, closed + 1_000_000)] {
            for verb in [answer(id, "left"), answer(never, "left")] {
                not_found(&cyd, &verb, Reason::QuestionNotFound, [id, never]).await;
            }
            for verb in [withdraw(id), withdraw(never)] {
                not_found(&cyd, &verb, Reason::QuestionNotFound, [id, never]).await;
            }
            let kind = LooseEndKind::QuestionAsked;
            for verb in [close(kind, id), close(kind, never)] {
                not_found(&cyd, &verb, Reason::QuestionNotFound, [id, never]).await;
            }
        }
        let never = reminder + 1_000_000;
        for reminder_id in [reminder, never] {
            let verb = CancelReminderRequest { request_id: fresh_id(), reminder_id };
            not_found(&cyd, &verb, Reason::ReminderNotFound, [reminder, never]).await;
            let verb = close(LooseEndKind::Reminder, reminder_id);
            not_found(&cyd, &verb, Reason::ReminderNotFound, [reminder, never]).await;
        }
        rig.unchanged(&before, "a third agent");
    }
}

/// Asserts that a call is refused in the words for an id that does not exist; the ids themselves
/// are left out of the words.
async fn not_found(channel: &Channel, verb: &impl Message, reason: Reason, ids: [u64; 2]) {
    let refusal = refused(channel, verb, reason).await;
    // The longer one first, because the other may be its beginning.
    let words = ids
        .iter()
        .rev()
        .fold(refusal.message().to_owned(), |words, id| words.replace(&id.to_string(), "ID"));
    let one_of = [
        "there is no question ID that you asked or were asked",
        "there is no reminder ID of yours",
        "you have no loose end of kind question asked with id ID",
        "you have no loose end of kind reminder with id ID",
    ];
    assert!(one_of.contains(&words.as_str()), "{words}");
}

#[tokio::test]
async fn a_third_agent_cannot_learn_that_a_question_exists() {
    let (_rig, [ada, bob, cyd, operator]) = trio().await;
    let early = asked(&ada, "bob", "between us two?").await;
    for id in [early, early + 1_000_000] {
        let refusal =
            refused(&cyd, &GetQuestionRequest { question_id: id }, Reason::QuestionNotFound).await;
        assert_eq!(
            refusal.message(),
            format!("there is no question {id} that you asked or were asked")
        );
        let watch = WatchQuestionsRequest { question_id: id, ..WatchQuestionsRequest::default() };
        refused(&cyd, &watch, Reason::QuestionNotFound).await;
    }
    for (asker, target) in [("", ""), ("ada", ""), ("", "bob"), ("ada", "bob")] {
        assert_eq!(list(&cyd, asker, target).await, [0; 0], "{asker} {target}");
        for channel in [&ada, &bob, &operator] {
            assert_eq!(list(channel, asker, target).await, [early], "{asker} {target}");
        }
    }
    let mut theirs = watch(
        &cyd,
        WatchQuestionsRequest { asker: "ada".to_owned(), ..WatchQuestionsRequest::default() },
    )
    .await;
    let mut all = watch(&cyd, WatchQuestionsRequest::default()).await;
    let mut operators = watch(&operator, WatchQuestionsRequest::default()).await;
    let mut one = watch(
        &bob,
        WatchQuestionsRequest { question_id: early, ..WatchQuestionsRequest::default() },
    )
    .await;
    assert_eq!(
        [next(&mut theirs).await, next(&mut all).await],
        [(0, None); 2],
        "snapshots of nothing"
    );
    let open = |id| (id, Some(QuestionState::Open));
    assert_eq!([next(&mut operators).await, next(&mut operators).await], [open(early), (0, None)]);
    assert_eq!([next(&mut one).await, next(&mut one).await], [open(early), (0, None)]);

    let also = asked(&bob, "ada", "and this?").await;
    did(&bob, &answer(early, "yes")).await;
    let shared = asked(&ada, "cyd", "now you").await;
    // The first question that the third agent sees is its own.
    assert_eq!([next(&mut theirs).await, next(&mut all).await], [open(shared); 2]);
    assert_eq!(next(&mut one).await, (early, Some(QuestionState::Answered)));
    // A step shows a question's present state, so steps in quick succession may be merged.
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < 3 {
        let (id, _) = next(&mut operators).await;
        seen.insert(id);
    }
    assert_eq!(seen.into_iter().collect::<Vec<u64>>(), [early, also, shared]);
}

#[tokio::test]
async fn a_reminder_is_its_agents_and_the_operators() {
    let (rig, [ada, bob, _, operator]) = trio().await;
    let id = reminded(&ada, "only for me").await;
    let cancel = || CancelReminderRequest { request_id: fresh_id(), reminder_id: id };
    let before = rig.on_disk();
    refused(&bob, &cancel(), Reason::ReminderNotFound).await;
    rig.unchanged(&before, "bob");
    // Bob has no loose end of this kind and number.
    refused(&bob, &close(LooseEndKind::Reminder, id), Reason::ReminderNotFound).await;
    // The operator may read it, and withdraws it by its name.
    refused(&operator, &close(LooseEndKind::Reminder, id), Reason::NotYours).await;
    let of = |agent: &str| ListRemindersRequest {
        agent: agent.to_owned(),
        ..ListRemindersRequest::default()
    };
    refused(&bob, &of("ada"), Reason::NotYours).await;
    for (channel, whose, count) in
        [(&bob, "", 0), (&ada, "", 1), (&ada, "ada", 1), (&operator, "", 1), (&operator, "bob", 0)]
    {
        let listed: ListRemindersResponse = done(channel, &of(whose)).await;
        assert_eq!(listed.reminders.len(), count, "{whose}");
    }
    let cancelled: CancelReminderResponse = done(&operator, &cancel()).await;
    assert_eq!(cancelled.reminder.expect("it").state(), ReminderState::Cancelled);
    let again = refused(&ada, &cancel(), Reason::WrongState).await;
    assert_eq!(again.message(), format!("reminder {id} is cancelled already"));
}

#[tokio::test]
async fn a_co_processs_publications_are_its_agents() {
    let (_rig, [ada, bob, _, operator]) = trio().await;
    let entry =
        |key: &str, text: &str| PublishedLooseEnd { key: key.to_owned(), text: text.to_owned() };
    let publish = |loose_ends| ReplaceLooseEndsRequest {
        request_id: fresh_id(),
        label: "ci".to_owned(),
        loose_ends,
    };
    let ends = async |channel: &Channel, agent: &str| -> Vec<(u64, String)> {
        let listed: ListLooseEndsResponse = done(channel, &crate::calls::loose_ends(agent)).await;
        assert!(
            listed
                .loose_ends
                .iter()
                .all(|end| end.kind() == LooseEndKind::External && end.peer == "ci")
        );
        listed.loose_ends.into_iter().map(|end| (end.id, end.text)).collect()
    };
    did(&ada, &publish(vec![entry("1", "ada's build")])).await;
    // The same label of another agent is a separate set.
    did(&bob, &publish(vec![entry("1", "bob's build")])).await;
    let [(first, text)] = &ends(&ada, "").await[..] else { panic!("one") };
    assert_eq!(text, "ada's build");
    assert_eq!(ends(&operator, "bob").await.len(), 1);
    did(&bob, &publish(Vec::new())).await;
    assert_eq!((ends(&bob, "").await.len(), ends(&ada, "").await.len()), (0, 1));
    // Only the co-process closes its loose end, not its agent.
    refused(&ada, &close(LooseEndKind::External, *first), Reason::FieldInvalid).await;
    refused(&operator, &publish(Vec::new()), Reason::NotAnAgent).await;
}
