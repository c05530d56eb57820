//! The HTTP/2 protocol (RFC 9113) of a server's connection, without I/O, with priorities (RFC 9218) and
//! extended CONNECT (RFC 8441). What a valid request is says `outboard-http-semantics`.
//!
//! Called by the HTTP server. One task owns the socket and the TLS session: it passes input to
//! [`Connection::receive`], hands the events to the tasks of the streams, writes
//! [`Connection::output`], and wakes the streams of [`Connection::next_writable`]. A stream's task calls
//! [`Connection::send_head`] and [`Connection::send_data`], and [`Connection::release`] for the body
//! that it has processed.
//!
//! Invariants: no allocation per request once the buffers have grown; no input panics; memory is
//! bounded by [`Settings`]; a client that causes more work than it does ends its connection with
//! ENHANCE_YOUR_CALM.
//!
//! | file | owns |
//! |---|---|
//! | `connection` | [`Connection`]: input, responses, output |
//! | `lifecycle` | how far it is, from the preface to GOAWAY |
//! | `head_decoder`, `data_reader` | the frames of requests that are being received |
//! | `sender`, `send_buffers` | the frames of responses, and data that waits |
//! | `early_priorities` | those of streams that are not open yet |
//! | `event` | [`Event`] |
//! | `stream`, `streams` | the state of a stream, the slab of the open ones |
//! | `scheduler` | whose data is sent next |
//! | `flow_control` | windows |
//! | `frame`, `settings` | the wire format |
//! | `output` | the bytes to write |
//! | `meter` | bounds on what a client may do how often |
//! | `error` | [`ConnectionError`], [`ErrorCode`], [`SendError`] |
//!
//! # Examples
//!
//! A server that sends the path of each request back:
//!
//! ```
//! use outboard_http2::{Connection, Event, PREFACE, Settings};
//!
//! /// Handles what was received, and returns what is to be written.
//! fn serve(connection: &mut Connection, input: &mut Vec<u8>) -> Vec<u8> {
//!     let now_ms = 1_000;
//!     let mut rest = &input[..];
//!     // After an error, the output has a GOAWAY, and nothing more is received.
//!     while let Ok(Some(event)) = connection.receive(&mut rest, now_ms) {
//!         match event {
//!             Event::Head { stream, head, .. } => {
//!                 let path = head.path().to_vec();
//!                 // The client may have reset the stream: then both calls have no effect.
//!                 let fields = [(&b"content-type"[..], &b"text/plain"[..])];
//!                 let _ = connection.send_head(stream, 200, fields, false);
//!                 let _ = connection.send_data(stream, &path, true);
//!             }
//!             Event::Data { stream, data, .. } => {
//!                 connection.release(stream, data.len());
//!             }
//!             _ => {}
//!         }
//!     }
//!     let consumed = input.len() - rest.len();
//!     input.drain(..consumed);
//!     let output = connection.output(32 << 10).to_vec();
//!     connection.sent(output.len());
//!     output
//! }
//!
//! let mut connection = Connection::new(Settings::default(), 0);
//! let mut input = PREFACE.to_vec();
//! // SETTINGS; HEADERS of stream 1 with GET, https and the path "/a".
//! input.extend(b"\0\0\0\x04\0\0\0\0\0");
//! input.extend(b"\0\0\x06\x01\x05\0\0\0\x01\x82\x87\x04\x02/a");
//! let output = serve(&mut connection, &mut input);
//! assert!(output.ends_with(b"\0\0\x02\0\x01\0\0\0\x01/a"));
//! ```
#![forbid(unsafe_code)]

mod connection;
mod data_reader;
mod early_priorities;
mod error;
mod event;
mod flow_control;
mod frame;
mod head_decoder;
mod lifecycle;
mod meter;
mod output;
mod scheduler;
mod send_buffers;
mod sender;
mod settings;
mod stream;
mod streams;

pub use connection::Connection;
pub use error::{ConnectionError, ErrorCode, SendError};
pub use event::Event;
pub use frame::{MAX_INPUT_BYTES, PREFACE};
pub use outboard_http_semantics::{Fields, Priority, RequestHead};
pub use sender::SendState;
pub use settings::Settings;
pub use stream::StreamKey;
