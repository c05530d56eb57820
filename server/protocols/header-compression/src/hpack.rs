//! HPACK, the field compression of HTTP/2 (RFC 7541).
//!
//! Called by both ends of a connection, each with a [`Decoder`] for what it receives and an [`Encoder`]
//! for what it sends. Invariant: after each block the dynamic tables of the two ends are the same.
//!
//! # Examples
//!
//! ```
//! use outboard_header_compression::hpack::{Decoder, Encoder, FieldSection};
//! use std::ops::ControlFlow;
//!
//! let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
//! let mut block = Vec::new();
//! let mut writer = encoder.begin(&mut block);
//! writer.status(200);
//! writer.field(b"Content-Type", b"text/html");
//!
//! let mut fields = Vec::new();
//! let end = decoder.decode(&block, 65_536, |name, value| {
//!     fields.push((name.to_vec(), value.to_vec()));
//!     ControlFlow::<()>::Continue(())
//! })?;
//! assert_eq!(end, FieldSection::Complete);
//! assert_eq!(fields[1], (b"content-type".to_vec(), b"text/html".to_vec()));
//! # Ok::<(), outboard_header_compression::DecodeError>(())
//! ```

mod decoder;
mod encoder;
mod static_table;
#[cfg(test)]
mod tests;

pub use crate::field_section::FieldSection;
pub use decoder::Decoder;
pub use encoder::{BlockWriter, Encoder};

/// The initial SETTINGS_HEADER_TABLE_SIZE of both sides (RFC 9113 6.5.2).
pub const DEFAULT_TABLE_BYTES: usize = 4096;
