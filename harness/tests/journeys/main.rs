//! Journeys of the program `hive` over real sockets, with the real broker and a scripted claude.

mod fence;
mod heartbeats;
mod leave;
mod scrub;
mod serve;
mod support;
mod wake;

/// Whether the harness is isolated; the tests of `isolated` are the same ones, isolated.
const ISOLATED: bool = false;
