//! `hivectl config`: the configuration file.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hive_core::config::Checked;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::output::note;
use crate::view::config_key::ConfigKey;
use crate::view::counted;
use crate::view::finding::Finding;

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Read a file with the daemon's own code; exit code 8 if something is wrong with it
    Check(Check),
    /// List all keys, with what each takes and its effect
    Keys,
}

impl Config {
    pub(crate) fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        match self {
            Self::Check(check) => check.run(context),
            Self::Keys => {
                let keys: Vec<ConfigKey> =
                    hive_core::config::keys().into_iter().map(ConfigKey::from).collect();
                context.out.list(&keys)?;
                Ok(Exit::Ok)
            }
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// The file
    #[arg(default_value = "hive.toml")]
    file: PathBuf,
}

impl Check {
    pub(crate) fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let text = std::fs::read_to_string(&self.file)
            .map_err(|source| Failure::FileUnreadable { path: self.file.clone(), source })?;
        let (findings, exit): (Vec<Finding>, Exit) = match hive_core::config::check(&text) {
            Ok(Checked { config, remarks }) => {
                let agents = counted(config.agents.len(), "agent", "agents");
                note(&format!("{}: ok, {agents}", self.file.display()));
                (
                    remarks.iter().map(|remark| Finding::remark(&self.file, remark)).collect(),
                    Exit::Ok,
                )
            }
            Err(error) => (
                error.findings.iter().map(|finding| Finding::new(&self.file, finding)).collect(),
                Exit::Findings,
            ),
        };
        context.out.each(&findings)?;
        Ok(exit)
    }
}
