//! How agents are wanted on their host: who may change that, what a launcher gets and reports, and
//! harnesses that run on demand.

use hive_core::agent::{
    Agent, DEFAULT_TOOL_GROUPS, HarnessReport, LIFECYCLE, MANAGE_SUBTREE, Wanted,
};
use hive_core::event::{Facts, HarnessLoss, HarnessLost};

use super::*;
use crate::engine::launch::listing::Listed;
use crate::engine::launch::report::Report;
use crate::engine::launch::wanted::Wish;
use crate::launches::{Launcher, News};
use crate::store::AgentKey;

const START: Wish = Wish::Start { on_demand: None };
const ON_DEMAND: Wish = Wish::Start { on_demand: Some(true) };
const ALWAYS: Wish = Wish::Start { on_demand: Some(false) };

fn policy(capabilities: &[&str]) -> Policy {
    let groups = DEFAULT_TOOL_GROUPS.into_iter().chain([LIFECYCLE]);
    Policy {
        tool_groups: groups.map(str::to_owned).collect(),
        capabilities: capabilities.iter().map(|&name| name.to_owned()).collect(),
        ..Policy::default()
    }
}

/// `boss` above `kid` above `grandkid`, and `other` beside them.
async fn family(capabilities: &[&str]) -> Hive {
    let hive = Hive::new(&["other"]).await;
    hive.create("boss", None, policy(capabilities)).await;
    hive.create("kid", Some("boss"), Policy::default()).await;
    hive.create("grandkid", Some("kid"), Policy::default()).await;
    hive
}

async fn wish(hive: &Hive, who: &str, about: &str, wish: Wish) -> Result<Agent, Refusal> {
    let request = hive.request("Wish");
    hive.engine().wish_below(actor(who), request, name(about), wish).await
}

async fn order(hive: &Hive, about: &str, wish: Wish) -> Agent {
    let request = hive.request("Wish");
    hive.engine().wish(caller("operator"), request, name(about), wish).await.expect("done")
}

async fn tell(hive: &Hive, about: &str, report: HarnessReport, restart_count: u64, text: &str) {
    let text = text.to_owned();
    let report = Report { name: name(about), report, restart_count, text };
    hive.engine().report_of_launcher(report).await.expect("stored");
}

/// Returns the kinds of the notices of an agent that wait, oldest first.
async fn told(hive: &Hive, who: &str) -> Vec<SystemKind> {
    let notices = hive.notices(who).await;
    let waiting = notices.iter().filter(|notice| notice.state == State::Ready);
    waiting.filter_map(|notice| notice.message.system_kind).collect()
}

async fn leave(hive: &Hive, harness: &Harness) -> Result<bool, Refusal> {
    hive.engine().leave(caller(&harness.agent), harness.token.clone()).await
}

/// Returns what a launcher gets of an agent.
async fn listed(hive: &Hive, launcher: &Launcher, who: &str) -> Listed {
    let keys = vec![hive.row(who).await.key];
    launcher.look_at(&keys);
    let listing = hive.engine().list_wanted(launcher, keys).await.expect("listed");
    listing.listed.into_iter().next().expect("it is active")
}

fn news(launcher: &Launcher) -> Vec<AgentKey> {
    match launcher.take(99) {
        News::Agents(agents) => agents,
        News::Everything => panic!("nothing failed"),
    }
}

#[tokio::test]
async fn an_agent_decides_about_its_children_and_nobody_else() {
    let hive = family(&[]).await;
    assert!(wish(&hive, "boss", "kid", Wish::Stop).await.expect("a child").stopped);
    assert!(!wish(&hive, "boss", "kid", START).await.expect("a child").stopped);
    assert_eq!(wish(&hive, "boss", "kid", Wish::Restart).await.expect("a child").restart_count, 1);
    for about in ["boss", "grandkid", "other"] {
        for any in [Wish::Stop, START, ON_DEMAND, Wish::Restart] {
            assert_eq!(reason(wish(&hive, "boss", about, any).await), Reason::NotYourChild);
        }
    }
    assert_eq!(reason(wish(&hive, "kid", "grandkid", Wish::Stop).await), Reason::CapabilityMissing);
    assert_eq!(reason(wish(&hive, "boss", "nobody", Wish::Stop).await), Reason::AgentNotFound);
    assert_eq!(reason(wish(&hive, "operator", "kid", Wish::Stop).await), Reason::NotAnAgent);
    assert!(!hive.row("grandkid").await.stopped);
}

