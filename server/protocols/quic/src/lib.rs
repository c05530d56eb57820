//! QUIC (RFC 9000) on the event loop, the server's side. It knows nothing of HTTP.
//!
//! `quinn-proto` implements the protocol without I/O; this crate owns the socket, the timers and the
//! connections. `outboard-http-server` is the [`Application`] that serves the streams. Invariants: everything
//! of an endpoint belongs to one event loop; nothing waits; what a client can have stored is bounded by
//! [`Settings`].
//!
//! | file | owns |
//! |---|---|
//! | `settings` | [`Settings`]: TLS and limits |
//! | `session` | TLS of a connection |
//! | `member` | [`Member`]: the socket of a thread, whose datagrams go by connection id |
//! | `socket` | what a socket sends and receives |
//! | `endpoint` | [`Endpoint`]: the task that receives, sends and keeps the timers |
//! | `endpoint/incoming` | whether a new connection is accepted, validated or refused |
//! | `tokens` | what proves the address of a client |
//! | `timers` | the next timer of each connection |
//! | `connection` | [`Connection`]: its streams and [`Event`]s |

#![forbid(unsafe_code)]

mod connection;
mod endpoint;
mod member;
mod passed_on;
mod relay;
mod session;
mod settings;
mod socket;
#[cfg(test)]
mod tests;
mod timers;
mod tokens;

pub use connection::{Connection, Event, Negotiated, Read, StreamClosed};
pub use endpoint::{Application, Endpoint};
pub use member::{Member, bind, members};
pub use settings::{InvalidSettings, Settings};
