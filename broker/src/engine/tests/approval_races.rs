//! The race table of approvals: the operator twice, the asker, the deadline, the retirement of the
//! asker and changes of what the effect is about come in any order, and the broker dies at any
//! point in between. There is one outcome, and the effect is applied with it or not at all.

use hive_core::agent::PolicyPart;
use hive_core::effect::{APPROVE, DENY};
use hive_core::id::QuestionId;
use hive_core::question::State;
use proptest::prelude::*;

use super::approvals::{asking, chosen, groups_of};
use super::questions::plain;
use super::*;

const TTL: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// An operator reads the question.
    Look,
    /// Approves what was read last.
    Approve,
    Deny,
    Withdraw,
    /// Time passes, and what is due is swept.
    Pass(u64),
    Crash,
    /// The asker is retired.
    RetireAsker,
    /// The operator changes what the effect would change; each time to another value.
    Change,
    /// The operator retires what the effect would change, which makes it impossible.
    RetireTarget,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Look),
        4 => Just(Step::Approve),
        1 => Just(Step::Deny),
        1 => Just(Step::Withdraw),
        1 => (1..80_u64).prop_map(Step::Pass),
        2 => Just(Step::Crash),
        1 => Just(Step::RetireAsker),
        2 => Just(Step::Change),
        1 => Just(Step::RetireTarget),
    ]
}

/// The groups of bob at first, then alternately, and those that the effect asks for.
const GROUPS: [&[&str]; 2] = [&["messaging"], &["messaging", "inbox"]];
const WANTED: &[&str] = &["meta"];

struct World {
    hive: Hive,
    id: QuestionId,
    state: State,
    /// The choice of the answer.
    choice: Option<&'static str>,
    age: u64,
    /// What was read last, and whether it is what bob has now.
    seen: Option<(String, bool)>,
    groups: Vec<String>,
    changes: usize,
    asker_retired: bool,
    target_retired: bool,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl World {
    async fn new() -> Self {
        let hive = Hive::new(&[]).await;
        hive.create("alice", None, asking()).await;
        let groups = words(GROUPS[0]);
        let policy = Policy { tool_groups: groups.clone(), ..Policy::default() };
        hive.create("bob", Some("alice"), policy).await;
        let ask = Ask {
            effect: Some(groups_of("bob", WANTED)),
            ttl: Some(Duration::from_secs(TTL)),
            ..plain("operator", "may it?")
        };
        let id = hive.asked("alice", ask).await;
        Self {
            hive,
            id,
            state: State::Open,
            choice: None,
            age: 0,
            seen: None,
            groups,
            changes: 0,
            asker_retired: false,
            target_retired: false,
        }
    }

    fn close(&mut self, state: State) -> bool {
        if self.state != State::Open {
            return false;
        }
        self.state = state;
        true
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Look => {
                let approval = self.hive.approval(self.id).await;
                assert_eq!(
                    approval.problem.is_empty(),
                    self.state != State::Open || !self.target_retired
                );
                if !approval.diff_digest.is_empty() {
                    self.seen = Some((approval.diff_digest, true));
                }
            }
            Step::Approve => {
                let Some((digest, fresh)) = self.seen.clone() else { return };
                let given = self.hive.decide_on(self.id, chosen(APPROVE, &digest)).await;
                let expected = match () {
                    () if self.state != State::Open => Some(Reason::QuestionClosed),
                    () if self.target_retired => Some(Reason::AgentRetired),
                    () if !fresh => Some(Reason::DiffChanged),
                    () => None,
                };
                assert_eq!(given.as_ref().err().map(Refusal::reason), expected, "{given:?}");
                if expected.is_none() {
                    self.close(State::Answered);
                    self.choice = Some(APPROVE);
                    self.groups = words(WANTED);
                }
            }
            Step::Deny => {
                let given = self.hive.decide_on(self.id, chosen(DENY, "")).await;
                let wins = self.close(State::Answered);
                assert_eq!(given.is_ok(), wins);
                if wins {
                    self.choice = Some(DENY);
                }
            }
            Step::Withdraw => {
                let given = self.hive.withdraw("alice", self.id).await;
                if self.asker_retired {
                    assert_eq!(reason(given), Reason::AgentRetired);
                } else {
                    assert_eq!(given.is_ok(), self.close(State::Cancelled));
                }
            }
            Step::Pass(seconds) => {
                self.hive.pass(seconds);
                self.age += seconds;
                self.hive.engine().sweep_questions().await.expect("swept");
                if self.age >= TTL {
                    self.close(State::Expired);
                }
            }
            Step::Crash => self.hive.crash().await,
            Step::RetireAsker if self.asker_retired => {}
            Step::RetireAsker => {
                self.hive.retire("alice").await;
                self.asker_retired = true;
                self.close(State::Cancelled);
            }
            Step::Change if self.target_retired => {}
            Step::Change => {
                self.changes += 1;
                let groups = words(GROUPS[self.changes % GROUPS.len()]);
                let policy = Policy { tool_groups: groups.clone(), ..Policy::default() };
                let set = self.hive.set_policy("bob", policy, &[PolicyPart::ToolGroups]).await;
                set.expect("the operator changes it");
                if let Some((_, fresh)) = &mut self.seen
                    && groups != self.groups
                {
                    // A value that was there before has its old digest; the model follows one look.
                    *fresh = false;
                    self.seen = None;
                }
                self.groups = groups;
            }
            Step::RetireTarget if self.target_retired => {}
            Step::RetireTarget => {
                self.hive.retire("bob").await;
                self.target_retired = true;
            }
        }
    }

