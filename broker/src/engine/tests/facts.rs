//! Facts: what programs know about each kind of event without reading its text.
//!
//! The audit of each hive checks that no event of such a kind is without them.

use std::collections::{BTreeMap, BTreeSet};

use hive_core::agent::Source;
use hive_core::agent::{OWN_SCHEDULES, SCHEDULING};
use hive_core::command::Kind as Asked;
use hive_core::delivery::RedeliveryCause;
use hive_core::effect::Effect;
use hive_core::event::{
    AgentChange, AgentChanged, AgentCreated, AgentParked, CallRefused, CommandClosed, CommandGiven,
    DeliveryAcked, DeliveryDead, DeliveryHeld, DeliveryLeased, DeliveryReturned, Event, Facts,
    HarnessAttached, HarnessLoss, HarnessLost, HarnessStateChanged, ReminderSet, ScheduleChange,
    ScheduleChanged, ScheduleCreated, ScheduleEnded, ScheduleFired, Settler, TurnBegun, TurnEnded,
};
use hive_core::id::{CommandId, ScheduleId};
use hive_core::schedule::Edit;

use super::*;
use crate::engine::declared::Declared;
use crate::engine::operator::login::Terminal;
use hive_core::agent::PolicyPart;

/// Longer than every backoff.
const LONG: u64 = 3600;

/// Returns the facts of these events, without those of kinds that have none.
fn facts(events: &[Event]) -> Vec<Facts> {
    events.iter().filter(|event| event.kind().has_facts()).map(|event| event.facts).collect()
}

fn of_message(events: &[Event], message: MessageId) -> Vec<Facts> {
    let of_it = |event: &&Event| event.message_id == Some(message) && event.turn_id.is_none();
    facts(&events.iter().filter(of_it).cloned().collect::<Vec<_>>())
}

/// Runs a delivery to its death and back, and acks one that was never leased.
async fn consumed() -> (Hive, MessageId, MessageId) {
    let limits = Limits { attempts_max: 2, ..Limits::default() };
    let hive = Hive::with_limits(&["alice", "bob"], limits).await;
    let sent = hive.send("alice", "bob", "hello").await;
    for _ in 0..2 {
        let leased = hive.receive("bob", 1).await;
        hive.nack("bob", &leased[0], false).await.expect("nacked");
        hive.pass(LONG);
    }
    hive.decide("bob", sent, Decision::Redrive).await.expect("redriven");
    let leased = hive.receive("bob", 1).await;
    hive.ack("bob", &leased[0]).await.expect("acked");
    let unread = hive.send("alice", "bob", "not needed").await;
    hive.decide("bob", unread, Decision::Ack).await.expect("acked");
    (hive, sent, unread)
}

#[tokio::test]
async fn a_delivery_tells_its_attempts_their_causes_and_who_acked_it() {
    let (hive, sent, unread) = consumed().await;
    let events = hive.events().await;
    let (nacked, redriven) = (RedeliveryCause::Nacked, RedeliveryCause::Redriven);
    let told: Vec<Facts> = vec![
        DeliveryLeased { attempt: 1, cause: None }.into(),
        DeliveryReturned { attempt: 1, cause: nacked }.into(),
        DeliveryLeased { attempt: 2, cause: Some(nacked) }.into(),
        DeliveryDead { attempt: 2, cause: nacked }.into(),
        DeliveryLeased { attempt: 1, cause: Some(redriven) }.into(),
        DeliveryAcked { attempt: 1, settler: Settler::Holder }.into(),
    ];
    assert_eq!(of_message(&events, sent), told);
    let by_operator = DeliveryAcked { attempt: 0, settler: Settler::Operator };
    assert_eq!(of_message(&events, unread), [by_operator.into()]);
}

/// Runs turns with several outcomes in three sessions.
async fn ran() -> (Hive, WallTime) {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    hive.send("alice", "bob", "hello").await;
    hive.turn(&harness, Outcome::Cancelled).await;
    hive.send("alice", "bob", "again").await;
    let until = hive.now().wall.after(Duration::from_secs(LONG));
    let run = hive.begin(&harness).await;
    let limited = Ended { retry_time: Some(until), ..ended(Outcome::RateLimited) };
    hive.try_end(&run, limited).await.expect("it ends");
    hive.pass(2 * LONG);
    hive.turn(&harness, Outcome::AuthFailed).await;
    hive.report(&harness, HarnessState::Idle).await.expect("logged in");
    let mut second = hive.try_attach("bob", "", true).await.expect("it takes over");
    hive.begin(&second).await;
    second.vanish();
    hive.pass_and_sweep(LONG).await;
    (hive, until)
}

