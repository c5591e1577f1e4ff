//! `sandbox-probe`: see [`hive_tests::sandbox_probe`].

use std::path::PathBuf;
use std::process::ExitCode;

use hive_tests::sandbox_probe;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    match (arguments.next(), arguments.next()) {
        (Some(targets), Some(out)) => sandbox_probe::run(&targets, &out),
        _ => ExitCode::from(2),
    }
}
