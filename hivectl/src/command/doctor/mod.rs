//! `hivectl doctor`: one list of all that can be wrong with a hive, and what to do about it.
//!
//! Without `--fix` it changes nothing. Without a broker it only checks the host. Invariant: with
//! `--fix` each repair is followed by the same checks, whose result decides the exit code.

mod broker;
mod files;
mod fix;
mod hive;
mod host;
mod list;
mod places;
mod reach;
mod repair;
mod secrets;
mod sockets;
mod unfinished;

use std::path::{Path, PathBuf};

use clap::Args;
use hive_core::config::Config;

pub(crate) use self::files::{is_backup, is_of_state};
use self::fix::Tried;
pub(crate) use self::list::List;
pub(crate) use self::places::Places;
pub(crate) use self::reach::Reached;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::fetch;
use crate::output::note;
use crate::view::counted;

/// Check everything that can be wrong with a hive, and print what to do about it.
///
/// Checks the socket, the broker and its version, the database and its disk, the files and their
/// modes, clocks, every agent, and what waits on you. Checks of the host need no broker. Changes
/// nothing without --fix. Ends with 0 if all is well and with 8 if there is a warning or a problem,
/// also if no broker answers.
///
/// --fix sets modes that are too open, and removes sockets that no process listens on and copies of
/// the database that were not finished. It changes no mail, and no file of another user: then it
/// ends with 4 and prints the uid of that user.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// Check this configuration too, and the claude that it names
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read the whole database too, which takes long on a large one
    #[arg(long)]
    deep: bool,
    /// Repair what can be repaired safely, then check again
    #[arg(long)]
    fix: bool,
    /// Print what --fix would do, and change nothing
    #[arg(long, requires = "fix")]
    dry_run: bool,
}

/// What the doctor found, and the parts of the hive in which it looked.
pub(crate) struct Examined {
    pub(crate) list: List,
    pub(crate) reached: Option<Reached>,
    pub(crate) config: Option<Config>,
    pub(crate) places: Places,
}

impl Doctor {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let config = self.config.as_deref();
        let mut tried = Tried::default();
        if self.fix {
            let first = examine_files(context, config).await;
            tried = Tried::repair(first.list, self.dry_run);
        }
        let mut list = examine(context, config, self.deep).await.list;
        let lacks_rights = tried.lacks_rights;
        tried.report(&mut list);
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
        Ok(match warnings + problems {
            _ if lacks_rights => Exit::Denied,
            0 => Exit::Ok,
            _ => Exit::Findings,
        })
    }
}

/// Makes all checks; `deep`: that of the whole database, too.
pub(crate) async fn examine(context: &Context, config: Option<&Path>, deep: bool) -> Examined {
    let Examined { mut list, reached, config, places } = begin(context, config).await;
    match &reached {
        Some(reached) => {
            broker::all(reached, &context.out.style, &mut list).await;
            host::database(Path::new(&reached.status.database_path), &mut list);
            hive::all(reached, &context.out.style, &mut list).await;
        }
        None => {
            host::database(&host::guessed_database(&context.socket, config.as_ref()), &mut list);
        }
    }
    if let Some(config) = &config {
        host::claude(&config.claude.command, &mut list).await;
        secrets::all(config, &mut list);
    }
    let status = reached.as_ref().map(|reached| &reached.status);
    host::bubblewrap(status, config.as_ref(), &mut list);
    of_files(&places, reached.as_ref(), &mut list).await;
    if deep {
        reach::integrity(context, reached.as_ref(), &mut list).await;
    }
    Examined { list, reached, config, places }
}

/// Makes the checks that have repairs.
async fn examine_files(context: &Context, config: Option<&Path>) -> Examined {
    let mut examined = begin(context, config).await;
    of_files(&examined.places, examined.reached.as_ref(), &mut examined.list).await;
    examined
}

/// Finds the parts of the hive.
async fn begin(context: &Context, config: Option<&Path>) -> Examined {
    let mut list = List::default();
    reach::socket(&context.socket, &mut list);
    let reached = reach::broker(context, &mut list).await;
    let config = config.and_then(|file| host::config(file, &mut list));
    let database = match &reached {
        Some(reached) => PathBuf::from(&reached.status.database_path),
        None => host::guessed_database(&context.socket, config.as_ref()),
    };
    let places = Places::find(&database, &context.socket, config.as_ref());
    Examined { list, reached, config, places }
}

async fn of_files(places: &Places, reached: Option<&Reached>, list: &mut List) {
    files::all(places, list);
    unfinished::all(places, reached.is_some(), list);
    if let Some(reached) = reached.filter(|reached| reached.status.storage_ok)
        // That the agents cannot be read is a finding of another check.
        && let Ok(agents) = fetch::agents(&reached.broker, false, fetch::ALL).await
    {
        sockets::all(places, &agents, list);
    }
}
