//! The house rules, as tests: permitted imports, the form of files, the rules for the contract, and
//! the content of the pages.
//!
//! What it is not: it runs nothing of the product; it reads the tree. Invariant: each rule names
//! the file and line that breaks it, and each exception is an entry with a reason that fails when
//! it is no longer needed.

#[path = "../authority_table/mod.rs"]
mod authority_table;
mod contract;
mod english;
mod imports;
#[path = "../listed/mod.rs"]
mod listed;
mod memory;
mod pages;
mod sources;
mod tree;
