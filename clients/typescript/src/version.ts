// The name and the version of the kit, as in package.json; a test compares them.

export const KIT = "hive-client";
export const VERSION = "0.1.0";
