//! The input of claude: the system prompt and the prompts of turns, from the texts in `prompts/`.
//!
//! It reads no file and knows no process. Invariant: no text of a sender can act on the CLI, close
//! its frame, or appear as text of Hive.

mod earlier;
pub mod inert;
pub mod kin;
pub mod markers;
pub mod placeholders;
pub mod system;
pub mod trigger;
