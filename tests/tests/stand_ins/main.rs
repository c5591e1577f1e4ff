//! The stand-ins against the real bridge: the scripted claude, and the real claude with the stand-in Messages API.

mod duo;
mod ending;
mod real;
mod rig;
mod script;
