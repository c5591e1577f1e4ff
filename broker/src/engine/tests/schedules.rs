//! Schedules: each due time is fired once or counted, unread messages do not pile up, and a
//! schedule never does more than was approved and than the policy of its owner allows now.

use hive_core::agent::{OWN_SCHEDULES, PolicyPart, SCHEDULING};
use hive_core::delivery::State as DeliveryState;
use hive_core::effect::{APPROVE, Effect};
use hive_core::id::ScheduleId;
use hive_core::limits::PAGE_BYTES_MAX;
use hive_core::question::State as QuestionState;
use hive_core::schedule::{Edit, Schedule, State, Terms};
use hive_core::time::WallTime;

use super::approvals::chosen;
use super::*;
use crate::clock::Clock as _;
use crate::engine::mail::question::{Which, bytes_of};
use crate::engine::schedule::Fired;

const DAY: u64 = 24 * 3600;

fn policy(grants: &[&str]) -> Policy {
    let mut policy = Policy::default();
    policy.tool_groups.push(SCHEDULING.to_owned());
    policy.grants = grants.iter().map(|grant| (*grant).to_owned()).collect();
    policy
}

impl Hive {
    /// Returns terms that are due every day, first tomorrow.
    pub(super) fn daily(&self, targets: &[&str]) -> Terms {
        Terms {
            body: "Report.".to_owned(),
            targets: targets.iter().map(|target| name(target)).collect(),
            first_time: self.clock.now().wall.after(Duration::from_secs(DAY)),
            interval: Some(Duration::from_secs(DAY)),
            zone: String::new(),
            late_max: None,
        }
    }

    pub(super) async fn schedules(&self, who: &str) -> Vec<Schedule> {
        let states = vec![State::Active, State::Paused, State::Ended];
        let listed = self.engine().list_schedules(caller(who), String::new(), states, None, 500);
        listed.await.expect("schedules are listed").0
    }

    async fn schedule(&self, id: ScheduleId) -> Schedule {
        let all = self.schedules("operator").await;
        all.into_iter().find(|schedule| schedule.id == id).expect("it exists")
    }

    /// Has a schedule of an agent with the grant created.
    pub(super) async fn scheduled(&self, owner: &str, terms: Terms) -> ScheduleId {
        let question = self.request_effect(owner, Effect::CreateSchedule { terms }).await;
        assert_eq!(question.expect("it is asked").state, QuestionState::Answered, "by the grant");
        self.schedules(owner).await.last().expect("one").id
    }

    pub(super) async fn sweep_schedules(&self) -> Option<WallTime> {
        self.engine().sweep_schedules().await.expect("swept")
    }

    async fn pass_days(&self, days: u64) {
        self.pass(days * DAY);
        self.sweep_schedules().await;
    }

    async fn edit(&self, owner: &str, id: ScheduleId, edit: Edit) -> Result<bool, Refusal> {
        let question = self.request_effect(owner, Effect::ChangeSchedule { id, edit }).await?;
        Ok(question.state == QuestionState::Answered)
    }

    async fn cancel_schedule(&self, who: &str, id: ScheduleId) -> Result<Schedule, Refusal> {
        self.engine().cancel_schedule(actor(who), self.request("CancelSchedule"), id).await
    }

    async fn fire_now(&self, who: &str, id: ScheduleId) -> Result<Vec<Fired>, Refusal> {
        let fired = self.engine().fire_schedule(actor(who), self.request("FireSchedule"), id);
        fired.await.map(|(_, fired)| fired)
    }

    async fn pause(&self, id: ScheduleId) -> Schedule {
        let paused =
            self.engine().pause_schedule(caller("operator"), self.request("PauseSchedule"), id);
        paused.await.expect("paused")
    }

    async fn resume(&self, id: ScheduleId) -> Schedule {
        let resumed =
            self.engine().resume_schedule(caller("operator"), self.request("ResumeSchedule"), id);
        resumed.await.expect("resumed")
    }

    /// The bodies of the messages that wait for an agent.
    async fn waiting(&self, agent: &str) -> Vec<String> {
        let inbox = self.inbox(agent).await.into_iter();
        let ready = inbox.filter(|delivery| delivery.state == DeliveryState::Ready);
        ready.map(|delivery| delivery.message.body).collect()
    }
}

