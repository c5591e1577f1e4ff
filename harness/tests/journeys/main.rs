//! Journeys of the program `hive` over real sockets, with a played broker and a scripted claude.

mod scrub;
mod serve;
mod support;
mod wake;
