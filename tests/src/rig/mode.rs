//! The two ways to run claude: a process for each turn, or one that stays. A journey that holds for
//! both is written once.

use super::{HarnessOptions, Rig};
use crate::scripted::script::Rule;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A process for each turn.
    PerTurn,
    /// A process that stays.
    Resident,
}

impl Mode {
    /// Returns the value of `HIVE_PROCESS`.
    pub fn word(self) -> &'static str {
        match self {
            Self::PerTurn => "per-turn",
            Self::Resident => "resident",
        }
    }

    /// Returns the options of `agent`'s harness. Its claude follows `rules`, and each start of that
    /// claude is noted. A resident claude reads its script once, at its start.
    pub fn options(self, rig: &Rig, agent: &str, rules: &[Rule]) -> HarnessOptions {
        HarnessOptions {
            claude: rig.noting_claude(agent),
            rules: rules.to_vec(),
            env: [("HIVE_PROCESS".to_owned(), self.word().to_owned())].into(),
            ..HarnessOptions::default()
        }
    }

    pub fn start(self, rig: &mut Rig, rules: &[Rule]) {
        self.start_with(rig, rules, &[]);
    }

    /// Starts bob's harness with a further environment.
    pub fn start_with(self, rig: &mut Rig, rules: &[Rule], variables: &[(&str, &str)]) {
        let mut options = self.options(rig, "bob", rules);
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        options.env.extend(variables.iter().map(owned));
        rig.start_harness_with("bob", &options);
    }
}

/// Makes two tests of each journey, `per_turn::NAME` and `resident::NAME`.
#[macro_export]
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        mod per_turn {
            $(#[tokio::test]
            async fn $name() {
                super::$name($crate::rig::Mode::PerTurn).await;
            })*
        }
        mod resident {
            $(#[tokio::test]
            async fn $name() {
                super::$name($crate::rig::Mode::Resident).await;
            })*
        }
    };
}
