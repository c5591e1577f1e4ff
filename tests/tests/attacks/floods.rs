//! Floods: one agent makes all calls that it may, as fast as it gets answers. Excess calls are
//! refused with the limit, and the neighbours hardly notice.
//!
//! Invariant: a flood is judged by the neighbours' times compared with quiet rounds of the same
//! run, and by what the broker keeps of it.

#[allow(dead_code, reason = "another target uses the rest of it")]
mod flood;
mod kept;
mod kinds;
