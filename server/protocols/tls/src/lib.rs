//! TLS (RFC 8446, RFC 5246) by rustls: settings, and sessions over streams of the event loop.
//!
//! Used by the upstream client, by the gateway's listeners and, for settings alone, by the load
//! generator, which has an event loop of its own.
//!
//! | file | owns |
//! |---|---|
//! | `client`, `no_verification` | which certificates a client trusts |
//! | `options` | what an operator sets for a listener |
//! | `server` | [`ServerSettings`]: the settings of a listener's sessions |
//! | `certificates` | the certificates of a server, by server name |
//! | `issued` | [`Issued`]: certificates that the server obtains itself, and its responses to challenges |
//! | `name_budget` | how many names without a certificate a client may request |
//! | `credential` | [`Credential`]: one of them, with its key |
//! | `client_verification` | whether certificates of clients are valid |
//! | `ticket_keys` | [`TicketKeys`]: keys of session tickets |
//! | `session` | [`Session`]: one connection |
//! | `session_facts` | [`SessionFacts`]: what a handshake has negotiated |
//! | `client_certificate`, `certificate_fields`, `distinguished_name`, `der` | a client's certificate as variables |
//! | `io` | [`Io`]: a session for HTTP/2 |

#![forbid(unsafe_code)]

mod certificate_fields;
mod certificates;
mod client;
mod client_certificate;
mod client_verification;
mod credential;
mod der;
mod distinguished_name;
mod io;
mod issued;
mod name_budget;
mod no_verification;
mod options;
mod server;
mod session;
mod session_facts;
#[cfg(test)]
mod tests;
mod ticket_keys;

pub use client::{Trust, client_settings};
pub use credential::{Credential, Facts};
pub use io::{Flusher, Io};
pub use issued::Issued;
pub use options::{
    CertificateFiles, CertificateSource, ClientAuthorities, MinimumVersion, Open, ServerOptions,
};
pub use server::{Chosen, ServerSettings};
pub use session::Session;
pub use session_facts::{ClientCertificate, QuicSession, SessionFacts};
pub use ticket_keys::TicketKeys;
