//! Properties that must hold for any bytes from outside: one module per border, each with a
//! function `check` that panics on a violation.
//!
//! What it is not: it makes no input and keeps no corpus; libFuzzer does (`tests/fuzz`), and the
//! test `corpus` of the main suite does in short. Invariant: a check depends on its bytes alone: no
//! clock, no chance, no file, no socket.

pub mod config;
pub mod lines;
pub mod mutate;
pub mod prompts;
pub mod requests;
pub mod seen;
pub mod tools;

mod config_text;
mod nouns;

/// A border and its check.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the module, of libFuzzer's binary and of the corpus folder.
    pub name: &'static str,
    /// Panics where something does not hold.
    pub check: fn(&[u8]),
}

pub const TARGETS: [Target; 5] = [
    Target { name: "requests", check: requests::check },
    Target { name: "lines", check: lines::check },
    Target { name: "config", check: config::check },
    Target { name: "prompts", check: prompts::check },
    Target { name: "tools", check: tools::check },
];
