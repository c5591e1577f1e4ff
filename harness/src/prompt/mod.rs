//! What claude is told: the system prompt and the prompts of turns, from the texts in `prompts/`.
//!
//! What it is not: it reads no file and knows no process. Its invariant: nothing that a sender
//! wrote can act on the CLI, close its frame, or stand where Hive speaks.

mod earlier;
pub mod inert;
pub mod kin;
pub mod markers;
pub mod occasion;
pub mod placeholders;
pub mod system;