#[tokio::test]
async fn turns_and_harnesses_tell_their_epochs_outcomes_and_states() {
    let (hive, until) = ran().await;
    let events = hive.events().await;
    let third_in_a_row = hive.agent("bob").await.park.expect("the third failure parks");
    let begun = |session_epoch| TurnBegun { kind: Kind::Mail, session_epoch }.into();
    let ended = |outcome, session_epoch| TurnEnded { outcome, session_epoch }.into();
    let leased = |attempt, cause| DeliveryLeased { attempt, cause }.into();
    let returned = |attempt, cause| DeliveryReturned { attempt, cause }.into();
    let lost = |session_epoch, loss| HarnessLost { session_epoch, loss }.into();
    let parked = |cause, until_time| AgentParked { cause, until_time }.into();
    use RedeliveryCause::{AuthFailed, HarnessVanished, RateLimited};
    let told: Vec<Facts> = vec![
        HarnessAttached { session_epoch: 1 }.into(),
        begun(1),
        leased(1, None),
        DeliveryHeld { attempt: 1 }.into(),
        ended(Outcome::Cancelled, 1),
        begun(1),
        leased(1, None),
        returned(1, RateLimited),
        ended(Outcome::RateLimited, 1),
        parked(Outcome::RateLimited, Some(until)),
        begun(1),
        leased(1, Some(RateLimited)),
        returned(1, AuthFailed),
        ended(Outcome::AuthFailed, 1),
        parked(Outcome::AuthFailed, None),
        HarnessStateChanged { state: HarnessState::Idle }.into(),
        lost(1, HarnessLoss::TakenOver),
        HarnessAttached { session_epoch: 2 }.into(),
        begun(2),
        leased(1, Some(AuthFailed)),
        returned(1, HarnessVanished),
        ended(Outcome::Vanished, 2),
        parked(Outcome::Vanished, third_in_a_row.until),
        lost(2, HarnessLoss::StayedAway),
    ];
    let of_bob: Vec<Event> = events.into_iter().filter(|event| event.agent == "bob").collect();
    let created = [AgentCreated { source: Source::Runtime }.into()];
    assert_eq!(facts(&of_bob), [&created[..], &told].concat());
}

/// Gives orders, changes agents and policies, and lets an agent be refused.
async fn operated() -> (Hive, CommandId, WallTime) {
    let hive = Hive::new(&["alice", "bob"]).await;
    let engine = hive.engine();
    for model in ["large", "larger"] {
        let declared = Declared {
            parent: None,
            role: String::new(),
            model: model.to_owned(),
            policy: Policy::default(),
            available_models: Vec::new(),
            kick_on_start: hive_core::agent::KickOnStart::default(),
            on_demand: false,
        };
        let file = BTreeMap::from([(name("fay"), declared)]);
        engine.declare(file).await.expect("the file is applied");
    }
    let harness = hive.attach("bob").await;
    let order = NewCommand::Order(Order::SetModel("small".to_owned()));
    let command = engine
        .create_command(caller("operator"), hive.request("SendCommand"), name("bob"), order)
        .await
        .expect("given");
    engine
        .ack_command(caller("bob"), harness.token.clone(), command, "cannot".to_owned())
        .await
        .expect("closed");
    let terminal = Terminal { rows: 24, columns: 80, kind: "xterm".to_owned() };
    let login = engine.begin_login(caller("operator"), name("bob"), terminal).await;
    engine.end_login(login.expect("it opens"), true, "logged in").await;
    engine
        .set_parent(caller("operator"), hive.request("SetParent"), name("bob"), Some(name("alice")))
        .await
        .expect("moved");
    let muted = Policy { tool_groups: vec!["inbox".to_owned()], ..Policy::default() };
    hive.set_policy("alice", muted, &[PolicyPart::ToolGroups]).await.expect("set");
    assert_eq!(reason(hive.try_send("alice", "bob", "x").await), Reason::CapabilityMissing);
    let due = hive.now().wall.after(Duration::from_secs(LONG));
    let request = hive.request("CreateReminder");
    let set = engine.set_reminder(actor("alice"), request, "tea".to_owned(), Due::At(due)).await;
    set.expect("it is set");
    (hive, command, due)
}

