//! Etags: a change that depends on what its caller has read is carried out only if nothing that is
//! declared has changed since.

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Waker};

use hive_core::agent::{Agent, KickOnStart};

use super::*;
use crate::engine::declared::Declared;
use crate::engine::launch::wanted::Wish;
use crate::engine::operator::etag::Target;
use crate::store::request::RequestKey;
use hive_core::agent::PolicyPart;

/// A change of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    SetPolicy,
    SetParent,
    Stop,
    Start,
    Retire,
    Purge,
}

use Change::{Purge, Retire, SetParent, SetPolicy, Start, Stop};

impl Change {
    /// All changes, in an order in which each changes something.
    const ALL: [Self; 6] = [SetPolicy, SetParent, Stop, Start, Retire, Purge];

    /// Returns the etag that it is compared with.
    fn etag(self, agent: &Agent) -> &str {
        if self == SetPolicy { &agent.policy_etag } else { &agent.etag }
    }
}

fn asks(count: u32) -> Policy {
    Policy { questions_open_max: Some(count), ..Policy::default() }
}

fn bob_as(etag: &str) -> Target {
    Target { name: name("bob"), etag: Some(etag.to_owned()) }
}

impl Hive {
    async fn change(&self, change: Change, etag: &str) -> Result<(), Refusal> {
        let request = self.request("Change");
        self.change_by(request, change, etag).await
    }

    async fn change_by(
        &self,
        request: RequestKey,
        change: Change,
        etag: &str,
    ) -> Result<(), Refusal> {
        let (engine, me, bob) = (self.engine(), caller("operator"), bob_as(etag));
        match change {
            SetPolicy => engine
                .set_policy(me, request, bob, asks(7), PolicyPart::ALL.to_vec())
                .await
                .map(drop),
            SetParent => engine.set_parent(me, request, bob, Some(name("alice"))).await.map(drop),
            Stop => engine.wish(me, request, bob, Wish::Stop).await.map(drop),
            Start => engine.wish(me, request, bob, Wish::Start { on_demand: None }).await.map(drop),
            Retire => engine.retire_agent(me, request, bob).await.map(drop),
            Purge => engine.purge_agent(me, request, bob).await.map(drop),
        }
    }

    async fn etags(&self) -> [String; 2] {
        let agent = self.agent("bob").await;
        [agent.etag, agent.policy_etag]
    }

    /// Applies a file that has bob with this policy and this kick, and alice.
    async fn declare_bob(&self, change: impl FnOnce(&mut Declared)) {
        let plain = Declared {
            parent: None,
            role: String::new(),
            model: String::new(),
            policy: Policy::default(),
            available_models: Vec::new(),
            kick_on_start: KickOnStart::default(),
            on_demand: false,
        };
        let mut bob = plain.clone();
        change(&mut bob);
        let file = BTreeMap::from([(name("alice"), plain), (name("bob"), bob)]);
        self.engine().declare(file).await.expect("the file is applied");
    }
}

#[tokio::test]
async fn a_stale_change_is_refused_with_the_present_etag_and_changes_nothing() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "kept").await;
    for change in Change::ALL {
        let (read, row, events) =
            (hive.agent("bob").await, hive.row("bob").await, hive.events().await);
        let other = if change == SetPolicy { read.etag.as_str() } else { &read.policy_etag };
        for stale in ["0123456789abcdef01234567", "no etag of this broker", other] {
            let refusal = hive.change(change, stale).await.expect_err("it is stale");
            let refused = refusal.on_wire();
            assert_eq!(refused.reason, Reason::EtagMismatch, "{change:?}: {refusal}");
            assert_eq!(refused.metadata["agent"], "bob");
            assert_eq!(refused.metadata["etag"], change.etag(&read), "{change:?}");
            assert!(refusal.to_string().contains(stale), "{refusal}");
        }
        assert_eq!(hive.row("bob").await, row, "{change:?}");
        assert_eq!(hive.events().await, events, "{change:?}");
        assert_eq!(hive.inbox("bob").await.len(), 1, "{change:?}");
        hive.change(change, change.etag(&read)).await.expect("it is the present one");
        if change != Purge {
            assert_ne!(hive.agent("bob").await.etag, read.etag, "{change:?}");
        }
    }
}

