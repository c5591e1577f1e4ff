//! A harness without confinement: the broker is notified that only `uids` decide on its socket.

use std::path::PathBuf;

use crate::supervise::broker::link::Registrar;
use crate::supervise::broker::link::Shown;
use crate::supervise::process::start::{Prepared, Start, Started, Watch};
use crate::supervise::setup::environment::Env;

#[derive(Clone, Debug)]
pub(crate) struct Unconfined {
    pub(crate) name: String,
    pub(crate) hive: PathBuf,
    pub(crate) env: Env,
    pub(crate) isolation: Shown,
    pub(crate) registrar: Registrar,
}

impl Start for Unconfined {
    fn prepare(&self) -> Result<Prepared, String> {
        let Self { name, hive, env, isolation, registrar } = self.clone();
        // Before it runs, so that the broker knows it when it calls.
        let (registration, in_force) = registrar.unconfined(name);
        registration.isolation(isolation);
        let started: Started = Box::new(move |_| -> Watch { Box::new(registration) });
        Ok(Prepared {
            program: hive,
            args: vec!["serve".into()],
            env,
            inherited: Vec::new(),
            started,
            ready: Some(in_force),
        })
    }
}
