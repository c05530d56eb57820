//! Connections in order that request nothing.

use super::client::Client;
use super::*;
use crate::abused::Abused;

/// More than `limits.memory` has room for; one address may have them.
const CONNECTIONS: usize = 2_500;

/// Those that have been idle longest make room for others, of which the last is served.
#[test]
fn idle_connections_do_not_take_the_memory_of_requests() {
    let site = Abused::start();
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| Client::plain(&site, &[])).collect();
    println!("{CONNECTIONS} idle connections: {} KiB more", site.more_bytes() >> 10);
    for client in clients.iter_mut().rev().take(100) {
        client.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &head(GET)));
        assert_eq!(client.body(1), b"Hello, world\n");
    }
    drop(clients);
    site.ends_unharmed("HTTP/2 idle");
}
