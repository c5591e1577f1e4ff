//! `hivectl top`: the hive on a screen, first what waits on the operator and what is stuck, then
//! the agents.
//!
//! ```text
//!  keys ─┐                                            ┌─► read, change: calls of the broker
//!  watch ┼─► driver ─ event ─► update(state) ─ action ┤
//!  clock ┘                         │                  └─► quit
//!                                  └─► view(state) ─► terminal
//! ```
//!
//! What it is not: the state knows no terminal, no broker and no clock; the [`driver`] has those.
//! There is no polling: an event of the broker's log triggers a read, and a tick a second only
//! updates the clocks on the screen.
//!
//! Invariant: however the program ends, the terminal is as it was.

mod act;
mod answer;
mod change;
mod details;
mod driver;
mod field;
mod hive;
mod input;
mod item;
mod key;
mod layout;
mod link;
mod press;
mod read;
mod reads;
mod screen;
mod span;
mod state;
mod tree;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use driver::run;
