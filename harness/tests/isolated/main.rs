//! The journeys of `hive serve` again, with claude inside the fence: pipes, signals, exit codes and
//! the lock are as before.

mod probe;
mod report;
#[path = "../journeys/serve.rs"]
mod serve;
#[path = "../journeys/support/mod.rs"]
mod support;

const ISOLATED: bool = true;
