//! The JSON that commands print with `--json`: which schema each command prints, and the schemas
//! themselves.
//!
//! What it is not: used by the program. The reference, the files in `docs/schemas` and the tests
//! are generated from it.
//!
//! Invariant: a command that is not in [`PRINTED`] is in [`WITHOUT_JSON`], and what is printed fits
//! its schema; tests prove both.

mod document;
mod printed;

pub use self::document::documents;
pub use self::printed::{PRINTED, Printed, Shape, WITHOUT_JSON};
