//! The tools of the server `bash`: shell tasks, which the harness runs outside claude.

mod render;
pub(super) mod run;
pub(super) mod status;
