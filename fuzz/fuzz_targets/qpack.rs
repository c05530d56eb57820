//! Any field sections and instructions from a peer: no panic, fields within the limit, no section that
//! waits without need; and the fields survive an encoder and a decoder of ours.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_header_compression::qpack::{Decoded, Decoder, Encoder};
use std::ops::ControlFlow;

const SECTION_BYTES_MAX: usize = 1 << 12;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// The fields; `None` if the section is invalid or blocked.
fn decode(decoder: &mut Decoder, stream_id: u64, section: &[u8]) -> Option<Fields> {
    let (mut fields, mut bytes) = (Fields::new(), 0);
    let end = decoder.decode(stream_id, section, SECTION_BYTES_MAX, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        bytes += name.len() + value.len() + 32;
        ControlFlow::<()>::Continue(())
    });
    assert!(bytes <= SECTION_BYTES_MAX);
    match end.ok()? {
        Decoded::Blocked => None,
        Decoded::Section(_) => Some(fields),
    }
}

/// Takes the next piece, behind a byte with its length and whether it contains instructions.
fn next_piece<'a>(bytes: &mut &'a [u8]) -> Option<(bool, &'a [u8])> {
    let (&head, rest) = bytes.split_first()?;
    let (piece, rest) = rest.split_at(usize::from(head & 0x7f).min(rest.len()));
    *bytes = rest;
    Some((head & 0x80 != 0, piece))
}

fuzz_target!(|input: (u8, &[u8])| {
    let (capacity, mut bytes) = input;
    let mut decoder = Decoder::new(usize::from(capacity), 2);
    let (mut encoder, mut ours) = (Encoder::new(), Decoder::new(0, 0));
    let mut stream_id = 0;
    while let Some((is_instructions, piece)) = next_piece(&mut bytes) {
        if is_instructions {
            if decoder.read_instructions(piece).is_err() {
                return;
            }
            while decoder.next_unblocked().is_some() {}
            continue;
        }
        stream_id += 4;
        let Some(fields) = decode(&mut decoder, stream_id, piece) else { continue };
        let mut section = Vec::new();
        let mut writer = encoder.begin(&mut section);
        fields.iter().for_each(|(name, value)| writer.field(name, value));
        let decoded = decode(&mut ours, stream_id, &section).unwrap();
        assert!(decoded.iter().zip(&fields).all(|(decoded, field)| {
            decoded.0 == field.0.to_ascii_lowercase() && decoded.1 == field.1
        }));
        assert_eq!(decoded.len(), fields.len());
    }
    let _ = encoder.read_instructions(decoder.instructions());
});
