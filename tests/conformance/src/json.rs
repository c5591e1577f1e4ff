//! Messages of the contract in JSON, with errors that a case can print.

use anyhow::{Context as _, Result};
use prost_reflect::MethodDescriptor;

pub(crate) use hive_client::json::{decode, encode};

/// Returns an RPC by its name, as in `MessageService/SendMessage`.
pub(crate) fn method(name: &str) -> Result<MethodDescriptor> {
    hive_client::json::method(name).with_context(|| format!("the contract has no RPC {name}"))
}

/// Returns the path of an RPC.
pub(crate) fn path(method: &MethodDescriptor) -> http::uri::PathAndQuery {
    let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
    path.parse().expect("names of RPCs are valid in paths")
}
