//! Any blocks from a peer: no panic, fields within the limit, and they survive an encoder and a decoder
//! of ours, whose tables stay the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_header_compression::hpack::{Decoder, Encoder, FieldSection};
use std::ops::ControlFlow;

const LIST_BYTES_MAX: usize = 1 << 12;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8], bytes_max: usize) -> Option<Fields> {
    let (mut fields, mut bytes) = (Fields::new(), 0);
    let end = decoder.decode(block, bytes_max, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        bytes += name.len() + value.len() + 32;
        ControlFlow::<()>::Continue(())
    });
    assert!(bytes <= bytes_max);
    assert!(!matches!(end, Ok(FieldSection::Stopped(()))));
    end.ok().map(|_| fields)
}

/// Takes the next block, behind its length in a byte.
fn next_block<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (&len, rest) = bytes.split_first()?;
    let (block, rest) = rest.split_at(usize::from(len).min(rest.len()));
    *bytes = rest;
    Some(block)
}

fuzz_target!(|input: (u16, &[u8])| {
    let (size, mut bytes) = input;
    let mut decoder = Decoder::new(usize::from(size));
    let (mut encoder, mut ours) = (Encoder::new(), Decoder::new(4096));
    encoder.set_table_size(usize::from(size));
    while let Some(block) = next_block(&mut bytes) {
        let Some(fields) = decode(&mut decoder, block, LIST_BYTES_MAX) else { return };
        for _ in 0..2 {
            let mut again = Vec::new();
            let mut writer = encoder.begin(&mut again);
            fields.iter().for_each(|(name, value)| writer.field(name, value));
            let decoded = decode(&mut ours, &again, LIST_BYTES_MAX).unwrap();
            assert!(decoded.iter().zip(&fields).all(|(decoded, field)| {
                decoded.0 == field.0.to_ascii_lowercase() && decoded.1 == field.1
            }));
            assert_eq!(decoded.len(), fields.len());
        }
        decoder.set_table_size(usize::from(size));
    }
});
