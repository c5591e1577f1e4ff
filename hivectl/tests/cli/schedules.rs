//! `hivectl schedules`: what agents have sent again and again, and what the operator does with it.

use hive_proto::v1::effect::Effect as Asked;
use hive_proto::v1::schedule_service_client::ScheduleServiceClient;
use hive_proto::v1::*;
use hive_tests::rig::{Client, request};
use prost_types::Duration;

use super::complete::fish;
use super::hive::Hive;
use super::play::Player;
use super::run::assert_contains;

const TRIO: &str = r#"
[hive]
name = "trio"
[broker.limits]
harness_grace_ms = 864000000
[agents.ada]
tool_groups = ["messaging", "inbox", "scheduling"]
[agents.bob]
tool_groups = ["messaging", "inbox", "scheduling"]
[agents.cy]
"#;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The schedules of [`Hive::scheduled`]: a daily one, one that is due once, one that is paused, and
/// one that has ended.
const DAILY: &str = "3";
const ONCE: &str = "7";
const PAUSED: &str = "11";
const ENDED: &str = "15";

/// Commands that change nothing.
pub(crate) const LOOKS: [&[&str]; 9] = [
    &["schedules"],
    &["schedules", "--all"],
    &["schedules", "--agent", "ada"],
    &["schedules", "--state", "paused", "--state", "ended"],
    &["schedules", "list", "--agent", "bob"],
    &["schedules", "show", DAILY],
    &["schedules", "show", PAUSED],
    &["schedules", "show", ENDED],
    &["events", "--agent", "ada", "--last", "20"],
];

/// Commands that change something, in an order in which each can be carried out.
pub(crate) const CHANGES: [&[&str]; 8] = [
    &["schedules", "fire", DAILY],
    &["schedules", "pause", DAILY, ONCE],
    &["schedules", "pause", DAILY],
    &["schedules", "resume", DAILY, PAUSED],
    &["schedules", "fire", PAUSED],
    &["schedules", "resume", ONCE],
    &["schedules", "fire", ONCE],
    &["schedules", "cancel", DAILY, PAUSED],
];

impl Hive {
    /// Schedules of ada and bob. The daily one has fired once, and cy reads its message.
    pub(crate) async fn scheduled() -> Self {
        let mut hive = Self::new(TRIO);
        let daily = CreateScheduleEffect {
            body: "Report.\nBriefly.".to_owned(),
            targets: request::texts(&["bob", "cy"]),
            first_time: Some(hive.due(HOUR)),
            interval: seconds(DAY),
            zone: "Europe/Berlin".to_owned(),
            late_max: seconds(HOUR + 1800),
        };
        assert_eq!(hive.schedule("ada", daily.clone()).await, DAILY);
        let once = CreateScheduleEffect {
            body: "Renew the certificate.".to_owned(),
            targets: request::texts(&["ada"]),
            first_time: Some(hive.due(40 * DAY)),
            ..CreateScheduleEffect::default()
        };
        assert_eq!(hive.schedule("ada", once.clone()).await, ONCE);
        let weekly = CreateScheduleEffect {
            body: "Clean up.".to_owned(),
            targets: request::texts(&["ada", "bob", "cy"]),
            interval: seconds(7 * DAY),
            ..once.clone()
        };
        assert_eq!(hive.schedule("bob", weekly).await, PAUSED);
        hive.operate(&["schedules", "pause", PAUSED]).await;
        assert_eq!(hive.schedule("ada", once).await, ENDED);
        hive.operate(&["schedules", "cancel", ENDED]).await;
        hive.pass((HOUR * 1000).unsigned_abs());
        let fired =
            |schedule: &Schedule| schedule.targets.iter().all(|target| target.message_id != 0);
        while !schedules(&hive.operator().await).await.first().is_some_and(fired) {
            tokio::task::yield_now().await;
        }
        // Its session outlives this connection.
        Player::attach(&hive, "cy").await.begin().await;
        // Each list has several pages.
        hive.edit_request("ListSchedules", |list: &mut ListSchedulesRequest| list.page_size = 1);
        hive
    }

    /// An agent asks for a schedule, and the operator approves it; its id.
    async fn schedule(&mut self, agent: &str, asked: CreateScheduleEffect) -> String {
        let effect = Some(Effect { effect: Some(Asked::CreateSchedule(asked)) });
        let ask = AskQuestionRequest { effect, ..request::ask("operator", "May I?") };
        let question_id = self.client(agent).await.question_of(ask).await;
        let operator = self.operator().await;
        let question = operator.question(question_id).await;
        let digest = question.approval.expect("an approval").diff_digest;
        let answer = ["answer", &question_id.to_string(), "--choice", "approve", "--diff", &digest];
        self.operate(&answer).await;
        self.user = operator.question(question_id).await.closed_by;
        let newest = schedules(&operator).await.pop();
        newest.expect("it is created").id.to_string()
    }
}

fn seconds(seconds: i64) -> Option<Duration> {
    Some(Duration { seconds, nanos: 0 })
}

/// The schedules that have not ended, by id.
async fn schedules(operator: &Client) -> Vec<Schedule> {
    let mut schedules = ScheduleServiceClient::new(operator.channel());
    let listed = schedules.list_schedules(ListSchedulesRequest::default()).await;
    listed.expect("they are listed").into_inner().schedules
}

async fn transcript(hive: &Hive, commands: &[&[&str]], more: &[&str]) -> String {
    let mut output = String::new();
    for args in commands {
        let args = [args, more].concat();
        let ran = hive.run(&args).await;
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        output.push_str(&format!("$ {}\n{}{}", args.join(" "), ran.out, ran.err));
    }
    hive.masked(&output)
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_shown() {
    let hive = Hive::scheduled().await;
    let shown =
        [transcript(&hive, &LOOKS, &[]).await, transcript(&hive, &LOOKS, &["--json"]).await];
    insta::assert_snapshot!(shown.concat());
    assert!(hive.changes().is_empty(), "who looks changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_says_what_the_schedule_is_now() {
    let mut output = String::new();
    for more in [&[][..], &["--json"]] {
        output.push_str(&transcript(&Hive::scheduled().await, &CHANGES, more).await);
    }
    insta::assert_snapshot!(output);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_an_ended_schedule_is_a_conflict_and_what_was_done_before_is_shown() {
    let hive = Hive::scheduled().await;
    let mut output = String::new();
    for args in [
        &["schedules", "pause", ONCE, ENDED, DAILY][..],
        &["schedules", "resume", ENDED],
        &["schedules", "cancel", ENDED],
        &["schedules", "fire", PAUSED],
        &["schedules", "show", "8"],
        &["schedules", "show", "999"],
        &["schedules", "fire", "999"],
        &["schedules", "--agent", "dy"],
    ] {
        output.push_str(&hive.output(&hive.run(args).await));
    }
    insta::assert_snapshot!(output);
    let daily = hive.run(&["schedules", "show", DAILY]).await;
    assert_contains(&daily.out, "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_schedules_are_offered_where_the_change_can_be_made() {
    let hive = Hive::scheduled().await;
    let mut output = String::new();
    for line in [
        "schedules show ",
        "schedules pause ",
        "schedules pause 3 ",
        "schedules resume ",
        "schedules cancel ",
        "schedules fire ",
        "schedules --agent a",
        "schedules --state ",
    ] {
        let offered = fish(&hive.socket(), line).await;
        output.push_str(&format!("$ hivectl {line}\n"));
        // Options are offered beside them.
        for line in offered.lines().filter(|line| !line.starts_with("--")) {
            output.push_str(&format!("{line}\n"));
        }
    }
    insta::assert_snapshot!(output);
}
