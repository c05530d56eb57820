//! Any bytes as Huffman code: no panic, and what is accepted has no other encoding; any bytes as text
//! survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outboard_header_compression::huffman::{decode, encode, encoded_len};

fn encoded(text: &[u8]) -> Vec<u8> {
    let mut code = Vec::new();
    encode(text, &mut code);
    assert_eq!(code.len(), encoded_len(text));
    code
}

fuzz_target!(|bytes: &[u8]| {
    let mut text = Vec::new();
    match decode(bytes, &mut text) {
        Ok(()) => assert_eq!(encoded(&text), bytes),
        Err(_) => assert!(text.is_empty()),
    }
    let mut again = Vec::new();
    decode(&encoded(bytes), &mut again).unwrap();
    assert_eq!(again, bytes);
});