    async fn compare(&self) {
        let question = self.hive.question(self.id).await;
        assert_eq!(question.state, self.state);
        let choice = question.answer.as_ref().and_then(|answer| answer.choices.first());
        assert_eq!(choice.map(String::as_str), self.choice, "one outcome");
        assert_eq!(self.hive.row("bob").await.policy.tool_groups, self.groups, "with its effect");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn an_effect_is_applied_with_its_outcome_or_not_at_all(
        steps in proptest::collection::vec(step(), 1..16),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in steps {
                world.take(step).await;
                world.compare().await;
            }
        });
    }
}

/// Two operators who read the same decide at the same time: one wins, and the other is refused with
/// the outcome.
#[tokio::test]
async fn of_two_operators_one_decides() {
    for first in [APPROVE, DENY] {
        let world = World::new().await;
        let digest = world.hive.approval(world.id).await.diff_digest;
        let second = if first == APPROVE { DENY } else { APPROVE };
        let (one, two) = tokio::join!(
            world.hive.decide_on(world.id, chosen(first, &digest)),
            world.hive.decide_on(world.id, chosen(second, &digest)),
        );
        let winner = if one.is_ok() { first } else { second };
        assert_eq!(one.is_ok(), two.is_err(), "{one:?} {two:?}");
        let loser = one.err().or(two.err()).expect("one was refused");
        assert_eq!(loser.reason(), Reason::QuestionClosed);
        let groups = if winner == APPROVE { WANTED } else { GROUPS[0] };
        assert_eq!(world.hive.row("bob").await.policy.tool_groups, words(groups));
    }
}

/// What was shown before a change, and not since, is not approved, whatever it was changed to.
#[tokio::test]
async fn a_diff_that_changed_after_it_was_shown_is_shown_again() {
    let mut world = World::new().await;
    let shown = world.hive.approval(world.id).await.diff_digest;
    world.take(Step::Change).await;
    let given = world.hive.decide_on(world.id, chosen(APPROVE, &shown)).await;
    assert_eq!(reason(given), Reason::DiffChanged);
    world.hive.crash().await;
    let now = world.hive.approval(world.id).await.diff_digest;
    assert_ne!(now, shown);
    world.hive.decide_on(world.id, chosen(APPROVE, &now)).await.expect("approved");
}
