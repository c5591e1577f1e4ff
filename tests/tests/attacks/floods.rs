//! Floods: one agent makes all calls that it may, as fast as it is answered. What is too much is
//! refused with the number, and the neighbours hardly notice.
//!
//! Invariant: a flood is judged by what the neighbours see in relation to quiet rounds of the same
//! run, and by what the broker keeps of it.

#[allow(dead_code, reason = "another target uses the rest of it")]
mod flood;
mod kept;
mod kinds;
