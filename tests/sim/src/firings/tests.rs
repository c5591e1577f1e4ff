//! Logs of a schedule, sound ones and broken ones.

use hive_core::delivery::RedeliveryCause::Nacked;
use hive_core::event::{DeliveryReturned, ScheduleCreated, ScheduleFired};
use hive_core::id::{MessageId, ScheduleId};
use hive_core::schedule::Target as Shown;
use hive_history::Origin;
use std::time::Duration;

use super::*;
use crate::serve::name;

const START: i64 = 1_792_872_000_000;

fn terms() -> Terms {
    Terms {
        body: "Report.".to_owned(),
        targets: vec![name("bob")],
        first_time: WallTime(START + 60_000),
        interval: Some(Duration::from_secs(60)),
        zone: String::new(),
        late_max: None,
    }
}

/// A log of schedule 9 of `ada`, to `bob`.
struct Story {
    events: Vec<Event>,
    last: Final,
}

impl Story {
    fn new() -> Self {
        let mut story = Self { events: Vec::new(), last: Final::default() };
        let schedule_id = ScheduleId::new(9).expect("an id");
        story.log(0, ScheduleCreated { schedule_id }, None, "for ada, question 5");
        story
    }

    fn log(&mut self, at_s: i64, facts: impl Into<Facts>, message: Option<u64>, detail: &str) {
        self.last.wall = START + at_s * 1_000;
        self.events.push(Event {
            sequence: self.events.len() as u64 + 1,
            facts: facts.into(),
            time: WallTime(self.last.wall),
            agent: if message.is_some() { "bob" } else { "ada" }.to_owned(),
            message_id: message.and_then(MessageId::new),
            turn_id: None,
            detail: detail.to_owned(),
            question_id: None,
            reminder_id: None,
        });
    }

    /// The schedule fires for a due time, after it has superseded a message.
    fn fire(&mut self, at_s: i64, message: u64, stated: &str, superseded: Option<u64>) {
        let why = format!("for {}", shown(WallTime(START + at_s / 60 * 60_000)));
        if superseded.is_some() {
            self.log(at_s, Facts::DeliverySuperseded, superseded, "");
        }
        self.log(at_s, Facts::MessageAccepted, Some(message), "");
        let schedule_id = ScheduleId::new(9).expect("an id");
        self.log(at_s, ScheduleFired { schedule_id }, None, &why);
        self.last.messages.push(history::Message {
            id: message,
            origin: Origin::Agent("ada".to_owned()),
            recipients: vec!["bob".to_owned()],
            recipient_count: 1,
            body: format!("Schedule 9 of ada, {why}.{stated}\n\nReport."),
            reply_to: 0,
            turn: 0,
            key: String::new(),
            question: 0,
            reminder: 0,
        });
    }

    /// Returns what is wrong if the schedule is due then and `bob` was skipped this often.
    fn check(self, next_s: i64, skipped_count: u64) -> String {
        let effects = BTreeMap::from([(5, Effect::CreateSchedule { terms: terms() })]);
        let mut firings = Firings::new(&self.last, &effects);
        self.events.iter().for_each(|event| firings.follow(event));
        let schedule = Schedule {
            id: ScheduleId::new(9).expect("an id"),
            owner: name("ada"),
            terms: terms(),
            targets: vec![Shown { agent: name("bob"), message_id: None, skipped_count }],
            state: State::Active,
            next_time: Some(WallTime(START + next_s * 1_000)),
            create_time: WallTime(START),
            end_time: None,
            end_cause: String::new(),
        };
        firings.finish(&[schedule], &self.last).join("\n")
    }
}

#[test]
fn what_is_fired_or_counted_once_is_sound() {
    let mut story = Story::new();
    story.fire(60, 11, "", None);
    story.fire(190, 12, " 2 earlier due times were skipped.", Some(11));
    story.log(200, Facts::DeliveryLeased(None), Some(12), "");
    let schedule_id = ScheduleId::new(9).expect("an id");
    story.log(245, ScheduleFired { schedule_id }, None, "for a time, to 0 of 1");
    assert_eq!(story.check(300, 1), "");
}

#[test]
fn a_due_time_is_fired_twice() {
    let mut story = Story::new();
    story.fire(60, 11, "", None);
    story.fire(61, 12, "", Some(11));
    assert!(story.check(120, 0).contains("and the next due time is number 1"));
}

#[test]
fn a_due_time_is_not_counted() {
    let mut story = Story::new();
    story.fire(60, 11, "", None);
    story.fire(190, 12, " 1 earlier due time was skipped.", Some(11));
    assert!(story.check(240, 0).contains("was due 3 times for bob, messages [12] state 2 of them"));
    let mut story = Story::new();
    story.fire(60, 11, "", None);
    assert!(story.check(120, 1).contains("was due 1 times for bob"));
}

#[test]
fn unread_messages_pile_up() {
    let mut story = Story::new();
    story.fire(60, 11, "", None);
    story.fire(120, 12, "", None);
    assert_eq!(story.check(180, 0), "Schedules: message 12 of 9 was sent to bob, and 11 is unread");
}

#[test]
fn a_message_that_failed_is_superseded() {
    let mut story = Story::new();
    story.fire(60, 11, "", None);
    story.log(70, Facts::DeliveryLeased(None), Some(11), "");
    story.log(80, DeliveryReturned { attempt: 1, cause: Nacked }, Some(11), "");
    story.fire(120, 12, " 1 earlier due time was skipped.", Some(11));
    assert_eq!(story.check(180, 0), "Schedules: message 11 failed, and was superseded");
}

#[test]
fn a_schedule_that_is_due_does_not_fire() {
    let mut story = Story::new();
    story.fire(60, 11, "", None);
    story.log(130, Facts::AgentPurged, None, "");
    assert!(story.check(120, 0).contains("is due, and does not fire"));
}
