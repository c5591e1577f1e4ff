//! A claude that hangs, deaf to signals, with children that want to stay: it is ended with
//! everything below it.

use hive_proto::v1::{DeliveryState, RedeliveryCause, TurnOutcome};
use hive_tests::rig::{HarnessOptions, Rig};
use hive_tests::scripted::script::Step;
use serde_json::json;

use crate::steps::{acked, ended, env, hang, lives, rule, standing, text, touch};

/// A case in which claude hangs.
struct Hang {
    /// The watchdog that detects the hang.
    watchdog: (&'static str, &'static str),
    /// Whether a tool call is open when it hangs.
    in_a_tool: bool,
    /// The outcome of the turn, and its reason.
    outcome: (TurnOutcome, &'static str),
    /// The attempt and the cause of the next delivery.
    back: (u32, RedeliveryCause),
}

async fn ended_with_everything_below(hang_of: Hang) {
    let mut rig = Rig::duo().await;
    let child = |setsid| Step::Spawn { spawn: vec!["sleep".to_owned(), "1000".to_owned()], setsid };
    // The shell ends at once: of its child's ancestors only the harness is left.
    let orphan = ["sh", "-c", "sleep 1000 & setsid sleep 1000 &"].map(str::to_owned).to_vec();
    let mut steps = vec![
        Step::IgnoreSigterm { ignore_sigterm: true },
        Step::IgnoreSigint { ignore_sigint: true },
        child(false),
        child(true),
        Step::Spawn { spawn: orphan, setsid: false },
    ];
    if hang_of.in_a_tool {
        let block =
            json!({"type": "tool_use", "id": "toolu_1", "name": "mcp__hive__recv", "input": {}});
        let event = json!({"type": "assistant", "message": {"id": "msg_1", "content": [block]}});
        steps.push(Step::Raw { raw: event.to_string() });
    }
    steps.extend([touch(&rig, "reached"), hang()]);
    let rules = vec![rule("This is attempt", vec![text("Done.")]), rule("", steps)];
    let env = env(&[hang_of.watchdog, ("HIVE_KILL_GRACE_MS", "100")]);
    rig.start_harness_with("bob", &HarnessOptions { rules, env, ..HarnessOptions::default() });
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Hang.").await;
    rig.appeared("reached").await;
    let (outcome, error) = hang_of.outcome;
    let turn = ended(&rig, &mut watch, "bob", outcome).await;
    assert!(rig.running("bob", "sleep").is_empty(), "children are left");
    let said = operator.turn(turn).await.error;
    assert!(said.contains(error), "{said}");
    acked(&rig, "bob", asked).await;

    let (attempt, cause) = hang_of.back;
    assert_eq!(standing(&operator, "bob", asked).await, (DeliveryState::Acked, attempt, cause));
    assert_eq!(lives(&operator.turns("bob").await), [(outcome, 1), (TurnOutcome::Ok, attempt)]);
    rig.end().await;
}

/// A tool call that never ends may be the message's fault.
#[tokio::test]
async fn silence_in_a_tool_call() {
    let hang = Hang {
        watchdog: ("HIVE_TURN_IDLE_TIMEOUT_SECS", "4"),
        in_a_tool: true,
        outcome: (
            TurnOutcome::Failed,
            "a tool call did not return: nothing was heard from claude for 4 s",
        ),
        back: (2, RedeliveryCause::TurnFailed),
    };
    ended_with_everything_below(hang).await;
}

/// A model that never answers is an outage.
#[tokio::test]
async fn silence_of_the_model() {
    let hang = Hang {
        watchdog: ("HIVE_TURN_IDLE_TIMEOUT_SECS", "4"),
        in_a_tool: false,
        outcome: (
            TurnOutcome::Unavailable,
            "the model's API did not answer: nothing was heard from claude for 4 s",
        ),
        back: (1, RedeliveryCause::Unavailable),
    };
    ended_with_everything_below(hang).await;
}

#[tokio::test]
async fn a_turn_without_end() {
    let hang = Hang {
        watchdog: ("HIVE_TURN_MAX_SECS", "4"),
        in_a_tool: false,
        outcome: (TurnOutcome::Failed, "the turn took longer than 4 s"),
        back: (2, RedeliveryCause::TurnFailed),
    };
    ended_with_everything_below(hang).await;
}