#[tokio::test]
async fn commands_changes_refusals_and_reminders_tell_their_values() {
    let (hive, command, due_time) = operated().await;
    let events = hive.events().await;
    let changed = |change| AgentChanged { change }.into();
    let created = |source| AgentCreated { source }.into();
    let told: Vec<Facts> = vec![
        created(Source::Runtime),
        created(Source::Runtime),
        created(Source::File),
        changed(AgentChange::File),
        HarnessAttached { session_epoch: 1 }.into(),
        changed(AgentChange::Model),
        CommandGiven { kind: Asked::SetModel, command_id: Some(command) }.into(),
        CommandClosed { done: false, command_id: Some(command) }.into(),
        CommandGiven { kind: Asked::Login, command_id: None }.into(),
        CommandClosed { done: true, command_id: None }.into(),
        changed(AgentChange::Parent),
        changed(AgentChange::Policy),
        CallRefused { reason: Reason::CapabilityMissing }.into(),
        ReminderSet { due_time }.into(),
    ];
    assert_eq!(facts(&events), told);
}

/// Has a schedule created, changed, paused, resumed, fired and ended.
async fn scheduled() -> (Hive, ScheduleId) {
    let hive = Hive::new(&["bob"]).await;
    let mut policy = Policy::default();
    policy.tool_groups.push(SCHEDULING.to_owned());
    policy.grants.push(OWN_SCHEDULES.to_owned());
    hive.create("alice", None, policy).await;
    let id = hive.scheduled("alice", hive.daily(&["bob"])).await;
    let edit = Edit { body: Some("More.".to_owned()), ..Edit::default() };
    hive.request_effect("alice", Effect::ChangeSchedule { id, edit }).await.expect("granted");
    let engine = hive.engine();
    let operator = || caller("operator");
    engine.pause_schedule(operator(), hive.request("PauseSchedule"), id).await.expect("paused");
    let resumed = engine.resume_schedule(operator(), hive.request("ResumeSchedule"), id).await;
    resumed.expect("resumed");
    hive.pass(24 * 3600);
    hive.sweep_schedules().await;
    let ended = engine.cancel_schedule(actor("alice"), hive.request("CancelSchedule"), id).await;
    ended.expect("ended");
    (hive, id)
}

#[tokio::test]
async fn schedules_tell_their_numbers_and_what_changed() {
    let (hive, schedule_id) = scheduled().await;
    let changed = |change| Facts::from(ScheduleChanged { schedule_id, change });
    let told = [
        ScheduleCreated { schedule_id }.into(),
        changed(ScheduleChange::Edited),
        changed(ScheduleChange::Paused),
        changed(ScheduleChange::Resumed),
        ScheduleFired { schedule_id }.into(),
        ScheduleEnded { schedule_id }.into(),
    ];
    let created = |_| AgentCreated { source: Source::Runtime }.into();
    let created: Vec<Facts> = ["bob", "alice"].map(created).into();
    let mut events = hive.events().await;
    // The approvals are acknowledged, because the grant has decided them.
    events.retain(|event| event.kind() != EventKind::DeliveryAcked);
    assert_eq!(facts(&events), [created, told.into()].concat());
}

#[tokio::test]
async fn every_kind_with_facts_is_in_a_scenario_here() {
    let mut seen = BTreeSet::new();
    for hive in [consumed().await.0, ran().await.0, operated().await.0, scheduled().await.0] {
        seen.extend(hive.events().await.iter().map(|event| format!("{:?}", event.kind())));
    }
    let missing: Vec<&EventKind> = EventKind::ALL
        .iter()
        .filter(|kind| kind.has_facts() && !seen.contains(&format!("{kind:?}")))
        .collect();
    assert_eq!(missing, [] as [&EventKind; 0]);
}