#[tokio::test]
async fn with_the_capability_it_decides_about_all_below_it_but_not_above() {
    let hive = family(&[MANAGE_SUBTREE]).await;
    assert!(wish(&hive, "boss", "grandkid", Wish::Stop).await.expect("below it").stopped);
    for about in ["boss", "other"] {
        assert_eq!(reason(wish(&hive, "boss", about, Wish::Stop).await), Reason::NotYourChild);
    }
    let update = Policy { ..policy(&[MANAGE_SUBTREE]) };
    hive.create("leaf", Some("grandkid"), update).await;
    for about in ["grandkid", "kid", "boss"] {
        assert_eq!(reason(wish(&hive, "leaf", about, Wish::Stop).await), Reason::NotYourChild);
    }
}

#[tokio::test]
async fn a_wish_counts_as_a_send_and_belongs_to_the_open_turn() {
    let limits = Limits { sends_per_minute_max: 2, ..Limits::default() };
    let hive = Hive::with_limits(&[], limits).await;
    hive.create("boss", None, policy(&[])).await;
    hive.create("kid", Some("boss"), Policy::default()).await;
    for _ in 0..2 {
        wish(&hive, "boss", "kid", Wish::Restart).await.expect("done");
    }
    assert_eq!(reason(wish(&hive, "boss", "kid", Wish::Restart).await), Reason::RateLimited);
    hive.pass(60);
    let harness = hive.attach("boss").await;
    assert_eq!(reason(wish(&hive, "boss", "kid", START).await), Reason::HarnessAttached);
    let run = hive.open(&harness, Kind::Continue).await.expect("it opens");
    let request = hive.request("Wish");
    let kid = name("kid");
    hive.engine().wish_below(run.actor(), request, kid, Wish::Restart).await.expect("in the turn");
    assert_eq!(hive.row("kid").await.restart_count, 3);
}

#[tokio::test]
async fn a_repeated_wish_is_one_and_a_stopped_agent_is_not_restarted() {
    let mut hive = family(&[]).await;
    let request = hive.request("Wish");
    for _ in 0..2 {
        let (kid, request) = (name("kid"), request.clone());
        hive.engine().wish_below(actor("boss"), request, kid, Wish::Restart).await.expect("done");
        hive.crash().await;
    }
    assert_eq!(hive.row("kid").await.restart_count, 1);
    order(&hive, "kid", ON_DEMAND).await;
    wish(&hive, "boss", "kid", Wish::Stop).await.expect("done");
    assert_eq!(reason(wish(&hive, "boss", "kid", Wish::Restart).await), Reason::AgentStopped);
    let started = wish(&hive, "boss", "kid", START).await.expect("done");
    assert!(started.on_demand, "a stop keeps how it runs");
    assert!(!order(&hive, "kid", ALWAYS).await.on_demand);
    hive.retire("kid").await;
    assert_eq!(reason(wish(&hive, "boss", "kid", START).await), Reason::AgentRetired);
}

#[tokio::test]
async fn the_parent_hears_once_what_became_of_a_harness() {
    let hive = family(&[]).await;
    tell(&hive, "kid", HarnessReport::Started, 0, "").await;
    assert_eq!(told(&hive, "boss").await, [], "the first start is no news");
    tell(&hive, "kid", HarnessReport::Stopped, 0, "").await;
    assert_eq!(told(&hive, "boss").await, [], "it is not stopped");
    wish(&hive, "boss", "kid", Wish::Stop).await.expect("done");
    for _ in 0..2 {
        tell(&hive, "kid", HarnessReport::Stopped, 0, "").await;
    }
    wish(&hive, "boss", "kid", START).await.expect("done");
    for _ in 0..2 {
        tell(&hive, "kid", HarnessReport::Started, 0, "").await;
    }
    assert_eq!(told(&hive, "boss").await, [SystemKind::Stopped, SystemKind::Started]);
    wish(&hive, "boss", "kid", Wish::Restart).await.expect("done");
    tell(&hive, "kid", HarnessReport::Started, 9, "").await;
    let told = told(&hive, "boss").await;
    assert_eq!(told, [SystemKind::Stopped, SystemKind::Started], "the newer one has replaced it");
    let body = hive.notices("boss").await.pop().expect("a notice").message.body;
    assert_eq!(body, "kid was restarted.");
    assert_eq!(hive.row("kid").await.restarts_told, 1, "no more than were requested");
}

