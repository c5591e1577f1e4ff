//! A harness without confinement: the broker is notified that only `uids` decide on its socket.

use std::path::PathBuf;

use super::environment::Env;
use super::isolation::Shown;
use super::link::Registrar;
use super::start::{Prepared, Start, Started, Watch};

/// A harness without confinement.
#[derive(Clone, Debug)]
pub(super) struct Unconfined {
    pub(super) name: String,
    pub(super) hive: PathBuf,
    pub(super) env: Env,
    pub(super) isolation: Shown,
    pub(super) registrar: Registrar,
}

impl Start for Unconfined {
    fn prepare(&self) -> Result<Prepared, String> {
        let Self { name, hive, env, isolation, registrar } = self.clone();
        // Before it runs, so that the broker knows it when it calls.
        let registration = registrar.unconfined(name);
        registration.isolation(isolation);
        let started: Started = Box::new(move |_| -> Watch { Box::new(registration) });
        Ok(Prepared {
            program: hive,
            args: vec!["serve".into()],
            env,
            inherited: Vec::new(),
            started: Some(started),
        })
    }
}
