//! TLS (RFC 8446, RFC 5246) by rustls: settings, and sessions over streams of the event loop.
//!
//! Used by the upstream client, by the gateway's listeners and, for settings alone, by the load
//! generator, which has an event loop of its own.
//!
//! | file | owns |
//! |---|---|
//! | `client`, `no_verification` | which certificates a client trusts |
//! | `server` | the certificates of a server, by server name |
//! | `session` | [`Session`]: one connection |
//! | `io` | [`Io`]: a session for HTTP/2 |

#![forbid(unsafe_code)]

mod client;
mod io;
mod no_verification;
mod server;
mod session;

pub use client::{Trust, client_settings};
pub use io::{Flusher, Io, Writes};
pub use server::{CertificateFiles, Chosen, Open, ServerSettings};
pub use session::Session;
