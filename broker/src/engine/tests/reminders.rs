//! Reminders: each fires exactly once, also when the broker was down at its time or the clock
//! jumped.

use hive_core::delivery::State as DeliveryState;
use hive_core::id::ReminderId;
use hive_core::message::Message;
use hive_core::reminder::{Reminder, State};

use super::*;
use crate::clock::Clock as _;

fn after(seconds: u64) -> Due {
    Due::In(Duration::from_secs(seconds))
}

impl Hive {
    async fn remind(&self, who: Actor, body: &str, due: Due) -> Result<(Reminder, bool), Refusal> {
        self.engine().set_reminder(who, self.request("CreateReminder"), body.to_owned(), due).await
    }

    async fn reminded(&self, agent: &str, body: &str, due: Due) -> ReminderId {
        self.remind(actor(agent), body, due).await.expect("it is set").0.id
    }

    async fn reminders(&self, agent: &str) -> Vec<Reminder> {
        let states = vec![State::Pending, State::Fired, State::Cancelled];
        let listed = self
            .engine()
            .list_reminders(caller("operator"), agent.to_owned(), states, None, 500)
            .await;
        listed.expect("reminders are listed").0
    }

    async fn fire(&self) {
        self.engine().sweep_reminders().await.expect("swept");
    }

    /// The messages that reminders became.
    async fn fired(&self, agent: &str) -> Vec<Message> {
        let mut inbox = self.inbox(agent).await;
        inbox.retain(|delivery| delivery.message.system_kind == Some(SystemKind::Reminder));
        inbox.into_iter().map(|delivery| delivery.message).collect()
    }
}

#[tokio::test]
async fn a_reminder_fires_at_its_time_and_once() {
    let hive = Hive::new(&["alice"]).await;
    let id = hive.reminded("alice", "water the plants", after(60)).await;
    hive.pass(59);
    let next = hive.engine().sweep_reminders().await.expect("swept");
    assert_eq!(next, Some(hive.clock.now().wall.after(Duration::from_secs(1))));
    assert!(hive.fired("alice").await.is_empty());
    hive.pass(1);
    hive.fire().await;
    hive.fire().await;
    let fired = hive.fired("alice").await;
    assert_eq!(fired.len(), 1);
    assert_eq!(fired[0].reminder_id, Some(id));
    assert!(fired[0].body.ends_with(":\n\nwater the plants"), "{}", fired[0].body);
    let reminder = hive.reminders("alice").await.remove(0);
    assert_eq!((reminder.state, reminder.message_id), (State::Fired, Some(fired[0].id)));
    assert_eq!(hive.count_events(EventKind::ReminderFired).await, 1);
}

#[tokio::test]
async fn it_fires_once_across_kills_at_any_point() {
    let mut hive = Hive::new(&["alice"]).await;
    hive.reminded("alice", "one", after(60)).await;
    hive.crash().await;
    hive.pass(3600);
    hive.crash().await;
    hive.fire().await;
    hive.crash().await;
    hive.fire().await;
    let fired = hive.fired("alice").await;
    assert_eq!(fired.len(), 1);
    assert!(
        fired[0].body.contains(" for "),
        "one that is late says when it was due: {}",
        fired[0].body
    );
}

#[tokio::test]
async fn a_clock_that_jumps_neither_loses_nor_doubles_one() {
    let hive = Hive::new(&["alice"]).await;
    let start = hive.clock.now().wall;
    hive.reminded("alice", "one", after(600)).await;
    hive.reminded("alice", "two", Due::At(start.after(Duration::from_secs(1200)))).await;
    hive.clock.set_wall(start.before(Duration::from_secs(86_400)));
    hive.fire().await;
    assert!(hive.fired("alice").await.is_empty(), "set back: not due");
    hive.clock.set_wall(start.after(Duration::from_secs(601)));
    hive.fire().await;
    assert_eq!(hive.fired("alice").await.len(), 1);
    hive.clock.set_wall(start);
    hive.fire().await;
    assert_eq!(hive.fired("alice").await.len(), 1, "what fired stays fired");
    hive.clock.set_wall(start.after(Duration::from_secs(86_400)));
    hive.fire().await;
    assert_eq!(hive.fired("alice").await.len(), 2);
}

