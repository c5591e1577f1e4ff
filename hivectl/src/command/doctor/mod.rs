//! `hivectl doctor`: one list of all that can be wrong with a hive, and what to do about it.
//!
//! What it is not: a repair. It changes nothing. Without a broker it only checks the host.

mod broker;
mod hive;
mod host;
mod list;
mod reach;

use std::path::{Path, PathBuf};

use clap::Args;

use self::list::List;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::output::note;
use crate::view::counted;

/// Check everything that can be wrong with a hive, and print what to do about it.
///
/// Checks the socket, the broker and its version, the database and its disk, clocks, every agent,
/// and what waits on you. Checks of the host need no broker. Changes nothing. Ends with 0 if all is
/// well and with 8 if there is a warning or a problem, also if no broker answers.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Check this configuration too, and the claude that it names
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read the whole database too, which takes long on a large one
    #[arg(long)]
    deep: bool,
}

impl Doctor {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let mut list = List::default();
        reach::socket(&context.socket, &mut list);
        let reached = reach::broker(context, &mut list).await;
        let config = self.config.as_deref().and_then(|file| host::config(file, &mut list));
        match &reached {
            Some(reached) => {
                broker::all(reached, &context.out.style, &mut list).await;
                host::database(Path::new(&reached.status.database_path), &mut list);
                hive::all(reached, &context.out.style, &mut list).await;
            }
            None => host::database(&host::guessed_database(config.as_ref()), &mut list),
        }
        if let Some(config) = &config {
            host::claude(&config.claude.command, &mut list).await;
        }
        host::bubblewrap(
            reached.as_ref().map(|reached| &reached.status),
            config.as_ref(),
            &mut list,
        );
        if self.deep {
            reach::integrity(context, reached.as_ref(), &mut list).await;
        }
        let (warnings, problems) = list.findings();
        context.out.each(&list.checks)?;
        if !context.out.json {
            match (warnings, problems) {
                (0, 0) => note("all is well"),
                (warnings, problems) => {
                    let problems = counted(problems, "problem", "problems");
                    note(&format!("{problems}, {}", counted(warnings, "warning", "warnings")));
                }
            }
        }
        Ok(if warnings + problems == 0 { Exit::Ok } else { Exit::Findings })
    }
}
