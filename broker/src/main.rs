//! `hived`: parse, log, and either check a configuration or run the broker until it shuts down.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Parser as _;
use hive_broker::cli::{Cli, Command, LogFormat};
use hive_broker::clock::{Clock as _, SystemClock};
use hive_broker::store::before::Plan;
use hive_broker::store::restore::{self, RestoreError, Restored};
use hive_broker::{app, config, kernel};
use hive_log::journal;
use rustix::process::geteuid;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// A call allocates futures of one to three kilobytes, which the allocator of glibc keeps in no
/// cache of a thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code if a backup cannot be restored because the hive is in use.
const EXIT_IN_USE: u8 = 5;
/// Exit code if a checked configuration has findings.
const EXIT_FINDINGS: u8 = 8;

fn main() -> ExitCode {
    kernel::share_heap();
    let cli = Cli::parse();
    if let Some(path) = &cli.check_config {
        return match config::read(path) {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&error.into());
                ExitCode::from(EXIT_FINDINGS)
            }
        };
    }
    if let Err(error) = log(&cli) {
        complain(&error);
        return ExitCode::from(2);
    }
    if let Some(Command::Restore { backup, json }) = &cli.command {
        return match restore(&cli, backup, *json) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                complain(&error);
                match error.downcast_ref() {
                    Some(RestoreError::InUse { .. } | RestoreError::Reachable { .. }) => {
                        ExitCode::from(EXIT_IN_USE)
                    }
                    _ => ExitCode::FAILURE,
                }
            }
        };
    }
    if let Some(Command::Migrate { check }) = &cli.command {
        return match migrate(&cli, *check) {
            Ok(code) => code,
            Err(error) => {
                complain(&error);
                ExitCode::FAILURE
            }
        };
    }
    // Calls are short and the writer has its own thread: two workers can load one disk fully. One
    // serves the sockets while the other runs a batch.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(8)
        .enable_all()
        .build();
    let run =
        runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(app::run(cli)));
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// Puts a backup in place of the database, and prints what was done.
fn restore(cli: &Cli, backup: &Path, json: bool) -> anyhow::Result<()> {
    let now = SystemClock::new()?.now().wall;
    let settings = config::load(cli)?;
    // With a state directory of its own, the sockets of another hive say nothing.
    if cli.state_dir.is_none() || cli.runtime_dir.is_some() {
        restore::refuse_if_reachable(&settings.layout().operator_socket())?;
    }
    let done = restore::restore(&settings.state_dir, backup, now)?;
    let mut out = std::io::stdout();
    if json {
        return Ok(writeln!(out, "{}", serde_json::to_string(&done)?)?);
    }
    let Restored { database, replaced, numbers_known, content: _, replaced_content: _ } = done;
    let replaced = match replaced {
        Some(kept) => format!("the database that it replaces is kept as {}", kept.display()),
        None => "there was no database before".to_owned(),
    };
    let numbers = if numbers_known {
        "ids go on above those of the replaced database"
    } else {
        "ids of the replaced database are not known, so ids go on one to two million further on"
    };
    let (backup, database) = (backup.display(), database.display());
    Ok(writeln!(out, "{backup} is restored as {database}; {replaced}; {numbers}. Start hived.")?)
}

/// Prints what a migration of the database would do, or does it.
fn migrate(cli: &Cli, check: bool) -> anyhow::Result<ExitCode> {
    let settings = config::load(cli)?;
    let plan = Plan::read(&settings.state_dir, settings.keeps_copy)?;
    let mut out = std::io::stdout();
    if check {
        writeln!(out, "{plan}")?;
        let code = if plan.has_room() { 0 } else { EXIT_FINDINGS };
        return Ok(ExitCode::from(code));
    }
    if !plan.migrates() {
        writeln!(out, "{plan}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let owner = std::fs::metadata(&settings.state_dir)?.uid();
    // The broker could not open root's files, and must not make root write through its links.
    anyhow::ensure!(
        !geteuid().is_root() || owner == 0,
        "{} is not root's: run this as its owner, as with `runuser -u hive -- hived migrate`",
        settings.state_dir.display()
    );
    app::migrate(&settings, Arc::new(SystemClock::new()?))?;
    writeln!(out, "{}", Plan::read(&settings.state_dir, settings.keeps_copy)?)?;
    Ok(ExitCode::SUCCESS)
}

fn log(cli: &Cli) -> anyhow::Result<()> {
    let log = tracing_subscriber::registry().with(hive_log::parse(&cli.log)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let journal = match cli.log_format {
        LogFormat::Auto => journal::of_stderr(&[]),
        LogFormat::Journald => Some(
            journal::open(&[])
                .context("the journal of systemd cannot be reached; choose another --log-format")?,
        ),
        LogFormat::Json => {
            log.with(lines.json()).init();
            return Ok(());
        }
        LogFormat::Text => None,
    };
    match journal {
        Some(journal) => log.with(journal).init(),
        None => {
            let colors = std::io::IsTerminal::is_terminal(&std::io::stderr());
            log.with(lines.with_ansi(colors)).init();
        }
    }
    Ok(())
}

/// Prints an error with its causes.
fn complain(error: &anyhow::Error) {
    // If stderr is closed, the error cannot be reported.
    drop(writeln!(std::io::stderr(), "hived: {error:#}"));
}
