//! Every process is killed without warning at every moment of a turn: nothing is lost, nothing is
//! doubled, and only what may be the message's fault uses an attempt.
//!
//! The scene is the same each time: the operator asks bob, and bob answers in two parts. Bob's
//! parent ada has no harness, so notices about bob stay in her inbox.

mod bridge;
mod broker;
mod claude;
mod harness;
mod launcher;
mod leftovers;
mod resident;
mod upkeep;

use hive_proto::v1::{DeliveryState, EventKind, RedeliveryCause, TurnOutcome};
use hive_tests::rig::{Client, Rig, Watch};
use hive_tests::scripted::script::{Rule, Step};

use crate::steps::{acked, answer, handled, lives, rule, standing, text, touch, unread, wait_for};

/// The point of the turn at which the kill happens. The scripted claude makes the file `reached`
/// there, and continues when there is a file `go`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Point {
    /// The prompt is read, nothing is done.
    MidTurn,
    /// The first part of the answer is sent.
    AfterSend,
    /// All is done and said, but the turn has not ended.
    BeforeEnd,
}

/// The expected result of the journey.
struct Expected {
    /// The outcome and the attempt of each of bob's turns over the message.
    lives: &'static [(TurnOutcome, u32)],
    /// The cause of the redelivery.
    cause: RedeliveryCause,
    /// The text of the last prompt about the redelivery.
    words: &'static str,
}

/// No redelivery: one turn, one attempt.
const ONE_TURN: Expected =
    Expected { lives: &[(TurnOutcome::Ok, 1)], cause: RedeliveryCause::Unspecified, words: "" };

struct Scene {
    rig: Rig,
    operator: Client,
    watch: Watch,
    asked: u64,
}

fn parts() -> Vec<Step> {
    vec![answer("operator", "part one"), answer("operator", "part two"), text("Done.")]
}

fn rules(rig: &Rig, point: Point) -> Vec<Rule> {
    let stop = [touch(rig, "reached"), wait_for(rig, "go"), touch(rig, "gone")];
    let mut steps = parts();
    let at = match point {
        Point::MidTurn => 0,
        Point::AfterSend => 1,
        Point::BeforeEnd => steps.len(),
    };
    steps.splice(at..at, stop);
    vec![
        rule("and now", vec![text("Nothing more.")]),
        rule("This is attempt", parts()),
        rule("", steps),
    ]
}

impl Scene {
    /// Bob works on the operator's message, and has come to the point.
    async fn at(point: Point) -> Self {
        let mut scene = Self::new(point).await;
        scene.asked = scene.operator.send("bob", "Count to two.").await;
        scene.rig.appeared("reached").await;
        scene
    }

    /// Bob waits for mail.
    async fn new(point: Point) -> Self {
        Self::of(Rig::duo().await, point).await
    }

    async fn of(mut rig: Rig, point: Point) -> Self {
        let rules = rules(&rig, point);
        rig.start_harness("bob", &rules);
        let (operator, mut watch) = (rig.operator().await, rig.watch().await);
        watch.kind("bob", EventKind::HarnessAttached).await;
        Self { rig, operator, watch, asked: 0 }
    }

    fn start_harness(&mut self, point: Point) {
        let rules = rules(&self.rig, point);
        self.rig.start_harness("bob", &rules);
    }

    async fn start_broker(&mut self) {
        self.rig.start_broker().await;
        self.operator = self.rig.operator().await;
    }

    /// Checks that the message is answered once, and that the queue continues.
    async fn comes_out(self, expected: &Expected, point: Point) {
        acked(&self.rig, "bob", self.asked).await;
        let first_lives = expected.lives.len();
        let sent: Vec<String> =
            unread(&self.operator, "operator").await.into_iter().map(|(body, _)| body).collect();
        assert_eq!(sent, ["part one", "part two"], "the operator has each part once");
        let attempt = expected.lives.last().map_or(0, |(_, attempt)| *attempt);
        assert_eq!(
            standing(&self.operator, "bob", self.asked).await,
            (DeliveryState::Acked, attempt, expected.cause)
        );

        // No other turn ran, and nothing blocks the next message.
        handled(&self.rig, &self.operator, "bob", "and now?").await;
        let turns = self.operator.turns("bob").await;
        assert_eq!(lives(&turns), [expected.lives, &[(TurnOutcome::Ok, 1)]].concat());
        assert!(turns[..first_lives].iter().all(|turn| turn.message_id == self.asked), "{turns:?}");
        self.check_prompts(expected, point);
        self.rig.end().await;
    }

    /// The prompt of a re-run says which attempt it is, why, and what was sent already.
    fn check_prompts(&self, expected: &Expected, point: Point) {
        let prompts = self.rig.prompts("bob");
        let asked = format!("Message {} from the operator", self.asked);
        let runs: Vec<&String> =
            prompts.iter().filter(|prompt| prompt.starts_with(&asked)).collect();
        assert_eq!(runs.len(), expected.lives.len(), "{prompts:?}");
        let (Some(last), true) = (runs.last(), runs.len() > 1) else { return };
        let attempt = expected.lives.last().map_or(0, |(_, attempt)| *attempt);
        let again = if runs.len() > attempt as usize { " again" } else { "" };
        assert!(
            last.contains(&format!("This is attempt {attempt}{again}: {}", expected.words)),
            "{last}"
        );
        let listed = |body: &str| {
            last.lines().any(|line| {
                line.starts_with("| message ") && line.ends_with(&format!(" to operator: {body}"))
            })
        };
        assert_eq!(listed("part one"), point >= Point::AfterSend, "{last}");
        assert_eq!(listed("part two"), point >= Point::BeforeEnd, "{last}");
    }
}