#[tokio::test]
async fn a_withdrawn_reminder_never_fires() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let id = hive.reminded("alice", "one", after(60)).await;
    let cancel = |who: &'static str, id| {
        hive.engine().cancel_reminder(actor(who), hive.request("CancelReminder"), id)
    };
    assert_eq!(reason(cancel("bob", id).await), Reason::ReminderNotFound);
    assert_eq!(cancel("alice", id).await.expect("withdrawn").state, State::Cancelled);
    assert_eq!(reason(cancel("alice", id).await), Reason::WrongState);
    hive.pass(60);
    hive.fire().await;
    assert!(hive.fired("alice").await.is_empty());
    let other = hive.reminded("alice", "two", after(60)).await;
    cancel("operator", other).await.expect("the operator may");
    let fired = hive.reminded("alice", "three", after(60)).await;
    hive.pass(60);
    hive.fire().await;
    let late = cancel("alice", fired).await.expect_err("too late");
    assert_eq!(late.to_string(), format!("reminder {fired} is fired already"));
    assert_eq!(
        reason(cancel("alice", ReminderId::new(99_999).expect("not 0")).await),
        Reason::ReminderNotFound
    );
}

#[tokio::test]
async fn limits_hold_and_their_errors_say_what_to_do() {
    let limits = Limits { reminders_pending_max: 2, ..Limits::default() };
    let hive = Hive::with_limits(&["alice"], limits).await;
    let now = hive.clock.now().wall;
    for (due, field) in [
        (after(0), "delay"),
        (after(3661 * 86_400), "delay"),
        (Due::At(now.before(Duration::from_secs(1))), "due_time"),
        (Due::At(now.after(Duration::from_secs(3661 * 86_400))), "due_time"),
    ] {
        let refusal = hive.remind(actor("alice"), "x", due).await.expect_err("out of bounds");
        assert!(refusal.to_string().starts_with(field), "{refusal}");
    }
    assert_eq!(reason(hive.remind(actor("alice"), "", after(1)).await), Reason::FieldInvalid);
    assert_eq!(
        reason(hive.remind(actor("alice"), &"x".repeat(33_000), after(1)).await),
        Reason::BodyTooLarge
    );
    assert_eq!(reason(hive.remind(actor("operator"), "x", after(1)).await), Reason::NotAnAgent);
    hive.reminded("alice", "one", Due::At(now)).await;
    hive.reminded("alice", "two", after(60)).await;
    assert_eq!(
        reason(hive.remind(actor("alice"), "three", after(60)).await),
        Reason::ReminderLimit
    );
    hive.fire().await;
    hive.reminded("alice", "three", after(60)).await;
}

#[tokio::test]
async fn a_long_one_comes_as_a_file_and_the_message_names_it() {
    let hive = Hive::new(&["alice"]).await;
    let state_dir = hive.path().with_file_name("agents").join("alice");
    std::fs::create_dir_all(&state_dir).expect("a state directory");
    let body = format!("BEGIN {} END", "x".repeat(5000));
    let id = hive.reminded("alice", &body, after(60)).await;
    let short = hive.reminded("alice", &"y".repeat(4096), after(60)).await;
    hive.pass(60);
    hive.fire().await;
    let fired = hive.fired("alice").await;
    let long = fired.iter().find(|message| message.reminder_id == Some(id)).expect("fired");
    assert!(
        long.body.contains(&format!("`reminders/{id}.md`")) && long.body.contains("BEGIN"),
        "{}",
        long.body
    );
    assert!(long.body.len() < 1000);
    assert_eq!(
        std::fs::read_to_string(state_dir.join(format!("reminders/{id}.md"))).expect("a file"),
        body
    );
    let inline = fired.iter().find(|message| message.reminder_id == Some(short)).expect("fired");
    assert!(inline.body.ends_with(&"y".repeat(4096)));
}

