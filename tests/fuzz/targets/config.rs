//! libFuzzer's side of `hive_fuzz::config`; it holds no property of its own.
//!
//! Invariant: what fails here fails in the test `corpus` too, once the input is in the corpus.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hive_fuzz::config::check(bytes));
