//! The real `hive-mcp bash` between a hand-written MCP client and a stand-in for the harness on a
//! real socket.

mod handshake;
mod harness;
mod tasks;
