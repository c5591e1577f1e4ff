//! The cast: the agents in the hive of a round, and the scripted claude of those with a real
//! harness.
//!
//! Invariant: no script sends the same text twice in one turn, so that a doubled text was doubled
//! by Hive.

use std::path::Path;

use hive_history::Setting;
use hive_tests::scripted::failure::Failure;
use hive_tests::scripted::script::{Rule, Step};
use serde_json::{Value, json};

/// Agents without a harness: they receive and settle by calls.
pub(crate) const CONSUMERS: [&str; 3] = ["c1", "c2", "c3"];
/// An agent whose harness is made of calls.
pub(crate) const CALLED: &str = "t1";
/// Agents with the real harness, bridge and a scripted claude.
pub(crate) const HARNESSED: [&str; 2] = ["h1", "h2"];
/// An agent created and removed during a round.
pub(crate) const GUEST: &str = "g1";
/// All agents that always exist.
pub(crate) const AGENTS: [&str; 6] = ["c1", "c2", "c3", "t1", "h1", "h2"];

/// Maximum time that a harness may stay detached, in ms.
pub(crate) const GRACE_MS: u64 = 2_000;

// The consumers stop and start the guest while it is below them.
pub(crate) const CONFIG: &str = "[hive]\nname = \"torture\"\n\
     [agents.c1]\ntool_groups = [\"messaging\", \"inbox\", \"meta\", \"lifecycle\"]\n\
     [agents.c2]\ntool_groups = [\"messaging\", \"inbox\", \"meta\", \"lifecycle\"]\n\
     [agents.c3]\ntool_groups = [\"messaging\", \"inbox\", \"meta\", \"lifecycle\"]\n\
     [agents.t1]\nparent = \"c1\"\n\
     [agents.h1]\nparent = \"c2\"\n[agents.h2]\nparent = \"h1\"\n\
     [broker.limits]\nretry_backoff_base_ms = 20\nretry_backoff_max_ms = 40\npark_backoff_base_ms = 30\npark_backoff_max_ms = 60\n\
     rate_limit_park_ms = 50\nharness_grace_ms = 2000\nsends_per_minute_max = 10000000\nquestions_open_max = 100000\n\
     reminders_pending_max = 100000\n";

/// Returns what is known about the hive in advance.
pub(crate) fn setting() -> Setting {
    let opaque: Vec<String> = HARNESSED.iter().map(|name| (*name).to_owned()).collect();
    Setting {
        attempts_max: 5,
        grace_ms: GRACE_MS,
        says_once: opaque.clone(),
        opaque,
        tolerance_ms: 10,
    }
}

fn tool(tool: &str, input: Value) -> Step {
    Step::Tool { tool: tool.to_owned(), input }
}

fn rule(when: &str, steps: Vec<Step>) -> Rule {
    Rule { when: when.to_owned(), steps }
}

/// The word in a message that lets a claude wait in a call.
pub(crate) const BAIT: &str = "bait";

/// Returns a claude's rules, by the words of the message. If `waits` is a file, some turns wait in
/// a call and create the file then: it reports that there is a process to kill. Without it every
/// turn ends by itself.
pub(crate) fn script(waits: Option<&Path>) -> Vec<Rule> {
    let heard =
        |body: &str| tool("send", json!({"to": "$from", "body": body, "in_reply_to": "$id"}));
    let done = || Step::Text { text: "Done.".to_owned() };
    let remind = || tool("remind", json!({"message": "Look again.", "delay_seconds": 1}));
    let mut rules = Vec::new();
    if let Some(file) = waits {
        let wait = |seconds: u64| Step::Call {
            call: "recv".to_owned(),
            input: json!({"max": 1, "wait_seconds": seconds}),
            touch: file.to_path_buf(),
        };
        rules.push(rule(BAIT, vec![wait(2), wait(2), done()]));
        rules.push(rule("5 of ", vec![heard("First part."), wait(1), done()]));
    }
    rules.extend([
        rule("your reminder", vec![done()]),
        rule(
            "question",
            vec![tool("answer", json!({"question": "$question", "text": "As you like."})), done()],
        ),
        rule("from Hive itself", vec![done()]),
        rule("This is attempt", vec![heard("First part."), heard("Second part."), done()]),
        rule("0 of ", vec![heard("First part."), Step::Exit { exit: 1 }]),
        rule("1 of ", vec![heard("First part."), Step::Fail { fail: Failure::Overloaded }]),
        rule("2 of ", vec![tool("recv", json!({"max": 2})), heard("First part."), done()]),
        rule("3 of ", vec![remind(), heard("First part."), done()]),
        rule("4 of ", vec![tool("ask", json!({"question": "May I?", "to": "c1"})), done()]),
        rule("", vec![heard("First part."), heard("Second part."), done()]),
    ]);
    rules
}
