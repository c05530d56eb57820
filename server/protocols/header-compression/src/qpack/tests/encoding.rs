//! Sections for a peer: what they contain, and that it decodes them to the same fields.

use super::*;
use proptest::prelude::*;

fn encode(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let (mut encoder, mut section) = (Encoder::new(), Vec::new());
    let mut writer = encoder.begin(&mut section);
    fields.iter().for_each(|(name, value)| writer.field(name, value));
    section
}

#[test]
fn representations_follow_the_kind_of_field() {
    for (name, value, line) in [
        (":method", "GET", "d1"),
        (":status", "103", "d8"),
        (":status", "500", "ff08"),
        ("Access-Control-Allow-Headers", "*", "ff0c"),
        ("age", "~", "52 01 7e"),
        ("Set-Cookie", "~", "7e 01 7e"),
        ("authorization", "~", "7f45 01 7e"),
        ("proxy-authorization", "~", "3f06 aec3771a4b 15 7e"),
        ("cookie", "~", "75 01 7e"),
        ("cookie", "~~~~~~~~~~~~~~~~~~~~", "55 14 7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e7e"),
        ("~", "", "21 7e 00"),
    ] {
        let section = encode(&fields(&[(name, value)]));
        let decoded = decode(&mut Decoder::new(0, 0), 0, &section);
        assert_eq!(decoded, Ok(Some(fields(&[(&name.to_ascii_lowercase(), value)]))));
        if name != "proxy-authorization" {
            assert_eq!(section[2..], bytes(line), "{name}: {value}");
        } else {
            assert_eq!(section[2] & 0xf0, 0x30);
        }
    }
    let mut section = Vec::new();
    let mut encoder = Encoder::new();
    let mut writer = encoder.begin(&mut section);
    writer.sensitive_field(b"age", b"~");
    writer.sensitive_field(b"~", b"~");
    assert_eq!(section, bytes("0000 72 01 7e 31 7e 01 7e"));
}

#[test]
fn every_status_is_written() {
    for status in 100..1000u16 {
        let mut section = Vec::new();
        Encoder::new().begin(&mut section).status(status);
        let expected = fields(&[(":status", &status.to_string())]);
        assert_eq!(decode(&mut Decoder::new(0, 0), 0, &section), Ok(Some(expected)));
    }
}

#[test]
fn acknowledgments_of_what_was_not_sent_are_rejected() {
    let mut encoder = Encoder::new();
    for piece in ["40", "48 7f", "80", "80 01 44"] {
        assert_eq!(encoder.read_instructions(&bytes(piece)), Ok(()), "{piece}");
    }
    for (instruction, error) in [
        ("80", DecodeError::InvalidAcknowledgment),
        ("84", DecodeError::InvalidAcknowledgment),
        ("00", DecodeError::InvalidAcknowledgment),
        ("01", DecodeError::InvalidAcknowledgment),
        ("7f ffffffffffffffffffff", DecodeError::IntegerOverflow),
    ] {
        assert_eq!(Encoder::new().read_instructions(&bytes(instruction)), Err(error));
    }
}

proptest! {
    #[test]
    fn sections_survive(list in proptest::collection::vec(
        prop_oneof![
            ("(server|:path|content-type|cookie|etag|x-[ab])", "[ -~]{0,100}")
                .prop_map(|(name, value)| (name.into_bytes(), value.into_bytes())),
            (
                proptest::collection::vec(any::<u8>(), 0..60),
                proptest::collection::vec(any::<u8>(), 0..60),
            ),
        ],
        0..20,
    )) {
        let lower = |(name, value): &(Vec<u8>, Vec<u8>)| (name.to_ascii_lowercase(), value.clone());
        let expected = list.iter().map(lower).collect();
        let decoded = decode(&mut Decoder::new(0, 0), 0, &encode(&list));
        prop_assert_eq!(decoded, Ok(Some(expected)));
    }
}
