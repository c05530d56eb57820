//! RFC 7541 5.2 and appendix B.

use super::*;
use proptest::prelude::*;

fn encoded(text: &[u8]) -> Vec<u8> {
    let mut code = Vec::new();
    encode(text, &mut code);
    assert_eq!(code.len(), encoded_len(text));
    code
}

fn decoded(code: &[u8]) -> Result<Vec<u8>, HuffmanError> {
    let mut text = b"before".to_vec();
    let result = decode(code, &mut text);
    assert!(text.starts_with(b"before"));
    assert!(result.is_ok() || text.len() == 6);
    result.map(|()| text.split_off(6))
}

/// The bits of `pattern`, padded with ones.
fn bits(pattern: &str) -> Vec<u8> {
    let bits: Vec<u8> = pattern.bytes().filter(|bit| b"01".contains(bit)).collect();
    let byte = |bits: &[u8]| {
        (0..8).fold(0, |byte, at| byte << 1 | u8::from(bits.get(at).is_none_or(|bit| *bit == b'1')))
    };
    bits.chunks(8).map(byte).collect()
}

#[test]
fn codes_are_those_of_appendix_b() {
    for (symbol, code) in [
        (0, "11111111 11000"),
        (1, "11111111 11111111 1011000"),
        (b'\n', "11111111 11111111 11111111 111100"),
        (b' ', "010100"),
        (b'!', "11111110 00"),
        (b'0', "00000"),
        (b'a', "00011"),
        (b'z', "1111011"),
        (b'~', "11111111 11101"),
        (0x7f, "11111111 11111111 11111111 1100"),
        (0xff, "11111111 11111111 11111011 10"),
    ] {
        assert_eq!(encoded(&[symbol]), bits(code), "{symbol}");
        assert_eq!(decoded(&bits(code)).unwrap(), [symbol], "{symbol}");
    }
}

#[test]
fn every_byte_and_every_pair_of_bytes_is_encoded_and_decoded() {
    for first in 0..=255 {
        for second in 0..=255 {
            let text = [first, second];
            assert_eq!(decoded(&encoded(&text)).unwrap(), text);
        }
    }
}

#[test]
fn names_are_encoded_in_lower_case() {
    let mut code = Vec::new();
    encode_as::<true>(b"X-Powered-By[", &mut code);
    assert_eq!(code, encoded(b"x-powered-by["));
    assert_eq!(encoded_len_as::<true>(b"X-Powered-By["), code.len());
}

#[test]
fn padding_is_at_most_seven_bits_of_one() {
    assert_eq!(decoded(b"").unwrap(), b"");
    assert_eq!(decoded(&bits("00011 111")).unwrap(), b"a");
    assert_eq!(decoded(&bits("1111011 1")).unwrap(), b"z");
    assert_eq!(decoded(&bits("00000 00000 00000 1")).unwrap(), b"000");
    for padding in ["00011 000", "00011 110", "00011 011", "00011 111 11111111", "11111111"] {
        assert_eq!(decoded(&bits(padding)), Err(HuffmanError), "{padding}");
    }
    for bytes in 1..20 {
        assert_eq!(decoded(&vec![0xff; bytes]), Err(HuffmanError), "{bytes}");
    }
}

#[test]
fn end_of_string_and_incomplete_codes_are_rejected() {
    let eos = "11111111 11111111 11111111 111111";
    for code in [eos, &format!("00011 {eos}"), &format!("{eos} 00011"), &format!("{eos} {eos}")] {
        assert_eq!(decoded(&bits(code)), Err(HuffmanError), "{code}");
    }
    // The code of LF without its last eight bits.
    assert_eq!(decoded(&bits("11111111 11111111 111111 00")), Err(HuffmanError));
}

proptest! {
    #[test]
    fn strings_survive(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(decoded(&encoded(&text)).unwrap(), text);
    }

    #[test]
    fn text_survives(text in "[ -~]{0,300}") {
        prop_assert_eq!(decoded(&encoded(text.as_bytes())).unwrap(), text.as_bytes());
    }

    #[test]
    fn accepted_code_has_one_encoding(code in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(text) = decoded(&code) {
            prop_assert_eq!(encoded(&text), code);
        }
    }
}
