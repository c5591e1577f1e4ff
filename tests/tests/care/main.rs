//! Care of a hive: repairs by `hivectl doctor --fix`.

mod fix;
