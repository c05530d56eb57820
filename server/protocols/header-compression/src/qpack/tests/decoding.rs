//! Sections and instructions of a peer: the examples, blocked streams, limits, and malformed ones.

use super::*;
use proptest::prelude::*;

const CAPACITY_220: &str = "3fbd01";
const AUTHORITY: &str = "c00f 7777772e6578616d706c652e636f6d";
const PATH: &str = "c10c 2f73616d706c652f70617468";
const CUSTOM: &str = "4a 637573746f6d2d6b6579 0c 637573746f6d2d76616c7565";

fn decoder_with(instructions: &[&str]) -> Decoder {
    let mut decoder = Decoder::new(4096, 100);
    decoder.read_instructions(&bytes(&instructions.concat())).unwrap();
    decoder.instructions().clear();
    decoder
}

#[test]
fn examples_of_appendix_b_are_decoded() {
    // B.1.
    let mut decoder = Decoder::new(220, 1);
    let section = bytes("0000 510b 2f696e6465782e68746d6c");
    let expected = fields(&[(":path", "/index.html")]);
    assert_eq!(decode(&mut decoder, 0, &section), Ok(Some(expected)));
    assert_eq!(decoder.instructions(), &[]);

    // B.2. The numbers of the examples are those of a table for 220 bytes: six entries.
    let section = bytes("0381 10 11");
    assert_eq!(decode(&mut decoder, 4, &section), Ok(None));
    decoder.read_instructions(&bytes(&[CAPACITY_220, AUTHORITY].concat())).unwrap();
    assert_eq!(decoder.next_unblocked(), None);
    decoder.read_instructions(&bytes(PATH)).unwrap();
    assert_eq!(decoder.next_unblocked(), Some(4));
    assert_eq!(decoder.next_unblocked(), None);
    let expected = fields(&[(":authority", "www.example.com"), (":path", "/sample/path")]);
    assert_eq!(decode(&mut decoder, 4, &section), Ok(Some(expected)));
    assert_eq!(std::mem::take(decoder.instructions()), bytes("01 01 84"));
    assert_eq!(decoder.table().size(), 106);

    // B.3.
    decoder.read_instructions(&bytes(CUSTOM)).unwrap();
    assert_eq!(std::mem::take(decoder.instructions()), bytes("01"));
    assert_eq!(decoder.table().size(), 160);

    // B.4.
    let section = bytes("0500 80 c1 81");
    assert_eq!(decode(&mut decoder, 8, &section), Ok(None));
    decoder.cancel_stream(8);
    assert_eq!(std::mem::take(decoder.instructions()), bytes("48"));
    decoder.read_instructions(&bytes("02")).unwrap();
    assert_eq!(decoder.next_unblocked(), None);
    assert_eq!(decoder.table().size(), 217);
    let expected =
        [(":authority", "www.example.com"), (":path", "/"), ("custom-key", "custom-value")];
    assert_eq!(decode(&mut decoder, 8, &section), Ok(Some(fields(&expected))));

    // B.5.
    decoder.read_instructions(&bytes("810d 637573746f6d2d76616c756532")).unwrap();
    assert_eq!((decoder.table().size(), decoder.table().len()), (215, 4));
    assert_eq!(decoder.table().get(0), Some((&b"custom-key"[..], &b"custom-value2"[..])));
    assert_eq!(decoder.table().get_absolute(0), None);
}

#[test]
fn every_kind_of_line_is_decoded() {
    let mut decoder = decoder_with(&["3fe11f", AUTHORITY, PATH, CUSTOM]);
    // Required Insert Count 3, Base 2.
    for (lines, expected) in [
        ("d1", (":method", "GET")),
        ("80", (":path", "/sample/path")),
        ("81", (":authority", "www.example.com")),
        ("10", ("custom-key", "custom-value")),
        ("5f 09 01 61", (":status", "a")),
        ("40 01 61", (":path", "a")),
        ("61 01 62", (":authority", "b")),
        ("00 01 61", ("custom-key", "a")),
        ("08 00", ("custom-key", "")),
        ("21 61 01 62", ("a", "b")),
        ("31 61 01 62", ("a", "b")),
        ("29 1f 81 1f", ("a", "a")),
        ("27 00 61626364656667 00", ("abcdefg", "")),
    ] {
        let section = [bytes("0480"), bytes(lines)].concat();
        assert_eq!(decode(&mut decoder, 0, &section), Ok(Some(fields(&[expected]))), "{lines}");
    }
}

#[test]
fn malformed_sections_are_rejected() {
    use DecodeError::*;
    for (section, error) in [
        ("", Truncated),
        ("00", Truncated),
        ("0000 80", InvalidIndex),
        ("0000 10", InvalidIndex),
        ("0000 40 00", InvalidIndex),
        ("0000 00 00", InvalidIndex),
        ("0000 ff24", InvalidIndex),
        ("0000 5f54 00", InvalidIndex),
        ("0000 ff80", Truncated),
        ("0000 51", Truncated),
        ("0000 51 02 61", Truncated),
        ("0000 22 61", Truncated),
        ("0000 51 81 00", InvalidHuffmanCode),
        ("0000 ff 80808080808080808080", IntegerOverflow),
        ("0080", InvalidBase),
        ("0083", InvalidBase),
        ("0483", InvalidBase),
        ("ff8101 00", InvalidRequiredInsertCount),
        ("ff02 00", InvalidRequiredInsertCount),
        ("01 00", InvalidRequiredInsertCount),
        // An entry that exists, but is not below the Required Insert Count.
        ("0300 10", InvalidIndex),
        ("0304 80", InvalidIndex),
    ] {
        let mut decoder = decoder_with(&["3fe11f", AUTHORITY, PATH, CUSTOM]);
        assert_eq!(decode(&mut decoder, 0, &bytes(section)), Err(error), "{section}");
    }
}

