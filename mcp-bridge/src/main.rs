//! `hive-mcp`: parse, log, build, serve, leave.

use std::process::ExitCode;

use clap::Parser as _;
use hive_mcp_bridge::{cli, server, telemetry};

fn main() -> ExitCode {
    let args = cli::Args::parse();
    telemetry::start(&args.label);
    // One thread: the bridge waits most of the time, and each turn pays for every thread that is
    // started.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let served = runtime.block_on(server::serve(args));
        // A thread may still read stdin. Do not wait for it: claude waits for the end of this
        // process, in every turn.
        runtime.shutdown_background();
        served
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "hive-mcp stops");
            ExitCode::FAILURE
        }
    }
}
