//! Journeys: the real binaries over real sockets, each a scenario.

mod send;
