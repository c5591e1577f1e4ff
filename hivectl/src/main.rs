//! The binary `hivectl`.

use std::process::ExitCode;

fn main() -> ExitCode {
    hivectl::main()
}