#[test]
fn malformed_instructions_are_rejected() {
    use DecodeError::*;
    for (instructions, error) in [
        ("3fe21f", TableTooLarge),
        ("3fffffffffffffff3f", TableTooLarge),
        ("3f 80808080808080808080", IntegerOverflow),
        ("4161 00", EntryTooLarge),
        ("3f02 41 62 01 62", EntryTooLarge),
        ("c0 00", EntryTooLarge),
        ("3fe11f 80 00", InvalidIndex),
        ("3fe11f 00", InvalidIndex),
        ("3fe11f ff24 00", InvalidIndex),
        ("3fe11f 6100 00", InvalidHuffmanCode),
        ("3fe11f 4161 81ff", InvalidHuffmanCode),
    ] {
        let result = Decoder::new(4096, 0).read_instructions(&bytes(instructions));
        assert_eq!(result, Err(error), "{instructions}");
    }
}

#[test]
fn incomplete_instructions_are_bounded() {
    let mut decoder = Decoder::new(100, 0);
    // A name of 2^20 bytes.
    decoder.read_instructions(&bytes("3f45 5fe1ff3f")).unwrap();
    let results: Vec<_> = (0..50).map(|_| decoder.read_instructions(&[b'a'; 10])).collect();
    assert_eq!(results.iter().position(Result::is_err), Some(42));
    assert_eq!(results[42], Err(DecodeError::EntryTooLarge));
}

#[test]
fn a_capacity_of_zero_works_without_the_dynamic_table() {
    let mut decoder = Decoder::new(0, 0);
    decoder.read_instructions(&bytes("20")).unwrap();
    decoder.cancel_stream(0);
    assert_eq!(decode(&mut decoder, 4, &bytes("0000 d1")), Ok(Some(fields(&[(":method", "GET")]))));
    assert_eq!(decoder.instructions(), &[]);
    let error = Err(DecodeError::InvalidRequiredInsertCount);
    assert_eq!(decode(&mut decoder, 4, &bytes("0200 80")), error);
    assert_eq!(decoder.read_instructions(&bytes("21")), Err(DecodeError::TableTooLarge));
}

#[test]
fn blocked_streams_are_limited() {
    let mut decoder = Decoder::new(4096, 2);
    let section = bytes("0200 80");
    for stream_id in [0, 4, 4, 0] {
        assert_eq!(decode(&mut decoder, stream_id, &section), Ok(None));
    }
    let error = Err(DecodeError::TooManyBlockedStreams);
    assert_eq!(decode(&mut decoder, 8, &section), error);
    decoder.cancel_stream(0);
    assert_eq!(decode(&mut decoder, 8, &section), Ok(None));
    decoder.read_instructions(&bytes(&["3fe11f", AUTHORITY].concat())).unwrap();
    assert_eq!((decoder.next_unblocked(), decoder.next_unblocked()), (Some(4), Some(8)));
    assert_eq!(decoder.next_unblocked(), None);
}

#[test]
fn the_required_insert_count_wraps() {
    // Three entries at most: numbers modulo six.
    let mut decoder = Decoder::new(110, 0);
    decoder.read_instructions(&bytes("3f4f")).unwrap();
    for number in 1..=40u64 {
        let digit = b'0' + (number % 10) as u8;
        decoder.read_instructions(&[0x41, b'a', 1, digit]).unwrap();
        let section = [(number % 6 + 1) as u8, 0, 0x80];
        let expected = vec![(b"a".to_vec(), vec![digit])];
        assert_eq!(decode(&mut decoder, number * 4, &section), Ok(Some(expected)));
    }
}

#[test]
fn a_section_that_is_too_long_is_acknowledged() {
    let mut decoder = decoder_with(&["3fe11f", AUTHORITY]);
    let mut count = 0;
    let mut decode = |section: &[u8]| {
        decoder.decode(4, section, 60, |_, _| {
            count += 1;
            ControlFlow::<()>::Continue(())
        })
    };
    let end = decode(&bytes("0200 80 80 80"));
    assert_eq!(end, Ok(Decoded::Section(FieldSection::TooLong)));
    let bomb = [&bytes("0200")[..], &[0x80; 1000]].concat();
    assert_eq!(decode(&bomb), Err(DecodeError::ListFarTooLong));
    assert_eq!(count, 2);
    assert_eq!(decoder.instructions(), &bytes("84"));
}

proptest! {
    #[test]
    fn instructions_in_pieces_are_the_same(
        instructions in proptest::collection::vec(any::<u8>(), 0..200),
        cut in 0..200usize,
    ) {
        let setup = bytes(&["3fe11f", AUTHORITY, PATH, CUSTOM].concat());
        let all = [setup, instructions].concat();
        let (mut whole, mut split) = (Decoder::new(4096, 0), Decoder::new(4096, 0));
        let result = whole.read_instructions(&all);
        let (first, second) = all.split_at(cut.min(all.len()));
        let first = split.read_instructions(first);
        let split_result = first.and_then(|()| split.read_instructions(second));
        prop_assert_eq!(split_result, result);
        prop_assert_eq!(split.table().inserted(), whole.table().inserted());
        prop_assert_eq!(split.table().get(0), whole.table().get(0));
    }

    #[test]
    fn any_section_is_decoded_or_rejected(
        section in proptest::collection::vec(any::<u8>(), 0..100),
        count in 0..5u8,
    ) {
        let mut decoder = decoder_with(&["3fe11f", AUTHORITY, PATH, CUSTOM]);
        let _ = decode(&mut decoder, 0, &section);
        let _ = decode(&mut decoder, 0, &[&[count, 0][..], &section].concat());
    }
}
