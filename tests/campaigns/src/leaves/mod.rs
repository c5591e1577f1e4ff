//! The leaves: mail for agents on demand, aimed at the moment at which the harness leaves. All of
//! it is handled without help, by one harness at a time.
//!
//! ```text
//!   turn ends ──── rest ────► the broker decides ──── exit ────► the process has ended
//!             │ mail keeps the harness           │ mail finds none: the launcher starts the next │
//! ```
//!
//! What it is not: a search for what breaks at a kill, which is `torture`. Invariant: the moments
//! that are aimed at follow from the seed; the moment that was hit is read from the order of the
//! log, and from the kernel.

mod aim;
mod player;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hive_tests::rig::{QUICK_LIMITS, Rig, Up};
use hive_tests::scripted::script::{self, Rule, Step};
use tokio::task::JoinSet;

use player::Player;

/// Time without work after which a harness asks to leave: the shortest that it knows.
const REST: Duration = Duration::from_millis(100);

/// The moments that a message can hit.
pub const BEFORE: &str = "before the leave, which the mail prevents";
pub const LEAVING: &str = "after the leave, while the process runs";
pub const ENDING: &str = "after the leave, as the process ends";
pub const AFTER: &str = "after the end of the process";
/// Parts of the first two that are close to the decision.
pub const ASKING: &str = "before the leave: of them after the rest, so the harness is asking";
pub const DECIDED: &str = "after the leave: of them at most 5 ms after the decision";

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Tries of all hives together: a message each.
    pub tries: u64,
    /// Hives that run at once.
    pub hives: u64,
    pub seed: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How many tries hit which moment.
    pub figures: BTreeMap<String, u64>,
    /// The longest time from a send to the ack.
    pub longest_wait: Duration,
    /// The problems found, a sentence each.
    pub violations: Vec<String>,
}

impl Outcome {
    /// Adds the figures and problems of another run.
    pub fn add(&mut self, other: Self) {
        for (name, figure) in other.figures {
            *self.figures.entry(name).or_default() += figure;
        }
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.violations.extend(other.violations);
    }

    fn count(&mut self, name: &str) {
        *self.figures.entry(name.to_owned()).or_default() += 1;
    }
}

/// Runs the tries.
pub async fn run(options: &Options) -> Outcome {
    let Options { tries, hives, seed } = *options;
    let mut playing = JoinSet::new();
    for number in 0..hives {
        // The first ones make what does not divide evenly.
        let tries = tries / hives + u64::from(number < tries % hives);
        playing.spawn(play(format!("agent-{number}"), tries, seed));
    }
    let mut outcome = Outcome::default();
    while let Some(played) = playing.join_next().await {
        match played {
            Ok(played) => outcome.add(played),
            Err(error) => outcome.violations.push(format!("seed {seed}: {error}")),
        }
    }
    outcome
}

/// Runs the tries of one hive. It has one agent: a change about another one would make a launcher
/// look at all of them, and so find what it has missed.
async fn play(name: String, tries: u64, seed: u64) -> Outcome {
    let rig = hive(&name);
    let up = Up::start(&rig, Path::new("/usr/bin:/bin")).await;
    let player = Player::new(&rig, up.pid(), name, seed).await;
    let outcome = player.play(tries).await;
    up.interrupted_only(&rig).await;
    rig.end().await;
    outcome
}

/// A hive of an agent on demand that does as little as possible in a turn. It is not isolated, so
/// the process that the launcher waits for is the harness.
fn hive(name: &str) -> Rig {
    let config = format!(
        "[hive]\nname = \"leaves\"\nisolation = \"none\"\n[broker]\nstate_dir = \"state\"\n\
         runtime_dir = \"run\"\n{QUICK_LIMITS}on_demand_idle_ms = {}\n\
         [agents.{name}]\non_demand = true\n",
        REST.as_millis()
    );
    let rig = Rig::unprivileged(&config);
    let file = rig.path("script.json");
    let steps = vec![Step::Text { text: "Done.".to_owned() }];
    script::write(&file, &[Rule { when: String::new(), steps }]).expect("the script is written");
    let file = file.display();
    rig.configure(&format!("{config}[claude]\nenv = {{ SCRIPTED_CLAUDE_FILE = \"{file}\" }}\n"));
    rig
}
