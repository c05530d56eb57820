//! An HTTP server for HTTP/1.1, HTTP/2 and HTTP/3: listeners, connections, request bodies, responses.
//!
//! The gateway implements [`Service`], which responds to each request; the server is generic over it
//! and knows neither PHP nor routes. Each event loop has a server of its own; limits hold for all together.
//!
//! ```text
//!  BoundListener ─▶ handshake ─▶ Connection ─▶ Service::respond(Request, ResponseWriter): head, body
//!        │              └ HTTP/2: a Connection per stream, over a MessageStream
//!        ├ HTTP/3: the same over QUIC, on the UDP port
//!        └ Connections: which of them are idle
//!                └ Census: how many, of whom, on all event loops
//! ```

#![forbid(unsafe_code)]

pub mod body_reader;
mod body_writer;
mod buffers;
mod census;
mod client;
mod connection;
mod connections;
mod counters;
pub mod direct;
mod direct_stay;
mod early_data;
pub mod error_page;
mod file_pages;
mod header_block;
mod http1;
mod http2;
mod http3;
mod http3_alternative;
mod listener;
mod listener_context;
mod message;
mod message_stream;
mod moved;
mod multiplexed;
mod pace;
mod peer;
pub mod proxy_protocol;
mod request;
mod response_facts;
mod response_fields;
mod response_writer;
mod server_context;
mod service;
mod spool;
mod spooled_writer;
#[cfg(any(test, feature = "testing"))]
mod test_client;
#[cfg(test)]
mod testing;
mod transport;
mod upgrade;

pub use body_writer::BodyWriter;
pub use census::ListenerLimits;
pub use client::Client;
pub use connections::Entry as ConnectionEntry;
pub use counters::Counters;
pub use header_block::HeaderBlock;
pub use http3::Http3Socket;
pub use listener::{
    BindError, BoundListener, InheritedListener, ListeningSocket, bind_before, bind_http3_before,
    is_among, is_among_datagrams,
};
pub use listener_context::{ListenerContext, Role, StreamPort};
pub use moved::MovedConnection;
pub use peer::{Forwarded, PeerInfo, is_ambiguous, is_claim, is_early_data};
pub use request::Request;
pub use response_facts::{Framing, HeadFacts, RequestFacts, Written};
pub use response_fields::ResponseFields;
pub use response_writer::{COPY_BYTES, ResponseWriter};
pub use server_context::{CountedTunnel, ServerContext, ServerShared};
pub use service::Service;
#[cfg(any(test, feature = "testing"))]
pub use test_client::{TestClient, serve_socket};
pub use transport::Transport;
pub use upgrade::{UpgradeHandler, Upgraded};
