//! `hived`: parse, log, and either check a configuration or run the broker until it shuts down.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use hive_broker::cli::{Cli, LogFormat};
use hive_broker::{app, config};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Exit code if a checked configuration has findings.
const EXIT_FINDINGS: u8 = 8;

fn main() -> ExitCode {
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
    // Calls are short and the writer has its own thread: two workers can load one disk fully.
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

fn log(cli: &Cli) -> anyhow::Result<()> {
    let log = tracing_subscriber::registry().with(hive_log::parse(&cli.log)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match cli.log_format {
        LogFormat::Json => log.with(lines.json()).init(),
        LogFormat::Text => {
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
