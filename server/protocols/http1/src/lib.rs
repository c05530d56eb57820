//! The HTTP/1.1 wire format (RFC 9112) without I/O.
//!
//! Called by the gateway's connection loop, the upstream client and the load generator, which own the
//! sockets and the buffers. A parsed head has spans of the caller's buffer instead of references, so
//! that the connection can own both.
//!
//! Invariants: no allocation per message once the vectors have grown; no input panics; a message that
//! RFC 9112 allows two readings of is refused.
//!
//! | file | owns |
//! |---|---|
//! | `head`, `head_reader` | limits, spans, the loop over lines and its progress |
//! | `request`, `response` | [`RequestHead`], [`ResponseParser`] |
//! | `composed` | the head of a request by HTTP/2 or HTTP/3, for the same handlers |
//! | `field` | one field line; the table of a head's fields |
//! | `framing` | body length and persistence |
//! | `target`, `authority`, `path` | the request target and its parts |
//! | `readings` | what other programs may take a path for |
//! | `chunked_decoder`, `chunked_encoder` | the chunked transfer coding |
//! | `head_writer`, `status` | the outgoing head |
//! | `scan` | byte classes and the search for control bytes |
//!
//! # Examples
//!
//! A request is parsed as its bytes arrive:
//!
//! ```
//! use outboard_http1::{BodyFraming, HeadError, HeadLimits, HeadStatus, RequestHead};
//!
//! let bytes = b"PUT /note HTTP/1.1\r\nHost: example.org\r\nContent-Length: 2\r\n\r\nhi";
//! let (mut head, limits) = (RequestHead::new(), HeadLimits::default());
//! assert_eq!(head.parse(&bytes[..30], &limits)?, HeadStatus::Partial);
//! let HeadStatus::Complete { head_len } = head.parse(bytes, &limits)? else { panic!("all is there") };
//! assert_eq!(head.body(), BodyFraming::Length(2));
//! assert_eq!(&bytes[head_len..], b"hi");
//! # Ok::<(), HeadError>(())
//! ```
#![forbid(unsafe_code)]

mod authority;
mod changed;
mod chunk_extension;
mod chunked_decoder;
mod chunked_encoder;
pub mod client;
mod composed;
mod error;
mod field;
mod framing;
mod head;
mod head_reader;
mod head_writer;
mod location;
mod method;
mod path;
mod readings;
mod request;
mod response;
mod scan;
mod status;
mod target;

pub use authority::{is_valid as is_valid_authority, split_host_port};
pub use chunked_decoder::{Chunk, ChunkError, ChunkLimits, ChunkedDecoder, is_forbidden_trailer};
pub use chunked_encoder::{CHUNK_END, LAST_CHUNK, write_chunk, write_chunk_head, write_last_chunk};
pub use composed::ControlData;
pub use error::HeadError;
pub use framing::BodyFraming;
pub use head::{HeadLimits, HeadStatus, Version};
pub use head_writer::{
    InvalidHeader, write_content_length, write_head_end, write_header, write_request_line,
    write_status_line, write_status_line_with_reason, write_u64,
};
pub use location::{encode_path, merge_slashes, with_query};
pub use method::Method;
pub use path::{PathError, has_parent_segment, normalize_path};
pub use readings::{is_ambiguous_path, other_readings, path_for_upstream};
pub use request::RequestHead;
pub use response::{ResponseBody, ResponseParser};
pub use status::reason_phrase;
