//! The module of NixOS: what configurations render to, without NixOS and without a network.
//!
//! Nix evaluates `cases.nix` with a stand-in for the library of nixpkgs (`lib.nix`) and one for
//! NixOS's options (`nixos.nix`). What each of `configurations.nix` renders to is compared with a
//! file in `golden/`, which `HIVE_REGENERATE=1 cargo test -p hive-tests --test nix` writes.
//! Invariant: nothing is written outside of a temporary directory, not even a Nix store.

mod evaluation;
mod flake;
mod golden;
mod keys;
mod units;
