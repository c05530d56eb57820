//! HTTP/3 (RFC 9114): the front end.
//!
//! `endpoint` accepts QUIC connections on the UDP port of a listener, and spawns the `task` of each. That moves bytes
//! between `outboard-http3`, which implements the protocol, and `outboard-quic`, the transport; a `stream` is what the
//! task of a request sees of them.

mod control_stream;
mod endpoint;
mod link;
mod open;
mod resets;
mod stream;
mod task;
mod windows;

pub(crate) use endpoint::Http3Endpoint;
pub use endpoint::Http3Socket;
