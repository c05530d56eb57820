//! Announces HTTP/3 to the clients of other protocols (RFC 7838 3).
//!
//! Called by the writer of responses. Invariant: a server that stops announces nothing.

use crate::client::Client;
use outboard_http1::Version;
use std::io::Write;

/// How long a client remembers it.
const MAX_AGE_S: u32 = 86_400;

/// The UDP port to announce, if there is one.
pub(crate) fn port(client: &Client, version: Version) -> Option<u16> {
    let is_announced = client.listener.http3 && version != Version::Http3;
    if !is_announced || client.context.is_draining() {
        return None;
    }
    client.transport.local_address().map(|local| local.port())
}

/// Writes the header line, if there is a port.
pub(crate) fn write(out: &mut Vec<u8>, port: Option<u16>) {
    let Some(port) = port else { return };
    let _ = write!(out, "Alt-Svc: h3=\":{port}\"; ma={MAX_AGE_S}\r\n");
}
