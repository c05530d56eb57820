//! The Redis serialization protocol, RESP2 and RESP3, for clients and without I/O.
//!
//! Used by the entity store, by the shared tier of the page cache and by the load generator. A
//! [`Decoder`] turns bytes into events without allocating, a [`Reader`] turns them into [`Value`]s, and
//! [`command`] encodes a command. The specification is `redis.io/docs/latest/develop/reference/protocol-spec`.
//!
//! Invariants: the input may be cut anywhere; a hostile server cannot make a reader hold more than its
//! [`Limits`] allow; after an [`Error`] the connection must be closed, because the end of the malformed
//! value is unknown.
//!
//! ```
//! use outboard_resp::{Limits, Reader, Value, command};
//!
//! let mut request = Vec::new();
//! command(&mut request, &[b"GET", b"name"]);
//! assert_eq!(request, b"*2\r\n$3\r\nGET\r\n$4\r\nname\r\n");
//!
//! let mut reader = Reader::new(Limits { bytes: 1 << 20, values: 1 << 10 });
//! assert_eq!(reader.read(&mut &b"$5\r\nva"[..]), Ok(None));
//! assert_eq!(reader.read(&mut &b"lue\r\n"[..]), Ok(Some(Value::Bytes(b"value".to_vec()))));
//! ```

#![forbid(unsafe_code)]

mod decoder;
mod encoder;
mod value;

pub use decoder::{Decoder, Error, Event, Kind, LINE_BYTES_MAX, Limits};
pub use encoder::{array, bulk, command};
pub use value::{Reader, Value};
