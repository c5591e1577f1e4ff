//! The program `hive`: reads the command line, runs what it says, and ends with the exit code that goes with it.

use std::io::{IsTerminal as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use clap::Parser as _;
use hive_harness::cli::{Cli, Command, McpArgs, PublishArgs, ScrubArgs, ServeArgs, WakeArgs};
use hive_harness::exit::{self, Failure};
use hive_harness::settings::Source;
use hive_harness::turn::output::Leaving;
use hive_harness::{boot, driver, publish, scrub, wake};
use tokio::runtime::Runtime;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Serve(args) => serve(*args),
        Command::Wake(args) => run_wake(args),
        Command::Publish(args) => run_publish(args),
        Command::Mcp(args) => Err(become_bridge(&args)),
        Command::Scrub(args) => return run_scrub(args),
    };
    match done {
        Ok(()) => ExitCode::from(exit::OK),
        Err(failure) => {
            // Nobody is left to tell that stderr is closed.
            let _ = writeln!(std::io::stderr(), "{failure}");
            failure.into()
        }
    }
}

fn serve(args: ServeArgs) -> Result<(), Failure> {
    let runtime = runtime()?;
    log("info");
    let home = std::env::var_os("HOME").map(Into::into);
    let source = Source::new(&args, std::env::args_os(), home);
    let config = source
        .load()
        .map_err(|error| Failure::new(exit::USAGE, error.to_string(), exit::chain(&error), "see hive serve --help"))?;
    let leaving = runtime.block_on(driver::run(config, source))?;
    drop(runtime);
    finish(&leaving)
}

fn run_wake(args: WakeArgs) -> Result<(), Failure> {
    let runtime = runtime()?;
    log("warn");
    runtime.block_on(wake::run(args))
}

fn run_publish(args: PublishArgs) -> Result<(), Failure> {
    let runtime = runtime()?;
    log("warn");
    runtime.block_on(publish::run(args))
}

/// Becomes the bridge that is installed beside this program, or on PATH. Comes back only where that fails.
fn become_bridge(args: &McpArgs) -> Failure {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(program) = boot::mcp::find(None, boot::own_program().ok().as_deref(), &path) else {
        let next = "install hive-mcp beside hive, or add its directory to PATH";
        return Failure::new(exit::FAILURE, "there is no hive-mcp", "it is neither beside hive nor on PATH", next);
    };
    let error = std::process::Command::new(&program).args(&args.arguments).exec();
    Failure::new(exit::FAILURE, "hive-mcp cannot be started", format!("{}: {error}", program.display()), "check the installation")
}

/// Every MCP server starts this way, so nothing is set up before.
fn run_scrub(args: ScrubArgs) -> ExitCode {
    let not_run = scrub::run(args);
    let _ = writeln!(std::io::stderr(), "{not_run}");
    ExitCode::from(not_run.code())
}

/// One thread is enough: the work is claude's and the broker's.
fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(exit::FAILURE, "cannot start", error.to_string(), ""))
}

fn finish(leaving: &Leaving) -> Result<(), Failure> {
    match leaving {
        Leaving::Drained => Ok(()),
        Leaving::Unanswered => Err(Failure::new(
            exit::UNREACHABLE,
            "ended without the broker's word that nothing is open",
            "the broker did not answer in time",
            "nothing is lost: the broker gives an open turn's mail back by itself",
        )),
        Leaving::Restart => Err(restart()),
    }
}

/// Becomes the program that is installed now, with the same arguments. Comes back only where that fails.
fn restart() -> Failure {
    let failed = |why: String| Failure::new(exit::FAILURE, "cannot start anew", why, "start hive serve again");
    let program = match boot::own_program() {
        Ok(program) => program,
        Err(error) => return failed(error.to_string()),
    };
    // Taking over was for the first start.
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--take-over");
    failed(std::process::Command::new(program).args(arguments).exec().to_string())
}

fn log(default: &str) {
    let filter = std::env::var("HIVE_LOG").or_else(|_| std::env::var("RUST_LOG")).unwrap_or_else(|_| default.to_owned());
    let filter = EnvFilter::builder().parse_lossy(filter);
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).with_target(false).init();
}
