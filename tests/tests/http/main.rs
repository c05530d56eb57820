//! HTTP/1.1 on the wire, byte for byte: what is answered, what is refused, and when a connection
//! ends.

#![forbid(unsafe_code)]

mod bodies;
mod connections;
mod forwarded;
mod methods;
mod refused;
mod upgrades;

use outboard_e2e::{Configured, Docroot, Protocol};
use std::sync::LazyLock;

/// Without PHP's own buffer, flush() means what it says.
const TABLES: &str = "output_buffering = 0\n[app.site.limits]\nbody = \"1 MiB\"\n";

/// One server for all tests that need nothing of their own.
fn site() -> &'static Configured {
    static SITE: LazyLock<Configured> = LazyLock::new(|| {
        let docroot = Docroot::of("http");
        docroot.writable("marks");
        Configured::start(docroot, &Configured::text(TABLES))
    });
    &SITE
}

/// The answer of a script to a request that keeps the connection; SERVER_PROTOCOL is that of the run.
fn plain(body: &str) -> String {
    answer("200 OK", "Content-type: text/plain;charset=UTF-8\r\n", "", body)
}

/// The same, to the last request of a connection.
fn plain_and_close(body: &str) -> String {
    answer("200 OK", "Content-type: text/plain;charset=UTF-8\r\n", "Connection: close\r\n", body)
}

fn answer(status: &str, fields: &str, connection: &str, body: &str) -> String {
    let protocol = Protocol::of_run();
    let (length, fields) = (body.len(), protocol.lines(fields));
    let body = body.replace("HTTP/1.1", &format!("HTTP/{}", protocol.version()));
    format!(
        "HTTP/1.1 {status}\r\nServer: outboard\r\n{fields}Content-Length: {length}\r\n{connection}\r\n\
         {body}"
    )
}
