//! The header compression of HTTP/2 for a client that PHP implements: one object for each connection.
//!
//! Called by `sapi/header_blocks.c`. What is sent uses no table, so that it does not depend on the peer's settings.
//! Invariants: fields of a block take at most [`BYTES_MAX`]; the functions do not call the engine, whose errors would
//! jump over Rust's frames.

use crate::callbacks::{bytes, slice};
use crate::engine::structures::{Pair, Str};
use outboard_header_compression::hpack::{DEFAULT_TABLE_BYTES, Decoder, Encoder, FieldSection};
use std::ffi::{c_char, c_void};
use std::ops::{ControlFlow, Range};

/// Names and values of a block, with 32 bytes for each field (RFC 9113 6.5.2).
const BYTES_MAX: usize = 1 << 18;

/// Both directions of a connection, and the last block of each.
struct HeaderBlocks {
    encoder: Encoder,
    decoder: Decoder,
    encoded: Vec<u8>,
    text: Vec<u8>,
    fields: Vec<Pair>,
}

impl HeaderBlocks {
    fn new() -> Self {
        let mut encoder = Encoder::new();
        encoder.set_table_size(0);
        let decoder = Decoder::new(DEFAULT_TABLE_BYTES);
        Self { encoder, decoder, encoded: Vec::new(), text: Vec::new(), fields: Vec::new() }
    }

    fn encode<'a>(&mut self, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> &[u8] {
        self.encoded.clear();
        let mut writer = self.encoder.begin(&mut self.encoded);
        fields.for_each(|(name, value)| writer.field(name, value));
        &self.encoded
    }

    /// The fields of a block, or `None` if it is malformed or too long.
    fn decode(&mut self, block: &[u8]) -> Option<&[Pair]> {
        let text = &mut self.text;
        text.clear();
        let mut places: Vec<[Range<usize>; 2]> = Vec::new();
        let mut store = |part: &[u8]| {
            text.extend_from_slice(part);
            text.len() - part.len()..text.len()
        };
        let visit = |name: &[u8], value: &[u8]| {
            places.push([store(name), store(value)]);
            ControlFlow::<()>::Continue(())
        };
        let FieldSection::Complete = self.decoder.decode(block, BYTES_MAX, visit).ok()? else {
            return None;
        };
        let text = &self.text;
        let pair = |[name, value]: [Range<usize>; 2]| Pair {
            name: Str::from(&text[name]),
            value: Str::from(&text[value]),
        };
        self.fields = places.into_iter().map(pair).collect();
        Some(&self.fields)
    }
}

/// A new connection; [`outboard_rs_header_blocks_free`] ends it.
#[unsafe(no_mangle)]
extern "C" fn outboard_rs_header_blocks_new() -> *mut c_void {
    Box::into_raw(Box::new(HeaderBlocks::new())).cast()
}

/// # Safety
/// `blocks` is of [`outboard_rs_header_blocks_new`], and is not used again.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_header_blocks_free(blocks: *mut c_void) {
    // SAFETY: this function's contract.
    drop(unsafe { Box::from_raw(blocks.cast::<HeaderBlocks>()) });
}

/// The block of fields; its bytes live until the next call.
///
/// # Safety
/// `blocks` is of [`outboard_rs_header_blocks_new`]; the fields are readable, `block` writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_header_blocks_encode(
    blocks: *mut c_void,
    fields: *const Pair,
    count: usize,
    block: *mut Str,
) {
    // SAFETY: this function's contract; C calls it from one thread.
    let blocks = unsafe { &mut *blocks.cast::<HeaderBlocks>() };
    // SAFETY: this function's contract.
    let field = |at: usize| unsafe { *fields.add(at) };
    // SAFETY: this function's contract.
    let texts = |pair: Pair| unsafe { (bytes(pair.name), bytes(pair.value)) };
    let encoded = blocks.encode((0..count).map(field).map(texts));
    // SAFETY: this function's contract.
    unsafe { block.write(Str::from(encoded)) };
}

/// The fields of a block, which live until the next call; false: it is malformed or too long.
///
/// # Safety
/// `blocks` is of [`outboard_rs_header_blocks_new`]; `block` is readable, the two last arguments are writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn outboard_rs_header_blocks_decode(
    blocks: *mut c_void,
    block: *const c_char,
    len: usize,
    fields: *mut *const Pair,
    count: *mut usize,
) -> bool {
    // SAFETY: this function's contract; C calls it from one thread.
    let blocks = unsafe { &mut *blocks.cast::<HeaderBlocks>() };
    // SAFETY: this function's contract.
    let block = unsafe { slice(block, len) };
    let Some(decoded) = blocks.decode(block) else { return false };
    // SAFETY: this function's contract.
    unsafe {
        fields.write(decoded.as_ptr());
        count.write(decoded.len());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pairs: &[Pair]) -> Vec<(&[u8], &[u8])> {
        // SAFETY: the pairs point into the object that they were read from.
        pairs.iter().map(|pair| unsafe { (bytes(pair.name), bytes(pair.value)) }).collect()
    }

    #[test]
    fn a_block_is_read_as_it_was_written_and_uses_no_table() {
        let (mut client, mut server) = (HeaderBlocks::new(), HeaderBlocks::new());
        let fields: [(&[u8], &[u8]); 3] =
            [(b":method", b"GET"), (b"x-own", b"value"), (b"x-empty", b"")];
        let lengths = [(); 3].map(|()| {
            let block = client.encode(fields.into_iter()).to_vec();
            assert_eq!(texts(server.decode(&block).unwrap()), fields);
            block.len()
        });
        assert_eq!(lengths[1], lengths[2], "a field is as long the third time as the second time");
    }

    #[test]
    fn a_table_of_the_peer_lasts_from_block_to_block() {
        let (mut peer, mut client) = (Encoder::new(), HeaderBlocks::new());
        let mut lengths = Vec::new();
        for _ in 0..4 {
            let mut block = Vec::new();
            peer.begin(&mut block).field(b"server", b"a name that is repeated");
            assert_eq!(
                texts(client.decode(&block).unwrap()),
                [(&b"server"[..], &b"a name that is repeated"[..])]
            );
            lengths.push(block.len());
        }
        assert!(lengths[3] < lengths[0], "{lengths:?}");
    }

    #[test]
    fn malformed_and_endless_blocks_are_refused() {
        let mut client = HeaderBlocks::new();
        assert!(client.decode(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).is_none());
        assert!(client.decode(&[0x80]).is_none());
        let mut block = Vec::new();
        let mut peer = Encoder::new();
        let mut writer = peer.begin(&mut block);
        for _ in 0..5 {
            writer.field(b"x", &[b'a'; 60_000]);
        }
        assert!(HeaderBlocks::new().decode(&block).is_none());
    }
}
