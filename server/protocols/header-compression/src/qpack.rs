//! QPACK, the field compression of HTTP/3 (RFC 9204).
//!
//! Called by both ends of a connection, each with a [`Decoder`] for what it receives and an [`Encoder`]
//! for what it sends. The caller owns the streams: it passes on the bytes of the peer's encoder and
//! decoder stream, and sends what [`Decoder::instructions`] contains.
//!
//! An error of [`Decoder::decode`] is [`DECOMPRESSION_FAILED`], one of [`Decoder::read_instructions`]
//! [`ENCODER_STREAM_ERROR`], one of [`Encoder::read_instructions`] [`DECODER_STREAM_ERROR`].
//!
//! # Examples
//!
//! ```
//! use outboard_header_compression::qpack::{Decoded, Decoder, Encoder, FieldSection};
//! use std::ops::ControlFlow;
//!
//! let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(0, 0));
//! let mut section = Vec::new();
//! let mut writer = encoder.begin(&mut section);
//! writer.status(200);
//! writer.field(b"Content-Type", b"text/css");
//! assert_eq!(section, [0, 0, 0xc0 | 25, 0xc0 | 51]);
//!
//! let end = decoder.decode(0, &section, 65_536, |name, value| {
//!     assert!(matches!((name, value), (b":status", b"200") | (b"content-type", b"text/css")));
//!     ControlFlow::<()>::Continue(())
//! })?;
//! assert_eq!(end, Decoded::Section(FieldSection::Complete));
//! # Ok::<(), outboard_header_compression::DecodeError>(())
//! ```

mod decoder;
mod encoder;
mod encoder_stream;
mod section;
mod static_table;
#[cfg(test)]
mod tests;

pub use crate::field_section::FieldSection;
pub use decoder::{Decoded, Decoder};
pub use encoder::{Encoder, SectionWriter};

/// The error code of a field section that cannot be decoded (RFC 9204 6).
pub const DECOMPRESSION_FAILED: u64 = 0x200;
/// The error code of an invalid instruction on the encoder stream (RFC 9204 6).
pub const ENCODER_STREAM_ERROR: u64 = 0x201;
/// The error code of an invalid instruction on the decoder stream (RFC 9204 6).
pub const DECODER_STREAM_ERROR: u64 = 0x202;
