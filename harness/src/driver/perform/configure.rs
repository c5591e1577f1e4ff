//! Application of changed settings, between turns.
//!
//! Invariant: invalid settings change nothing.

use std::sync::Arc;

use super::Performer;
use crate::turn::input::{Configured, Input};

impl Performer {
    /// Reads the settings again; returns the changes for the machine, if there are any.
    pub fn configure(&mut self, turn_id: Option<u64>) -> Option<Input> {
        let config = match self.source.again() {
            Ok(config) => config.filter(|config| *config != *self.config)?,
            Err(error) => {
                tracing::error!(turn_id, %error, "the settings cannot be read again; those of before hold");
                return None;
            }
        };
        tracing::info!("the settings changed");
        let old = std::mem::replace(&mut self.config, Arc::new(config));
        let new = &self.config;
        let plugins = old.plugins != new.plugins;
        self.runner.configure(Arc::clone(new), plugins);
        self.shell.configure(new);
        Some(Input::Configured(Box::new(Configured {
            spans: new.spans,
            defaults: crate::driver::defaults(new),
            probes: plugins || (&old.claude, &old.claude_env) != (&new.claude, &new.claude_env),
        })))
    }
}
