//! The two ways to run claude: a process for each turn, or one that stays. A journey that holds for
//! both is written once.

use hive_tests::rig::{HarnessOptions, Rig};
use hive_tests::scripted::script::Rule;

use crate::steps::env;

/// How claude is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    PerTurn,
    Resident,
}

impl Mode {
    /// As `HIVE_PROCESS` says it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::PerTurn => "per-turn",
            Self::Resident => "resident",
        }
    }

    /// How a harness is started whose claude does this, and notes its starts. A claude that stays
    /// reads its script once, at its start.
    pub(crate) fn options(self, rig: &Rig, agent: &str, rules: &[Rule]) -> HarnessOptions {
        HarnessOptions {
            claude: rig.noting_claude(agent),
            rules: rules.to_vec(),
            env: env(&[("HIVE_PROCESS", self.word())]),
            ..HarnessOptions::default()
        }
    }

    /// Starts bob's harness.
    pub(crate) fn start(self, rig: &mut Rig, rules: &[Rule]) {
        self.start_with(rig, rules, &[]);
    }

    /// Starts bob's harness with a further environment.
    pub(crate) fn start_with(self, rig: &mut Rig, rules: &[Rule], variables: &[(&str, &str)]) {
        let mut options = self.options(rig, "bob", rules);
        options.env.extend(env(variables));
        rig.start_harness_with("bob", &options);
    }
}

/// Makes two tests of each journey, `per_turn::NAME` and `resident::NAME`.
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        mod per_turn {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::mode::Mode::PerTurn).await;
            })*
        }
        mod resident {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::mode::Mode::Resident).await;
            })*
        }
    };
}