#[tokio::test]
async fn a_crash_loop_is_one_notice_until_the_harness_has_run_for_a_minute() {
    let hive = family(&[]).await;
    tell(&hive, "kid", HarnessReport::Steady, 0, "").await;
    for round in 0..3 {
        tell(&hive, "kid", HarnessReport::Crashed, 0, "exit 1\nask: \u{1b}[2Jdo it\n").await;
        tell(&hive, "kid", HarnessReport::Started, 0, "").await;
        assert_eq!(hive.count_events(EventKind::HarnessCrashed).await, round + 1);
    }
    assert_eq!(told(&hive, "boss").await, [SystemKind::Crashed]);
    let body = hive.notices("boss").await.pop().expect("a notice").message.body;
    assert!(body.ends_with("\n\n> exit 1\n> ask: \\u{1b}[2Jdo it"), "{body}");
    for _ in 0..2 {
        tell(&hive, "kid", HarnessReport::Steady, 0, "").await;
    }
    assert_eq!(told(&hive, "boss").await, [SystemKind::Crashed, SystemKind::Recovered]);
    let text = format!("exit {}\n{}\nthe end", "1".repeat(300), "x".repeat(20_000));
    tell(&hive, "boss", HarnessReport::Crashed, 0, &text).await;
    let notice = hive.notices("operator").await.pop().expect("the operator hears of a root");
    assert_eq!(notice.message.system_kind, Some(SystemKind::Crashed));
    let body = notice.message.body;
    assert!(body.len() < 9_000 && body.contains("\n> exit 11") && body.ends_with("\n> the end"));
    let events = hive.events().await;
    let crash = events.iter().rfind(|event| event.kind() == EventKind::HarnessCrashed);
    assert_eq!(crash.expect("it is logged").detail.len(), 256);
}

#[tokio::test]
async fn the_parent_hears_of_a_login_and_of_the_end_of_a_park() {
    let hive = family(&[]).await;
    let kid = hive.attach("kid").await;
    hive.report(&kid, HarnessState::NeedsLogin).await.expect("stored");
    assert_eq!(told(&hive, "boss").await, [], "the operator logs in");
    hive.report(&kid, HarnessState::Idle).await.expect("stored");
    assert_eq!(told(&hive, "boss").await, [SystemKind::LoggedIn]);
    hive.send("other", "kid", "hello").await;
    hive.turn(&kid, Outcome::Unavailable).await;
    hive.pass(1_000);
    hive.turn(&kid, Outcome::Ok).await;
    assert_eq!(told(&hive, "boss").await, [SystemKind::LoggedIn, SystemKind::Recovered]);
}

#[tokio::test]
async fn a_harness_leaves_only_without_work() {
    let hive = family(&[]).await;
    let kid = hive.attach("kid").await;
    assert!(!leave(&hive, &kid).await.expect("answered"), "it is to run always");
    order(&hive, "kid", ON_DEMAND).await;
    hive.send("other", "kid", "hello").await;
    assert!(!leave(&hive, &kid).await.expect("answered"), "there is mail");
    let run = hive.begin(&kid).await;
    assert!(!leave(&hive, &kid).await.expect("answered"), "a turn is open");
    hive.end(&run, Outcome::Ok).await;
    let restart = NewCommand::Order(Order::StartNewSession);
    let ordered = hive.engine().create_command(
        caller("operator"),
        hive.request("Tell"),
        name("kid"),
        restart,
    );
    let command = ordered.await.expect("given");
    assert!(!leave(&hive, &kid).await.expect("answered"), "a command is open");
    let ack = hive.engine().ack_command(caller("kid"), kid.token.clone(), command, String::new());
    ack.await.expect("closed");
    hive.report(&kid, HarnessState::NeedsLogin).await.expect("stored");
    assert!(!leave(&hive, &kid).await.expect("answered"), "it waits for a login");
    hive.report(&kid, HarnessState::Idle).await.expect("stored");
    order(&hive, "kid", Wish::Stop).await;
    assert!(!leave(&hive, &kid).await.expect("answered"), "a launcher ends it");
    order(&hive, "kid", START).await;
    let waiting = hive.begin_waits(&kid).await;
    assert!(leave(&hive, &kid).await.expect("answered"));
    assert_eq!(reason(done(waiting).await), Reason::SessionLost);
    assert_eq!(reason(leave(&hive, &kid).await), Reason::SessionLost);
    assert!(kid.attachment().ended().is_cancelled());
    let left = |facts| {
        matches!(facts, Facts::HarnessLost(Some(HarnessLost { loss: HarnessLoss::Left, .. })))
    };
    assert_eq!(hive.events().await.into_iter().filter(|event| left(event.facts)).count(), 1);
    assert_eq!(hive.agent("kid").await.state, HarnessState::Offline);
}

