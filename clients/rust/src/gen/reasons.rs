// Made by `make gen` from `proto/hive/v1/reason.proto`.

/// The reasons of refusals after which the identical request may succeed in a moment.
pub(crate) const SOON: &[&str] = &[
    "CALL_LIMIT",
    "STARTING",
    "DRAINING",
    "STORAGE_UNAVAILABLE",
];
