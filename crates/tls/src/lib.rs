//! TLS (RFC 8446, RFC 5246) by rustls: its settings, and sessions over streams of the loop.
//!
//! Called by the upstream client, by the gateway's listeners, and, for settings alone, by the load
//! generator, which has a loop of its own.
//!
//! | file | owns |
//! |---|---|
//! | `client`, `anyone` | whom a client trusts |
//! | `server` | the certificates that a server shows, by the name that was asked for |
//! | `session` | [`Session`]: one connection |
//! | `io` | [`Io`]: a session for HTTP/2 |

#![forbid(unsafe_code)]

mod anyone;
mod client;
mod io;
mod server;
mod session;

pub use client::{Trust, client_settings};
pub use io::Io;
pub use server::{CertificateFiles, Chosen, Open, ServerSettings};
pub use session::Session;
