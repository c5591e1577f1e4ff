//! The race table: asker, target, operator and deadline come in any order, and the broker dies at
//! any point in between. A question ends once, all parties get the same end, and a late one gets
//! the end that won.

use hive_core::id::QuestionId;
use hive_core::question::State;
use proptest::prelude::*;

use super::questions::{plain, text};
use super::*;

const TTL: u64 = 100;

/// An action on an open question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The target answers.
    Answer,
    /// A third tries to.
    StrangerAnswers,
    /// The operator answers in the target's place.
    Override,
    /// The asker withdraws it.
    Withdraw,
    /// The operator withdraws it.
    OperatorWithdraws,
    /// Time passes, and what is due is swept.
    Pass(u64),
    /// Time passes without a sweep: the broker is busy, or down.
    PassUnswept(u64),
    /// The broker is killed and starts again.
    Crash,
    /// The target takes its mail.
    Receive,
    /// Either agent is retired.
    Retire(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Answer),
        1 => Just(Step::StrangerAnswers),
        2 => Just(Step::Override),
        2 => Just(Step::Withdraw),
        2 => Just(Step::OperatorWithdraws),
        3 => (1..80_u64).prop_map(Step::Pass),
        2 => (1..80_u64).prop_map(Step::PassUnswept),
        2 => Just(Step::Crash),
        1 => Just(Step::Receive),
        1 => any::<bool>().prop_map(Step::Retire),
    ]
}

/// The model: the expected state of the question.
#[derive(Clone, Debug)]
struct Model {
    state: State,
    closed_by: &'static str,
    age: u64,
    retired: [bool; 2],
}

impl Model {
    fn close(&mut self, state: State, closed_by: &'static str) -> bool {
        if self.state != State::Open {
            return false;
        }
        (self.state, self.closed_by) = (state, closed_by);
        true
    }
}

struct World {
    hive: Hive,
    id: QuestionId,
    model: Model,
}

impl World {
    async fn take(&mut self, step: Step) {
        let operator = "uid 1000 (ada)";
        match step {
            Step::Answer => {
                let given = self.hive.answer("bob", self.id, text("yes")).await;
                if self.model.retired[1] {
                    assert_eq!(reason(given), Reason::AgentRetired);
                    return;
                }
                let wins = self.model.close(State::Answered, "bob");
                self.check(given.map(drop), wins);
            }
            Step::StrangerAnswers => {
                let given = self.hive.answer("carol", self.id, text("me")).await;
                assert_eq!(reason(given), Reason::QuestionNotFound);
            }
            Step::Override => {
                let given = self.hive.answer("operator", self.id, text("so be it")).await;
                let wins = self.model.close(State::Answered, operator);
                self.check(given.map(drop), wins);
            }
            Step::Withdraw => {
                let given = self.hive.withdraw("alice", self.id).await;
                if self.model.retired[0] {
                    assert_eq!(reason(given), Reason::AgentRetired);
                    return;
                }
                let wins = self.model.close(State::Cancelled, "alice");
                self.check(given.map(drop), wins);
            }
            Step::OperatorWithdraws => {
                let given = self.hive.withdraw("operator", self.id).await;
                let wins = self.model.close(State::Cancelled, operator);
                self.check(given.map(drop), wins);
            }
            Step::Pass(seconds) => {
                self.pass(seconds);
                self.hive.engine().sweep_questions().await.expect("swept");
                if self.model.age >= TTL {
                    self.model.close(State::Expired, "");
                }
            }
            Step::PassUnswept(seconds) => self.pass(seconds),
            Step::Crash => self.hive.crash().await,
            Step::Receive => {
                if !self.model.retired[1] {
                    self.hive.receive("bob", 32).await;
                }
            }
            Step::Retire(target) => {
                let place = usize::from(target);
                if !self.model.retired[place] {
                    self.hive.retire(["alice", "bob"][place]).await;
                    self.model.retired[place] = true;
                    self.model.close(State::Cancelled, "");
                }
            }
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.hive.pass(seconds);
        self.model.age += seconds;
    }

    /// Checks that the winner gets its answer, and that a loser gets the outcome that won.
    fn check(&self, given: Result<(), Refusal>, wins: bool) {
        match given {
            Ok(()) => assert!(wins, "it had its outcome: {:?}", self.model),
            Err(refusal) => {
                assert!(!wins, "{refusal}");
                assert_eq!(refusal.reason(), Reason::QuestionClosed);
                let outcome = match self.model.closed_by {
                    "" => self.model.state.to_string(),
                    // The account is in the row; the refusal names no account.
                    who if who.starts_with("uid ") => {
                        format!("{} by the operator", self.model.state)
                    }
                    who => format!("{} by {who}", self.model.state),
                };
                assert!(refusal.to_string().ends_with(&outcome), "{refusal} / {outcome}");
            }
        }
    }

    /// The row agrees with the model; the books are audited when the hive goes.
    async fn compare(&self) {
        let question = self.hive.question(self.id).await;
        assert_eq!(
            (question.state, question.closed_by.as_str()),
            (self.model.state, self.model.closed_by)
        );
        assert_eq!(question.answer.is_some(), self.model.state == State::Answered);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_question_ends_once_whatever_happens(steps in proptest::collection::vec(step(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let hive = Hive::new(&["alice", "bob", "carol"]).await;
            let ask = Ask { ttl: Some(Duration::from_secs(TTL)), ..plain("bob", "well?") };
            let id = hive.asked("alice", ask).await;
            let model = Model { state: State::Open, closed_by: "", age: 0, retired: [false; 2] };
            let mut world = World { hive, id, model };
            for step in steps {
                world.take(step).await;
                world.compare().await;
            }
        });
    }
}
