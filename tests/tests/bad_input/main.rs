//! Bad input: broken files, broken requests, and a host that does not do what is asked of it. Each
//! is a clear error, and nothing is lost.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod ask;
mod calls;
mod config;
mod database;
mod disk;
mod etags;
mod files;
mod garbage;
mod older_broker;
mod open_things;
mod pages;
mod policies;
mod requests;
mod sockets;