async fn hive() -> Hive {
    let hive = Hive::new(&["bob", "cy"]).await;
    hive.create("alice", None, policy(&[OWN_SCHEDULES])).await;
    hive.create("dave", None, policy(&[])).await;
    hive
}

#[tokio::test]
async fn an_approved_schedule_fires_in_the_name_of_its_owner_at_each_due_time() {
    let mut hive = hive().await;
    let terms = hive.daily(&["bob", "dave"]);
    let first = terms.first_time;
    let asked = hive.requested("dave", Effect::CreateSchedule { terms }).await;
    assert!(hive.schedules("dave").await.is_empty(), "asking changes nothing");
    let shown = hive.inbox("operator").await[0].message.body.clone();
    for line in ["+ schedule.targets: bob, dave\n", "+ schedule.interval: 86400 s\n"] {
        assert!(shown.contains(line), "{shown}");
    }
    assert!(shown.contains("+ schedule.body: Report."), "{shown}");
    hive.approve(asked).await.expect("approved");
    let schedule = hive.schedules("dave").await.remove(0);
    let id = schedule.id;
    let kept = hive.approval(asked).await.changes.pop().expect("its number");
    assert_eq!((kept.field.as_str(), kept.after), ("schedule.id", id.to_string()));
    assert_eq!(hive.sweep_schedules().await, Some(first));
    hive.crash().await;
    hive.pass(DAY - 1);
    assert_eq!(hive.sweep_schedules().await, Some(first));
    assert!(hive.inbox("bob").await.is_empty());
    hive.pass(1);
    assert_eq!(hive.sweep_schedules().await, Some(first.after(Duration::from_secs(DAY))));
    hive.sweep_schedules().await;
    hive.crash().await;
    hive.sweep_schedules().await;
    for agent in ["bob", "dave"] {
        let inbox = hive.inbox(agent).await;
        let sent: Vec<_> =
            inbox.iter().filter(|one| one.message.origin.to_string() == "dave").collect();
        assert_eq!(sent.len(), 1, "{agent}: {inbox:?}");
        let body = &sent[0].message.body;
        assert!(body.starts_with(&format!("Schedule {id} of dave, for ")), "{body}");
        assert!(body.ends_with(".\n\nReport.") && !body.contains("skipped"), "{body}");
    }
    for kind in [EventKind::ScheduleCreated, EventKind::ScheduleFired] {
        assert_eq!(hive.count_events(kind).await, 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_weekend_switched_off_is_one_message_that_says_what_it_missed() {
    let mut hive = hive().await;
    hive.scheduled("alice", hive.daily(&["bob"])).await;
    hive.pass_days(1).await;
    let taken = hive.receive("bob", 9).await;
    hive.ack("bob", &taken[0]).await.expect("settled");
    hive.pass(3 * DAY);
    hive.crash().await;
    hive.sweep_schedules().await;
    let waiting = hive.waiting("bob").await;
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert!(waiting[0].contains(". 2 earlier due times were skipped.\n"), "{waiting:?}");
}

#[tokio::test]
async fn unread_messages_are_superseded_and_counted() {
    let hive = hive().await;
    let id = hive.scheduled("alice", hive.daily(&["bob", "cy"])).await;
    hive.pass_days(1).await;
    let taken = hive.receive("cy", 9).await;
    hive.pass_days(1).await;
    hive.pass_days(2).await;
    let waiting = hive.waiting("bob").await;
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert!(waiting[0].contains(" 3 earlier due times were skipped."), "{waiting:?}");
    assert!(hive.waiting("cy").await.is_empty(), "it reads the first one");
    let targets = hive.schedule(id).await.targets;
    let skipped: Vec<_> = targets.iter().map(|target| target.skipped_count).collect();
    assert_eq!(skipped, [0, 3]);
    hive.ack("cy", &taken[0]).await.expect("settled");
    hive.pass_days(1).await;
    let waiting = hive.waiting("cy").await;
    assert!(waiting[0].contains(" 3 earlier due times were skipped."), "{waiting:?}");
    assert_eq!(hive.schedule(id).await.targets[1].skipped_count, 0);
}

#[tokio::test]
async fn a_text_that_fails_becomes_a_dead_letter_however_short_the_interval() {
    let hive = hive().await;
    let interval = Some(Duration::from_secs(60));
    hive.scheduled("alice", Terms { interval, ..hive.daily(&["bob"]) }).await;
    hive.pass_days(1).await;
    let first = hive.inbox("bob").await[0].message.id;
    let mut failed = 0;
    for _ in 0..60 {
        if let Some(leased) = hive.receive("bob", 1).await.first() {
            assert_eq!(leased.delivery.message.id, first, "no other one takes its place");
            hive.nack("bob", leased, false).await.expect("returned");
            failed += 1;
        }
        hive.pass(60);
        hive.sweep_schedules().await;
        if failed == 5 {
            break;
        }
    }
    assert_eq!(hive.state("bob", first).await.0, DeliveryState::Dead);
    hive.pass(60);
    hive.sweep_schedules().await;
    assert_eq!(hive.waiting("bob").await.len(), 1, "a dead letter keeps nothing");
}

#[tokio::test]
async fn what_is_later_than_its_limit_is_counted_and_not_sent() {
    let hive = hive().await;
    let late_max = Some(Duration::from_secs(3600));
    hive.scheduled("alice", Terms { late_max, ..hive.daily(&["bob"]) }).await;
    hive.pass(2 * DAY + 3601);
    hive.sweep_schedules().await;
    assert!(hive.waiting("bob").await.is_empty());
    hive.pass(DAY - 1);
    hive.sweep_schedules().await;
    let waiting = hive.waiting("bob").await;
    assert!(waiting[0].contains(" 2 earlier due times were skipped."), "{waiting:?}");
}

#[tokio::test]
async fn a_clock_that_jumps_back_fires_nothing_twice() {
    let hive = hive().await;
    hive.scheduled("alice", hive.daily(&["bob"])).await;
    let start = hive.clock.now().wall;
    hive.pass_days(3).await;
    hive.clock.set_wall(start);
    for _ in 0..3 {
        hive.pass_days(1).await;
    }
    assert_eq!(hive.count_events(EventKind::ScheduleFired).await, 1);
    hive.pass_days(1).await;
    let waiting = hive.waiting("bob").await;
    assert!(waiting[0].contains(" 3 earlier due times were skipped."), "{waiting:?}");
}

/// As after a release with other rules of a zone, by which the next due time is later.
#[tokio::test]
async fn a_due_time_that_has_moved_is_waited_for() {
    let mut hive = hive().await;
    let terms = hive.daily(&["bob"]);
    let first = terms.first_time;
    hive.scheduled("alice", terms).await;
    hive.restart_after(|dir| {
        let database = rusqlite::Connection::open(dir.join("hive.db")).expect("it opens");
        let moved = database.execute("UPDATE schedule SET next_time = next_time - 3600000", []);
        assert_eq!(moved.expect("written"), 1);
    })
    .await;
    hive.pass(DAY - 1800);
    assert_eq!(hive.sweep_schedules().await, Some(first), "it does not fire, and does not spin");
    assert!(hive.waiting("bob").await.is_empty());
    hive.pass(1800);
    hive.sweep_schedules().await;
    let waiting = hive.waiting("bob").await;
    assert!(waiting.len() == 1 && !waiting[0].contains("skipped"), "{waiting:?}");
}

#[tokio::test]
async fn a_schedule_sends_only_where_the_policy_of_its_owner_allows_it_now() {
    let hive = hive().await;
    hive.scheduled("alice", hive.daily(&["alice", "bob", "cy"])).await;
    let narrow = Policy { allowed_recipients: vec!["cy".to_owned()], ..policy(&[OWN_SCHEDULES]) };
    hive.set_policy("alice", narrow, &PolicyPart::ALL).await.expect("narrowed");
    hive.pass_days(1).await;
    assert!(hive.waiting("bob").await.is_empty());
    assert_eq!(hive.waiting("cy").await.len(), 1);
    assert_eq!(hive.waiting("alice").await.len(), 1, "an agent may remind itself");
    let wrong =
        hive.request_effect("alice", Effect::CreateSchedule { terms: hive.daily(&["bob"]) });
    assert_eq!(reason(wrong.await), Reason::RecipientNotAllowed);
    let none = Policy { tool_groups: vec![SCHEDULING.to_owned()], ..policy(&[]) };
    hive.set_policy("alice", none, &PolicyPart::ALL).await.expect("narrowed");
    hive.pass_days(1).await;
    let waiting = hive.waiting("cy").await;
    assert!(!waiting[0].contains("skipped"), "without the group nothing is sent: {waiting:?}");
}

#[tokio::test]
async fn it_ends_with_its_owner_and_with_its_last_target() {
    let hive = hive().await;
    let both = hive.scheduled("alice", hive.daily(&["bob", "cy"])).await;
    let one = hive.scheduled("alice", hive.daily(&["bob"])).await;
    hive.retire("bob").await;
    assert_eq!(hive.schedule(both).await.terms.targets, [name("cy")]);
    let ended = hive.schedule(one).await;
    assert_eq!((ended.state, ended.next_time), (State::Ended, None));
    let notices = hive.notices("alice").await;
    let body = &notices.last().expect("a notice").message.body;
    assert!(body.contains(&format!("schedule {one} has ended: its last target")), "{body}");
    hive.retire("alice").await;
    let ended = hive.schedule(both).await;
    assert_eq!((ended.state, ended.end_cause.as_str()), (State::Ended, "its owner was retired"));
    assert_eq!(hive.sweep_schedules().await, None);
}

#[tokio::test]
async fn one_that_is_due_once_fires_once_and_says_if_it_could_not() {
    let hive = hive().await;
    let once = |targets: &[&str]| Terms { interval: None, ..hive.daily(targets) };
    let sent = hive.scheduled("alice", once(&["bob"])).await;
    let late_max = Some(Duration::from_secs(60));
    let missed = hive.scheduled("alice", Terms { late_max, ..once(&["cy"]) }).await;
    hive.pass(DAY + 61);
    hive.sweep_schedules().await;
    assert_eq!(hive.schedule(sent).await.state, State::Ended);
    assert_eq!(hive.schedule(missed).await.state, State::Ended);
    assert_eq!(hive.waiting("bob").await.len(), 1);
    assert!(hive.waiting("cy").await.is_empty());
    let notices = hive.notices("alice").await;
    let ends: Vec<_> = notices
        .iter()
        .filter(|one| one.message.system_kind == Some(SystemKind::ScheduleEnded))
        .map(|one| one.message.body.clone())
        .collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert!(ends[0].contains("cy got no message for the last 1 due time."), "{ends:?}");
}

#[tokio::test]
async fn fired_by_hand_it_counts_as_sending_and_its_due_times_stay() {
    let hive = hive().await;
    let id = hive.scheduled("alice", hive.daily(&["bob", "cy"])).await;
    let taken = hive.fire_now("alice", id).await.expect("fired");
    assert!(taken.iter().all(|fired| fired.message.is_ok()), "{taken:?}");
    let leased = hive.receive("cy", 1).await;
    let again = hive.fire_now("alice", id).await.expect("fired");
    assert!(again[0].message.is_ok() && again[1].message.is_err(), "{again:?}");
    assert_eq!(hive.waiting("bob").await.len(), 1, "the unread one is superseded");
    hive.ack("cy", &leased[0]).await.expect("settled");
    hive.pass_days(1).await;
    for agent in ["bob", "cy"] {
        let waiting = hive.waiting(agent).await;
        assert!(!waiting[0].contains("skipped"), "no due time was: {waiting:?}");
    }
    let slow = Policy { sends_per_minute_max: Some(1), ..policy(&[OWN_SCHEDULES]) };
    hive.set_policy("alice", slow, &PolicyPart::ALL).await.expect("set");
    hive.pass(60);
    hive.fire_now("alice", id).await.expect("the one of this minute");
    assert_eq!(reason(hive.fire_now("alice", id).await), Reason::RateLimited);
    let once = Terms { interval: None, ..hive.daily(&["bob"]) };
    hive.pass(60);
    let once = hive.scheduled("alice", once).await;
    hive.pass(60);
    hive.fire_now("alice", once).await.expect("fired");
    assert_eq!(hive.schedule(once).await.state, State::Ended);
    hive.pass(60);
    assert_eq!(reason(hive.fire_now("alice", once).await), Reason::WrongState);
}

#[tokio::test]
async fn what_the_operator_paused_only_they_resume() {
    let hive = hive().await;
    let id = hive.scheduled("alice", hive.daily(&["bob"])).await;
    hive.pass(DAY);
    assert_eq!(hive.pause(id).await.state, State::Paused);
    assert_eq!(hive.waiting("bob").await.len(), 1, "what was due has fired");
    assert_eq!(hive.pause(id).await.next_time, None);
    assert_eq!(reason(hive.fire_now("alice", id).await), Reason::WrongState);
    let later = Edit { interval: Some(Duration::from_secs(2 * DAY)), ..Edit::default() };
    assert!(hive.edit("alice", id, later).await.expect("narrower"));
    assert_eq!(hive.schedule(id).await.state, State::Paused);
    hive.pass_days(4).await;
    let resumed = hive.resume(id).await;
    assert_eq!(resumed.state, State::Active);
    assert!(resumed.next_time.is_some_and(|next| next > hive.clock.now().wall));
    assert_eq!(hive.waiting("bob").await.len(), 1, "a pause has no due times");
    hive.pass_days(2).await;
    let waiting = hive.waiting("bob").await;
    assert!(waiting[0].contains(" 1 earlier due time was skipped."), "the unread one: {waiting:?}");
    hive.cancel_schedule("operator", id).await.expect("ended");
    let notices = hive.notices("alice").await;
    assert!(notices.last().expect("a notice").message.body.contains("ended it"), "{notices:?}");
}

#[tokio::test]
async fn a_change_that_narrows_needs_no_approval_and_any_other_does() {
    let hive = hive().await;
    let terms = hive.daily(&["bob", "cy"]);
    let first = terms.first_time;
    let asked = hive.requested("dave", Effect::CreateSchedule { terms }).await;
    hive.approve(asked).await.expect("approved");
    let id = hive.schedules("dave").await[0].id;
    let days = |days: u64| Some(Duration::from_secs(days * DAY));
    for (edit, is_narrow) in [
        (Edit { targets_remove: vec![name("cy")], ..Edit::default() }, true),
        (Edit { interval: days(3), ..Edit::default() }, true),
        (Edit { late_max: Some(Duration::from_secs(600)), ..Edit::default() }, true),
        (Edit { first_time: Some(first.after(Duration::from_secs(60))), ..Edit::default() }, true),
        (Edit { targets_add: vec![name("cy")], ..Edit::default() }, false),
        (Edit { interval: days(1), ..Edit::default() }, false),
        (Edit { first_time: Some(first), ..Edit::default() }, false),
        (Edit { late_max: Some(Duration::ZERO), ..Edit::default() }, false),
        (Edit { zone: Some("Europe/Berlin".to_owned()), ..Edit::default() }, false),
        (Edit { body: Some("Report more.".to_owned()), ..Edit::default() }, false),
    ] {
        let at_once = hive.edit("dave", id, edit.clone()).await.expect("it is asked");
        assert_eq!(at_once, is_narrow, "{edit:?}");
    }
    let schedule = hive.schedule(id).await;
    assert_eq!(schedule.terms.targets, [name("bob")]);
    assert_eq!((schedule.terms.interval, schedule.terms.body.as_str()), (days(3), "Report."));
}

#[tokio::test]
async fn an_approval_shows_the_terms_as_they_are_now() {
    let hive = hive().await;
    let terms = hive.daily(&["bob", "cy"]);
    let asked = hive.requested("dave", Effect::CreateSchedule { terms }).await;
    hive.approve(asked).await.expect("approved");
    let id = hive.schedules("dave").await[0].id;
    let edit = Edit { interval: Some(Duration::from_secs(3600)), ..Edit::default() };
    let open = hive.requested("dave", Effect::ChangeSchedule { id, edit }).await;
    let digest = hive.approval(open).await.diff_digest;
    let slower = Edit { interval: Some(Duration::from_secs(9 * DAY)), ..Edit::default() };
    assert!(hive.edit("dave", id, slower).await.expect("narrower"));
    assert_eq!(reason(hive.decide_on(open, chosen(APPROVE, &digest)).await), Reason::DiffChanged);
    hive.approve(open).await.expect("as it is shown now");
    assert_eq!(hive.schedule(id).await.terms.interval, Some(Duration::from_secs(3600)));
    let edit = Edit { body: Some("x".to_owned()), ..Edit::default() };
    let open = hive.requested("dave", Effect::ChangeSchedule { id, edit }).await;
    hive.cancel_schedule("dave", id).await.expect("ended");
    let problem = hive.approval(open).await.problem;
    assert_eq!(problem, format!("schedule {id} is ended, which does not allow that"));
    assert_eq!(reason(hive.decide_on(open, chosen(APPROVE, "x")).await), Reason::WrongState);
}

#[tokio::test]
async fn an_edit_or_a_cancel_loses_no_due_time_that_has_come() {
    let hive = hive().await;
    let id = hive.scheduled("alice", hive.daily(&["bob"])).await;
    hive.pass(2 * DAY);
    let edit = Edit { body: Some("New.".to_owned()), ..Edit::default() };
    assert!(hive.edit("alice", id, edit).await.expect("granted"));
    let waiting = hive.waiting("bob").await;
    assert!(waiting[0].ends_with("\n\nReport."), "by the terms of its time: {waiting:?}");
    assert!(waiting[0].contains(" 1 earlier due time was skipped."), "{waiting:?}");
    assert!(hive.schedule(id).await.next_time.is_some_and(|next| next > hive.clock.now().wall));
}

#[tokio::test]
async fn what_there_cannot_be_is_refused() {
    let hive = hive().await;
    let refused = |who: &'static str, terms: Terms| {
        let effect = Effect::CreateSchedule { terms };
        let hive = &hive;
        async move { hive.request_effect(who, effect).await.expect_err("it is refused") }
    };
    let daily = || hive.daily(&["bob"]);
    let start = hive.clock.now().wall;
    for (terms, wanted) in [
        (Terms { zone: "Mars/Base".to_owned(), ..daily() }, Reason::FieldInvalid),
        (Terms { interval: Some(Duration::from_secs(59)), ..daily() }, Reason::FieldInvalid),
        (Terms { interval: None, first_time: start, ..daily() }, Reason::FieldInvalid),
        (Terms { body: "x".repeat(9_000), ..daily() }, Reason::FieldInvalid),
        (Terms { targets: vec![name("nobody")], ..daily() }, Reason::AgentNotFound),
        (Terms { targets: Vec::new(), ..daily() }, Reason::FieldInvalid),
    ] {
        assert_eq!(refused("alice", terms.clone()).await.reason(), wanted, "{terms:?}");
    }
    assert_eq!(refused("bob", daily()).await.reason(), Reason::CapabilityMissing);
    let few = Policy { schedules_max: Some(1), ..policy(&[OWN_SCHEDULES]) };
    hive.set_policy("alice", few, &PolicyPart::ALL).await.expect("set");
    let id = hive.scheduled("alice", daily()).await;
    assert_eq!(refused("alice", daily()).await.reason(), Reason::ScheduleLimit);
    assert_eq!(reason(hive.cancel_schedule("dave", id).await), Reason::ScheduleNotFound);
    assert_eq!(reason(hive.fire_now("dave", id).await), Reason::ScheduleNotFound);
    let edit = Edit { body: Some("x".to_owned()), ..Edit::default() };
    assert_eq!(reason(hive.edit("dave", id, edit).await), Reason::ScheduleNotFound);
    hive.cancel_schedule("alice", id).await.expect("ended");
    assert_eq!(reason(hive.cancel_schedule("alice", id).await), Reason::WrongState);
    hive.scheduled("alice", daily()).await;
}

#[tokio::test]
async fn a_page_of_long_diffs_stays_under_one_replys_bytes() {
    const QUESTIONS: usize = 250;
    let hive = hive().await;
    let many = Some(1_000);
    let asking = Policy { questions_open_max: many, sends_per_minute_max: many, ..policy(&[]) };
    hive.set_policy("dave", asking, &PolicyPart::ALL).await.expect("set");
    let body = "a line of the report, of some length\n".repeat(200);
    for _ in 0..QUESTIONS {
        let terms = Terms { body: body.clone(), ..hive.daily(&["bob"]) };
        let asked = hive.request_effect("dave", Effect::CreateSchedule { terms }).await;
        assert_eq!(asked.expect("it is asked").state, QuestionState::Open);
    }
    let (mut ids, mut before) = (Vec::new(), None);
    loop {
        let page =
            hive.engine().list_questions(caller("operator"), Which::default(), before, 500).await;
        let (page, more) = page.expect("questions are listed");
        let bytes: usize = page.iter().map(bytes_of).sum();
        assert!(bytes <= PAGE_BYTES_MAX, "{bytes} bytes of {} questions", page.len());
        ids.extend(page.iter().map(|question| question.id));
        before = ids.last().copied();
        if !more {
            break;
        }
        assert!(page.len() > 50 && ids.len() < QUESTIONS, "a page is as full as it can be");
    }
    assert!(ids.len() == QUESTIONS && ids.is_sorted_by(|one, next| one > next), "{ids:?}");
}
