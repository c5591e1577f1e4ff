//! `broker.metrics`: where the broker offers its metrics.
//!
//! Invariant: an address that passes is of this host alone, because metrics are sent in clear text
//! and without a password.

use core::net::SocketAddr;

use super::section::Section;
use super::sections::{line, path};
use super::values::Metrics;
use crate::limits::SOCKET_PATH_BYTES_MAX;

/// Reads the table, if `[broker]` has one.
pub(super) fn read(broker: &mut Section<'_, '_, '_>) -> Option<Metrics> {
    let span = broker.value("metrics")?.span();
    let table = broker.table("metrics")?;
    let mut section = Section::new(broker.key("metrics"), table, broker.findings());
    let has_socket = section.value("socket").is_some();
    let group_span = section.value("group").map(toml::Spanned::span);
    let listen_span = section.value("listen").map(toml::Spanned::span);
    let socket = socket(&mut section);
    let listen = listen(&mut section);
    match listen_span {
        Some(span) if has_socket => {
            let sentence =
                "`metrics` has a `socket` and a `listen`; leave one of them out".to_owned();
            section.object(span, "listen", sentence, None);
        }
        Some(_) | None => {}
    }
    if let (false, Some(span)) = (has_socket, group_span) {
        let sentence = "`group` belongs to a `socket`, and `metrics` has none; leave it out";
        section.object(span, "group", sentence.to_owned(), None);
    }
    section.finish();
    if table.is_empty() {
        let sentence = "`metrics` is empty; give it a `socket` or a `listen`, or leave it out";
        broker.object(span, "metrics", sentence.to_owned(), None);
    }
    socket.or(listen)
}

fn socket(section: &mut Section<'_, '_, '_>) -> Option<Metrics> {
    let span = section.value("socket")?.span();
    let group = line(section, "group");
    let path = path(section, "socket")?;
    let bytes = path.as_os_str().len();
    if bytes > SOCKET_PATH_BYTES_MAX {
        let sentence = format!(
            "`socket` has {bytes} bytes, more than the {SOCKET_PATH_BYTES_MAX} that Linux allows; choose a shorter path"
        );
        section.object(span, "socket", sentence, None);
        return None;
    }
    Some(Metrics::Socket { path, group })
}

fn listen(section: &mut Section<'_, '_, '_>) -> Option<Metrics> {
    let (text, span) = section.text("listen")?;
    let problem = match text.parse::<SocketAddr>() {
        Ok(address) if address.port() == 0 => "`listen` must have a port from 1 to 65535",
        Ok(address) if address.ip().is_loopback() => return Some(Metrics::Listen(address)),
        Ok(_) => {
            "`listen` must be an address of loopback, as 127.0.0.1:9464: metrics are sent in clear text and without a password, \
             so on another address the network could read them (on loopback every local user can); have a proxy with a password, \
             or the collector of this host, pass them on"
        }
        Err(_) => {
            "`listen` must be an address of loopback and a port, as 127.0.0.1:9464 or [::1]:9464"
        }
    };
    section.object(span, "listen", problem.to_owned(), None);
    None
}