#[tokio::test]
async fn nothing_is_lost_if_no_file_can_be_written() {
    let hive = Hive::new(&["alice", "carol"]).await;
    let state_dir = hive.path().with_file_name("agents").join("alice");
    std::fs::create_dir_all(&state_dir).expect("a state directory");
    std::os::unix::fs::symlink("/", state_dir.join("reminders")).expect("a hostile link");
    let body = "x".repeat(5000);
    for agent in ["alice", "carol"] {
        hive.reminded(agent, &body, after(60)).await;
    }
    hive.pass(60);
    hive.fire().await;
    for agent in ["alice", "carol"] {
        let fired = hive.fired(agent).await;
        assert!(fired[0].body.ends_with(&body), "{agent}");
    }
}

#[tokio::test]
async fn a_re_run_turn_sets_a_reminder_once() {
    let (hive, harness, run) = in_mid_turn().await;
    let (first, _) = hive.remind(run.actor(), "do it", after(86_400)).await.expect("set");
    hive.end(&run, Outcome::Failed).await;
    hive.pass(3600);
    let run = hive.begin(&harness).await;
    let listed: Vec<ReminderId> =
        run.begun().already_reminded.iter().map(|reminder| reminder.id).collect();
    assert_eq!(listed, [first.id]);
    let (other, already) = hive.remind(run.actor(), "do it", after(60)).await.expect("set");
    assert!(!already && other.id != first.id, "another delay is another reminder");
    let (second, already) = hive.remind(run.actor(), "do it", after(86_400)).await.expect("set");
    assert_eq!((second.id, already, second.due_time), (first.id, true, first.due_time));
    hive.end(&run, Outcome::Ok).await;
}

#[tokio::test]
async fn an_agent_lists_its_own_and_the_operator_all() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.reminded("alice", "one", after(60)).await;
    hive.reminded("bob", "two", after(60)).await;
    let list = |who: &'static str, of: &str| {
        hive.engine().list_reminders(caller(who), of.to_owned(), Vec::new(), None, 50)
    };
    assert_eq!(list("alice", "").await.expect("listed").0.len(), 1);
    assert_eq!(reason(list("alice", "bob").await), Reason::NotYours);
    assert_eq!(list("operator", "").await.expect("listed").0.len(), 2);
    let (page, more) = hive
        .engine()
        .list_reminders(caller("operator"), String::new(), Vec::new(), None, 1)
        .await
        .expect("listed");
    let (next, end) = hive
        .engine()
        .list_reminders(caller("operator"), String::new(), Vec::new(), Some(page[0].id), 1)
        .await
        .expect("listed");
    assert!(more && !end && next[0].body == "two");
}

#[tokio::test]
async fn a_retired_agent_is_reminded_of_nothing() {
    let hive = Hive::new(&["alice"]).await;
    hive.reminded("alice", "one", after(60)).await;
    hive.retire("alice").await;
    hive.pass(60);
    hive.fire().await;
    assert_eq!(hive.reminders("alice").await[0].state, State::Cancelled);
    assert!(
        hive.inbox("alice").await.iter().all(|delivery| delivery.state != DeliveryState::Ready)
    );
}

#[tokio::test]
async fn a_reminder_seen_by_two_sweeps_fires_once() {
    let hive = Hive::new(&["alice"]).await;
    hive.reminded("alice", "one", after(60)).await;
    hive.pass(60);
    // Both sweeps read the due reminder before either can write.
    let hold = hive.hold().await;
    let sweep = || {
        let engine = Arc::clone(hive.engine());
        async move { engine.sweep_reminders().await.expect("swept") }
    };
    let release = async {
        // This runs after the reads of both sweeps, which were queued on the same threads before.
        tokio::task::spawn_blocking(|| ()).await.expect("a thread");
        done(hold.release()).await.expect("the writer goes on");
    };
    tokio::join!(sweep(), sweep(), release);
    assert_eq!(hive.fired("alice").await.len(), 1);
    assert_eq!(hive.count_events(EventKind::ReminderFired).await, 1);
}
