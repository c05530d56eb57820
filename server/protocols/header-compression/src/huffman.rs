//! The Huffman code of field names and values (RFC 7541 5.2 and appendix B).
//!
//! Called by `string` for both versions of HTTP. Invariant: a string has one encoding; padding that
//! RFC 7541 5.2 does not allow and the EOS symbol are errors.

mod code;
mod decoder;
mod encoder;
#[cfg(test)]
mod tests;

pub use decoder::{HuffmanError, decode};
pub use encoder::{encode, encoded_len};
pub(crate) use encoder::{encode_as, encoded_len_as};
