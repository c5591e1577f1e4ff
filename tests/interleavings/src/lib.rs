//! Nothing: the tests beside it run the broker's store under Shuttle, and need a package whose
//! build of the broker is theirs alone.