#[tokio::test]
async fn a_change_that_would_do_nothing_is_refused_too() {
    let hive = Hive::new(&["bob"]).await;
    let read = hive.etags().await;
    hive.change(Stop, &read[0]).await.expect("it is the present one");
    assert_eq!(reason(hive.change(Stop, &read[0]).await), Reason::EtagMismatch);
}

#[tokio::test]
async fn of_two_changes_of_one_reading_one_is_carried_out() {
    let hive = Hive::new(&["bob"]).await;
    let read = hive.agent("bob").await.policy_etag;
    let set = |count| {
        let parts = vec![PolicyPart::QuestionsOpenMax];
        let request = hive.request("SetPolicy");
        hive.engine().set_policy(caller("operator"), request, bob_as(&read), asks(count), parts)
    };
    let (one, other) = tokio::join!(set(5), set(6));
    assert_eq!(one.is_ok(), other.is_err(), "{one:?}, {other:?}");
    let won = if one.is_ok() { 5 } else { 6 };
    assert_eq!(hive.agent("bob").await.policy.questions_open_max, Some(won));
    assert_eq!(reason(one.and(other)), Reason::EtagMismatch);
}

#[tokio::test]
async fn a_repeated_change_gets_its_first_answer_although_its_etag_is_stale() {
    for change in Change::ALL {
        let hive = Hive::new(&["alice", "bob"]).await;
        if change == Start {
            hive.change(Stop, &hive.etags().await[0]).await.expect("stopped");
        }
        let read = hive.agent("bob").await;
        let request = hive.request("Change");
        let etag = change.etag(&read);
        hive.change_by(request.clone(), change, etag).await.expect("changed");
        let events = hive.events().await;
        match hive.change_by(request, change, etag).await {
            Ok(()) => assert_eq!(hive.events().await, events, "{change:?}"),
            Err(refusal) => panic!("{change:?}: {refusal}"),
        }
    }
}

/// Commits the first step of a purge, whose caller is gone before the second one.
async fn first_step_alone(hive: &Hive, purge: impl Future) {
    let hold = hive.hold().await;
    let mut purge = pin!(purge);
    // The writer is held, or a thread that is interrupted here finds the steps done in this poll.
    assert!(purge.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    hold.release().await.expect("it ends").expect("it commits");
    hive.idle().await;
}

#[tokio::test]
async fn a_repeat_completes_an_interrupted_purge() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for number in 0..3 {
        hive.send("alice", "bob", &number.to_string()).await;
    }
    let read = hive.etags().await;
    let request = hive.request("RetireAgent");
    let purge = hive.engine().purge_agent(caller("operator"), request.clone(), bob_as(&read[0]));
    first_step_alone(&hive, purge).await;
    assert!(hive.agent("bob").await.retired, "the first step retires it");
    assert_eq!(reason(hive.change(Purge, &read[0]).await), Reason::EtagMismatch);
    let other = RequestKey { fingerprint: [9; 16], ..request.clone() };
    assert_eq!(reason(hive.change_by(other, Purge, &read[0]).await), Reason::RequestIdReused);
    let purged = hive
        .engine()
        .purge_agent(caller("operator"), request, bob_as(&read[0]))
        .await
        .expect("it is completed");
    assert_eq!(purged.dropped, 3, "those of the first step, too");
}

#[tokio::test]
async fn an_interrupted_purge_does_not_go_on_with_an_agent_that_was_adopted() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let read = hive.etags().await;
    let request = hive.request("RetireAgent");
    let purge = hive.engine().purge_agent(caller("operator"), request.clone(), bob_as(&read[0]));
    first_step_alone(&hive, purge).await;
    let adopt = Create {
        name: name("bob"),
        parent: None,
        role: "another one".to_owned(),
        model: String::new(),
        policy: Policy::default(),
        adopt: true,
    };
    hive.try_create(adopt).await.expect("adopted");
    assert_eq!(reason(hive.change_by(request, Purge, &read[0]).await), Reason::EtagMismatch);
    assert!(!hive.agent("bob").await.retired);
}

