//! The two ways to run claude: a process for each turn, or one that stays. A journey that holds for
//! both is written once.

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
