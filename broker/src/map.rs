//! Maps for keys that no client chooses, such as the numbers of agents.
//!
//! Their hash takes a few cycles, where that of the standard library takes as long as a small
//! lookup. It is seeded, but it does not resist someone who chooses keys that collide. Invariant:
//! what clients choose, such as the ids of their requests, is in maps of the standard library.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// See the module.
pub(crate) type Map<K, V> = HashMap<K, V, RandomState>;