#[tokio::test]
async fn a_later_agent_of_the_name_has_other_etags() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let read = hive.etags().await;
    hive.change(Purge, &read[0]).await.expect("purged");
    hive.create("bob", None, Policy::default()).await;
    let now = hive.etags().await;
    assert!(now.iter().all(|etag| !read.contains(etag)), "{read:?}, {now:?}");
    for change in [SetPolicy, SetParent, Stop, Retire, Purge] {
        let stale = if change == SetPolicy { &read[1] } else { &read[0] };
        assert_eq!(reason(hive.change(change, stale).await), Reason::EtagMismatch, "{change:?}");
    }
}

#[tokio::test]
async fn agents_with_equal_policies_have_different_etags() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (alice, bob) = (hive.agent("alice").await, hive.agent("bob").await);
    assert_eq!(alice.policy, bob.policy);
    assert_ne!(alice.policy_etag, bob.policy_etag);
}

#[tokio::test]
async fn nothing_that_a_harness_or_mail_changes_is_in_it() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let read = hive.etags().await;
    let request = hive.request("SetStatusText");
    let said = hive.engine().set_status_text(actor("bob"), request, "busy".to_owned()).await;
    said.expect("said");
    let harness = hive.attach("bob").await;
    hive.report(&harness, HarnessState::Idle).await.expect("reported");
    hive.send("alice", "bob", "one").await;
    hive.send("alice", "bob", "two").await;
    let run = hive.begin(&harness).await;
    assert_eq!(hive.etags().await, read, "in a turn");
    let sizes = Ended {
        context_tokens: 90_000,
        context_window_tokens: 200_000,
        model: "large".to_owned(),
        ..ended(Outcome::Unavailable)
    };
    hive.try_end(&run, sizes).await.expect("it ends");
    let bob = hive.agent("bob").await;
    assert!(bob.park.is_some() && bob.context_tokens > 0 && bob.ready_count > 0, "{bob:?}");
    assert_eq!([bob.etag, bob.policy_etag], read, "parked");
    hive.create("carol", Some("bob"), Policy::default()).await;
    drop(harness);
    hive.restart().await;
    hive.reboot().await;
    assert_eq!(hive.etags().await, read, "another start of the broker, another boot");
}

#[tokio::test]
async fn each_declared_value_changes_it_and_a_file_read_again_does_not() {
    let hive = Hive::new(&[]).await;
    hive.declare_bob(|_| {}).await;
    let first = hive.etags().await;
    hive.declare_bob(|_| {}).await;
    assert_eq!(hive.etags().await, first, "the same file again");
    let changes: [fn(&mut Declared); 6] = [
        |bob| bob.parent = Some(name("alice")),
        |bob| bob.role = "reviewer".to_owned(),
        |bob| bob.model = "small".to_owned(),
        |bob| bob.available_models = vec!["small".to_owned()],
        |bob| bob.kick_on_start = KickOnStart::Never,
        |bob| bob.on_demand = true,
    ];
    let mut seen = vec![first[0].clone()];
    for change in changes {
        hive.declare_bob(change).await;
        let [agent, policy] = hive.etags().await;
        assert!(!seen.contains(&agent), "{}", seen.len());
        assert_eq!(policy, first[1], "the policy is the same");
        seen.push(agent);
    }
    hive.declare_bob(|bob| bob.policy = asks(3)).await;
    let now = hive.etags().await;
    assert!(now[1] != first[1] && !seen.contains(&now[0]), "the file changed the policy");
    assert_eq!(reason(hive.change(SetPolicy, &first[1]).await), Reason::EtagMismatch);
    hive.declare_bob(|_| {}).await;
    assert_eq!(hive.etags().await, first, "an etag stands for the values, not for their history");
}

#[tokio::test]
async fn a_change_by_an_order_and_a_move_by_a_retirement_change_it() {
    let hive = Hive::new(&["alice"]).await;
    hive.create("bob", Some("alice"), Policy::default()).await;
    let mut seen = vec![hive.etags().await[0].clone()];
    let model = NewCommand::Order(Order::SetModel("large".to_owned()));
    let request = hive.request("SendCommand");
    let sent = hive.engine().create_command(caller("operator"), request, name("bob"), model).await;
    sent.expect("ordered");
    let now = hive.etags().await[0].clone();
    assert!(!seen.contains(&now), "the model");
    seen.push(now);
    hive.retire("alice").await;
    assert!(!seen.contains(&hive.etags().await[0]), "its parent was retired");
}
