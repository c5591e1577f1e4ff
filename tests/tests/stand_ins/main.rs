//! The stand-ins against the real bridge: the scripted claude, and the real claude with the
//! stand-in Messages API.

mod api;
mod commands;
mod compaction;
mod duo;
mod ending;
mod real;
mod resident;
mod rig;
mod script;
mod shapes;
