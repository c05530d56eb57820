//! Blocks for a peer: what they contain, and that it decodes them to the same fields.

use super::*;
use proptest::prelude::*;

fn response() -> Fields {
    fields(&[
        (":status", "200"),
        ("Server", "outboard"),
        ("Date", "Mon, 23 Nov 2026 20:28:38 GMT"),
        ("Content-Type", "text/html; charset=UTF-8"),
        ("Cache-Control", "no-store, private"),
        ("Vary", "Accept-Encoding"),
        ("Content-Length", "13417"),
        ("X-Frame-Options", "SAMEORIGIN"),
    ])
}

fn in_lower_case(fields: &Fields) -> Fields {
    let lower = |(name, value): &(Vec<u8>, Vec<u8>)| (name.to_ascii_lowercase(), value.clone());
    fields.iter().map(lower).collect()
}

#[test]
fn repeated_fields_are_indexed() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    let expected = in_lower_case(&response());
    let lengths = [0; 4].map(|_| {
        let block = encode(&mut encoder, &response());
        assert_eq!(decode(&mut decoder, &block).unwrap(), expected);
        block.len()
    });
    // Five fields get an entry when they occur first or again; the date and the length get none.
    assert_eq!(encoder.table().len(), 5);
    assert!(lengths[0] > lengths[1] && lengths[1] > lengths[2], "{lengths:?}");
    assert_eq!(lengths[2], 6 + (3 + 22) + (3 + 4));
    assert_eq!(lengths[2], lengths[3]);
}

#[test]
fn representations_follow_the_kind_of_field() {
    for (name, value, first_byte) in [
        (":method", "GET", 0x82),
        (":STATUS", "404", 0x8d),
        ("server", "a", 0x40 | 54),
        ("x-a", "b", 0x00),
        ("content-length", "0", 0x0f),
        ("set-cookie", "a=b", 0x1f),
        ("authorization", "a", 0x1f),
        ("cookie", "a=b", 0x1f),
        ("cookie", "session=0123456789abcdef", 0x0f),
    ] {
        let block = encode(&mut Encoder::new(), &fields(&[(name, value)]));
        assert_eq!(block[0], first_byte, "{name}: {value}");
    }
    for (name, first_byte) in [("x-a", 0x10), ("server", 0x1f)] {
        let mut block = Vec::new();
        Encoder::new().begin(&mut block).sensitive_field(name.as_bytes(), b"b");
        assert_eq!(block[0], first_byte);
    }
}

#[test]
fn every_status_is_written() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    for status in 100..1000u16 {
        let mut block = Vec::new();
        encoder.begin(&mut block).status(status);
        let expected = fields(&[(":status", &status.to_string())]);
        assert_eq!(decode(&mut decoder, &block), Ok(expected));
    }
}

#[test]
fn the_table_follows_the_peers_size() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(65_536));
    let exchange = |encoder: &mut Encoder, decoder: &mut Decoder| {
        let block = encode(encoder, &response());
        assert_eq!(decode(decoder, &block).unwrap(), in_lower_case(&response()));
        assert!(decoder.table().size() <= encoder.table().capacity());
        block
    };
    exchange(&mut encoder, &mut decoder);
    for (sizes, update) in [
        (&[65_536][..], ""),
        (&[4096], ""),
        (&[0], "20"),
        (&[0], ""),
        (&[100], "3f45"),
        (&[0, 4096], "203fe11f"),
        (&[1000, 20, 4096], "343fe11f"),
        (&[1000, 4096, 20], "34"),
    ] {
        for size in sizes {
            encoder.set_table_size(*size);
        }
        let last = *sizes.last().unwrap();
        decoder.set_table_size(last.max(4096));
        let block = exchange(&mut encoder, &mut decoder);
        assert!(block.starts_with(&bytes(update)), "{sizes:?}");
        assert!(!update.is_empty() || !matches!(block[0], 0x20..0x40), "{sizes:?}");
        assert_eq!(encoder.table().capacity(), last.min(4096));
        exchange(&mut encoder, &mut decoder);
    }
}

#[test]
fn large_fields_get_no_entry() {
    let mut encoder = Encoder::new();
    let large = fields(&[("server", "a"), ("cache-control", &"x".repeat(3000))]);
    for _ in 0..3 {
        encode(&mut encoder, &large);
    }
    assert_eq!(encoder.table().len(), 1);
}

#[test]
fn a_message_in_steady_state_allocates_no_memory() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
    let (list, mut block, mut number) = (response(), Vec::new(), 0u64);
    let mut exchange = || {
        for _ in 0..1000 {
            block.clear();
            number += 1;
            let mut writer = encoder.begin(&mut block);
            list.iter().for_each(|(name, value)| writer.field(name, value));
            writer.field(b"server", &number.to_le_bytes());
            let mut count = 0;
            let end = decoder.decode(&block, 1 << 16, |_, _| {
                count += 1;
                ControlFlow::<()>::Continue(())
            });
            assert_eq!((end, count), (Ok(FieldSection::Complete), 9));
        }
    };
    exchange();
    assert_eq!(allocation_counter::measure(exchange).count_total, 0);
}

/// Names and values with many repetitions.
fn any_field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let name = prop_oneof![
        "(server|:path|content-type|cookie|set-cookie|etag|x-[ab])".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..60),
    ];
    let value = prop_oneof![
        "[ab]{0,2}".prop_map(String::into_bytes),
        "[ -~]{0,300}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..60),
    ];
    (name, value)
}

proptest! {
    #[test]
    fn blocks_survive(
        blocks in proptest::collection::vec(proptest::collection::vec(any_field(), 0..20), 1..20),
        sizes in proptest::collection::vec(proptest::option::of(0..5000usize), 20),
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
        for (list, size) in blocks.iter().zip(sizes) {
            if let Some(size) = size {
                encoder.set_table_size(size);
                decoder.set_table_size(size);
            }
            let block = encode(&mut encoder, list);
            prop_assert_eq!(decode(&mut decoder, &block), Ok(in_lower_case(list)));
            prop_assert_eq!(encoder.table().size(), decoder.table().size());
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_rejected(
        blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 1..10),
    ) {
        let mut decoder = Decoder::new(4096);
        for block in blocks {
            let _ = decode_within(&mut decoder, &block, 300);
            prop_assert!(decoder.table().size() <= decoder.table().capacity());
        }
    }
}
