//! Journeys of users whose agents are sandboxed and run the real Claude Code CLI, as its own
//! installer and as npm install it.
//!
//! They use the stage of the other tests here: `hivectl up` by a user without rights. Starting
//! claude costs most of a second of CPU time, so each is a story of a few turns.

/// Makes tests of each journey, one for each installation: `native::NAME`, `npm::NAME`,
/// `script::NAME`.
macro_rules! every {
    ($($name:ident),* $(,)?) => {
        every!(native Native: $($name),*);
        every!(npm Npm: $($name),*);
        every!(script Script: $($name),*);
    };
    ($module:ident $installed:ident: $($name:ident),* $(,)?) => {
        mod $module {
            $(#[tokio::test]
            async fn $name() {
                if crate::stage::is_possible().await {
                    super::$name(crate::journeys::installed::Installed::$installed).await;
                }
            })*
        }
    };
}

/// Runs journeys for which the installation of claude does not matter.
macro_rules! native {
    ($($name:ident),* $(,)?) => {
        every!(native Native: $($name),*);
    };
}

mod cargo;
mod hive;
mod installed;
mod login;
mod node;
mod project;
mod push;
mod python;
mod run_time;
mod servers;
mod skills;
mod turns;
mod update;
