//! The field compression of HTTP/2 (HPACK, RFC 7541) and HTTP/3 (QPACK, RFC 9204) without I/O.
//!
//! Called by the two ends of a connection, as server and as client. Decoders pass each field to a
//! closure, encoders append to a buffer.
//!
//! Invariants: no allocation per message once the buffers have grown; no input panics; the work for a
//! block is bounded by its length and the caller's limit.
//!
//! | file | owns |
//! |---|---|
//! | `hpack` | [`hpack::Decoder`] and [`hpack::Encoder`] |
//! | `qpack` | [`qpack::Decoder`] and [`qpack::Encoder`] |
//! | `huffman` | the code of strings, with `code` its tables |
//! | `integer`, `string` | the primitives of both formats |
//! | `dynamic_table`, `static_names` | the tables of both formats |
//! | `field_section` | the limit of a field section, and how its decoding ended |
//! | `indexing` | which fields get an entry |
//! | `error` | [`DecodeError`] |
#![forbid(unsafe_code)]

mod dynamic_table;
mod error;
mod field_section;
pub mod hpack;
pub mod huffman;
mod indexing;
mod integer;
pub mod qpack;
mod static_names;
mod string;

pub use error::DecodeError;
pub use field_section::FieldSection;
