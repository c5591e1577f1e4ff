//! Bad input: broken files, broken requests, and a host that does not do what is asked of it. Each
//! is a clear error, and nothing is lost.

mod ask;
mod config;
mod database;
mod disk;
mod garbage;
mod open_things;
mod policies;
mod requests;
mod sockets;
