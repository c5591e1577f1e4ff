//! Maps for keys that the broker chooses, such as the numbers of agents and the paths of methods.
//!
//! Their hash takes a few cycles, where that of the standard library takes as long as a small
//! lookup. It is seeded, but it does not resist someone who chooses keys that collide. Invariant:
//! what clients choose, such as names of agents and ids of requests, is in maps of the standard
//! library.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// See the module.
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;
