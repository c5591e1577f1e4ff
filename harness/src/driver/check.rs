//! The check of the CLI: whether it can be used, and whether it has a login; the first check
//! installs the plugins.
//!
//! Invariants: it runs only while no claude does, with the lock on the state directory free. Logins
//! and plugins are handled in claude's HOME, where claude obeys no settings of the agent's working
//! directory.

use std::sync::Arc;

use crate::boot::probe;
use crate::config::Config;
use crate::driver::launch::Runner;
use crate::driver::prepare::{self, environment, private, temporary};
use crate::plugins;
use crate::process::lock::StateLock;
use crate::turn::input::{Found, Input};

/// Ends the leftovers of an earlier harness, and checks whether the CLI can be used.
pub async fn probe(config: Arc<Config>, runner: Runner) -> Input {
    // A new login or an update applies to the next process.
    runner.end_resident().await;
    Input::Probed(check(&config, &runner).await.map_err(|error| error.to_string()))
}

async fn check(
    config: &Config,
    runner: &Runner,
) -> Result<Found, Box<dyn std::error::Error + Send + Sync>> {
    let temporary = temporary(config);
    private(&temporary)?;
    private(&config.run_dir)?;
    drop(StateLock::acquire(&config.state_dir, &config.run_dir, config.take_over).await?);
    for remark in prepare::guard_home(config)? {
        tracing::warn!("{remark}");
    }
    let (program, environment) = (prepare::program(config)?, environment(config, &temporary));
    let version = probe::run(&program, &environment, &config.state_dir).await?;
    let logged_in = probe::is_logged_in(&program, &environment, &config.home_dir).await;
    tracing::info!(claude = %config.claude.display(), version, logged_in, "the CLI is there");
    let mut problems = Vec::new();
    if !config.plugins.is_empty() && runner.claim_plugins() {
        let failures =
            plugins::install(&program, &environment, &config.home_dir, &config.plugins).await;
        if !failures.is_empty() {
            let text = format!(
                "Plugins of this agent are not all there; it works without them.\n{}",
                failures.join("\n")
            );
            problems.push(("plugins".to_owned(), text));
        }
    }
    Ok(Found { logged_in, problems })
}

/// Returns whether the CLI reports a login. Only claude knows all the ways in which it can have
/// one.
pub async fn is_logged_in(config: &Config) -> bool {
    // A claude that cannot be asked counts as logged in.
    let Ok(program) = prepare::program(config) else { return true };
    let environment = environment(config, &temporary(config));
    probe::is_logged_in(&program, &environment, &config.home_dir).await
}