#[tokio::test]
async fn a_parked_harness_may_leave_and_the_end_of_the_park_starts_it() {
    let hive = family(&[]).await;
    order(&hive, "kid", ON_DEMAND).await;
    let launcher = hive.engine().attach_launcher().expect("there is none");
    hive.send("other", "kid", "hello").await;
    assert!(listed(&hive, &launcher, "kid").await.start_now);
    let kid = hive.attach("kid").await;
    hive.turn(&kid, Outcome::RateLimited).await;
    assert!(leave(&hive, &kid).await.expect("answered"), "its mail waits for the end of the park");
    let parked = listed(&hive, &launcher, "kid").await;
    assert!(!parked.start_now, "a parked agent is not started");
    let due = parked.look_again.expect("the park has an end");
    assert!(due > hive.now().boot);
    hive.pass(1_000);
    assert!(due <= hive.now().boot);
    assert!(listed(&hive, &launcher, "kid").await.start_now);
}

#[tokio::test]
async fn a_launcher_hears_of_mail_only_for_agents_without_a_harness_on_demand() {
    let hive = family(&[]).await;
    let launcher = hive.engine().attach_launcher().expect("there is none");
    assert!(hive.engine().attach_launcher().is_none());
    let key = hive.row("kid").await.key;
    order(&hive, "kid", ON_DEMAND).await;
    assert_eq!(news(&launcher), [key]);
    let expected = Listed {
        key,
        name: "kid".to_owned(),
        wanted: Wanted::OnDemand,
        restart_count: 0,
        start_now: false,
        look_again: None,
    };
    assert_eq!(listed(&hive, &launcher, "kid").await, expected);
    hive.send("other", "grandkid", "hello").await;
    assert_eq!(news(&launcher), [], "it always runs");
    hive.send("other", "kid", "hello").await;
    assert_eq!(news(&launcher), [key]);
    assert_eq!(
        listed(&hive, &launcher, "kid").await,
        Listed { start_now: true, ..expected.clone() }
    );
    let kid = hive.attach("kid").await;
    assert_eq!(news(&launcher), [key]);
    assert_eq!(listed(&hive, &launcher, "kid").await, expected);
    hive.send("other", "kid", "more").await;
    assert_eq!(news(&launcher), [], "its harness takes it");
    hive.turn(&kid, Outcome::Ok).await;
    hive.turn(&kid, Outcome::Ok).await;
    drop(kid);
    hive.sweep().await;
    assert_eq!(news(&launcher), [key], "the harness is away");
    assert_eq!(listed(&hive, &launcher, "kid").await, expected);
    hive.retire("kid").await;
    assert!(news(&launcher).contains(&key));
    let listing = hive.engine().list_wanted(&launcher, vec![key]).await.expect("listed");
    assert_eq!((listing.listed, listing.gone), (vec![], vec![(key, "kid".to_owned())]));
}

#[tokio::test]
async fn mail_that_comes_while_a_harness_leaves_starts_another_one() {
    let hive = family(&[]).await;
    order(&hive, "kid", ON_DEMAND).await;
    let launcher = hive.engine().attach_launcher().expect("there is none");
    for round in 0..200 {
        let kid = hive.attach("kid").await;
        news(&launcher);
        listed(&hive, &launcher, "kid").await;
        let (left, _) =
            tokio::join!(leave(&hive, &kid), hive.send("other", "kid", "is anyone there?"));
        if left.expect("answered") {
            let key = hive.row("kid").await.key;
            assert_eq!(news(&launcher), [key], "round {round}");
            assert!(listed(&hive, &launcher, "kid").await.start_now, "round {round}");
            let kid = hive.attach("kid").await;
            hive.turn(&kid, Outcome::Ok).await;
        } else {
            hive.turn(&kid, Outcome::Ok).await;
        }
    }
}
