//! The real `hive-mcp bash` between a hand-written MCP client and a harness that is played over a
//! real socket.

mod handshake;
mod harness;
mod tasks;
