//! HTTP/3 without I/O (RFC 9114): the server's side, and the client's as far as the load generator
//! needs it.
//!
//! Called by the owner of a QUIC connection, which passes on the bytes of each stream and sends what is
//! written. Fields are compressed by `outboard-header-compression`; `outboard-http-semantics` has the
//! rules for them.
//!
//! Invariants: no input panics; a malformed head is rejected before it is reported; what is stored
//! for a stream is an incomplete field section.
//!
//! | file | owns |
//! |---|---|
//! | `connection` | [`Connection`], its [`Config`] and [`Event`]s |
//! | `connection/request_stream` | the frames of a request |
//! | `connection/control_stream`, `connection/unidirectional_stream` | the client's other streams |
//! | `connection/shared` | what streams share: the QPACK decoder, limits |
//! | `client` | [`ClientConnection`], its [`ClientConfig`] and [`ClientEvent`]s |
//! | `client/request` | requests as bytes |
//! | `client/response_stream`, `client/server_streams` | the streams that a server sends on |
//! | `client/shared` | what they share |
//! | `response` | [`ResponseHead`] |
//! | `frame`, `stream_type`, `varint` | the wire format |
//! | `skipped_input` | the account of unknown frames and streams, for both ends |
//! | `settings` | [`Settings`] |
//! | `error` | [`ErrorCode`], [`ConnectionError`], [`StreamError`] |
//!
//! # Examples
//!
//! ```
//! use outboard_http3::{Config, Connection, Event};
//!
//! let mut connection = Connection::new(Config::default());
//! // HEADERS with GET, https, the path / and the authority a.test, by the static table.
//! let request = b"\x01\x0d\x00\x00\xd1\xd7\xc1\x50\x06a.test";
//! let mut is_request = false;
//! let received = connection.receive(0, request, true, |event| {
//!     if let Event::Head { head, is_end: true, .. } = event {
//!         is_request = head.method() == b"GET" && head.authority() == b"a.test";
//!     }
//! });
//! assert!(received.is_ok() && is_request);
//!
//! let mut response = Vec::new();
//! connection.write_fields(&mut response, |fields| {
//!     fields.status(200);
//!     fields.field(b"Content-Length", b"2");
//! });
//! Connection::write_data_head(&mut response, 2);
//! response.extend_from_slice(b"hi");
//! ```
#![forbid(unsafe_code)]

mod client;
mod connection;
mod error;
mod frame;
mod response;
mod settings;
mod skipped_input;
mod stream_type;
mod varint;

pub use client::{ClientConfig, ClientConnection, ClientEvent, RequestLine, write_request};
pub use connection::{Config, Connection, Event, Received};
pub use error::{ConnectionError, ErrorCode, StreamError};
pub use frame::{FramePart, FrameReader, frame_type};
pub use outboard_header_compression::qpack::SectionWriter;
pub use outboard_http_semantics::{Fields, MalformedFields, Priority, RequestHead};
pub use response::ResponseHead;
pub use settings::Settings;
pub use varint::{VARINT_MAX, read_varint, write_varint};
