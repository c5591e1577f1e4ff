//! Care of a hive: repairs by `hivectl doctor --fix`, and bundles for a report of a fault.

mod bundle;
mod fix;
mod secrets;
mod unpack;
