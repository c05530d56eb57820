//! Blocks of a peer: the examples, limits, and malformed ones.

use super::examples::{
    Example, REQUESTS, REQUESTS_IN_HUFFMAN_CODE, RESPONSES, RESPONSES_IN_HUFFMAN_CODE,
    SINGLE_FIELDS,
};
use super::*;

fn check_examples(decoder: &mut Decoder, examples: &[Example]) {
    for example in examples {
        assert_eq!(decode(decoder, &bytes(example.hex)).unwrap(), fields(example.fields));
        assert_eq!(decoder.table().len(), example.table_entries);
        assert_eq!(decoder.table().size(), example.table_bytes);
    }
}

#[test]
fn examples_of_appendix_c_are_decoded() {
    for example in SINGLE_FIELDS {
        check_examples(&mut Decoder::new(4096), &[example]);
    }
    for examples in [REQUESTS, REQUESTS_IN_HUFFMAN_CODE] {
        check_examples(&mut Decoder::new(4096), &examples);
    }
    for examples in [RESPONSES, RESPONSES_IN_HUFFMAN_CODE] {
        let mut decoder = Decoder::new(4096);
        assert_eq!(decode(&mut decoder, &bytes("3fe101")).unwrap(), []);
        check_examples(&mut decoder, &examples);
    }
}

#[test]
fn malformed_blocks_are_rejected() {
    use DecodeError::*;
    for (block, error) in [
        ("80", InvalidIndex),
        ("be", InvalidIndex),
        ("7f00", InvalidIndex),
        ("ff808080808080808080", IntegerOverflow),
        ("ffffffffffffffff7f", InvalidIndex),
        ("ff8080808080808080", Truncated),
        ("7e00", InvalidIndex),
        ("0f3000", InvalidIndex),
        ("1f3000", InvalidIndex),
        ("40", Truncated),
        ("4001", Truncated),
        ("400161", Truncated),
        ("40016105", Truncated),
        ("4001610561626364", Truncated),
        ("007fffffffffffffffff", Truncated),
        ("007fffffffffffffff7f", Truncated),
        ("4001618100", InvalidHuffmanCode),
        ("40016181ff", InvalidHuffmanCode),
        ("400161821fff", InvalidHuffmanCode),
        ("40016184ffffffff", InvalidHuffmanCode),
        ("3fe21f", TableTooLarge),
        ("3fffffffffffffff3f", TableTooLarge),
        ("203fe21f", TableTooLarge),
        ("8220", LateTableSizeUpdate),
        ("823fe11f", LateTableSizeUpdate),
        ("203f", Truncated),
    ] {
        let result = decode(&mut Decoder::new(4096), &bytes(block));
        assert_eq!(result, Err(error), "{block}");
    }
}

#[test]
fn the_table_size_is_updated_at_the_start_of_a_block() {
    let mut decoder = Decoder::new(100);
    let custom = fields(&[("a", "b")]);
    // The peer has not read the settings: the default size.
    assert_eq!(decode(&mut decoder, &bytes("3fe11f 4001610162")), Ok(custom.clone()));
    decoder.set_table_size(100);
    let missing = Err(DecodeError::MissingTableSizeUpdate);
    assert_eq!(decode(&mut decoder, &bytes("be")), missing);
    assert_eq!(decode(&mut decoder, &bytes("3f46be")), Err(DecodeError::TableTooLarge));
    assert_eq!(decode(&mut decoder, &bytes("3f45be")), Ok(custom));
    // Eviction by 0, and 100 again.
    assert_eq!(decode(&mut decoder, &bytes("203f45be")), Err(DecodeError::InvalidIndex));
    assert_eq!(decoder.table().capacity(), 100);
}

#[test]
fn an_entry_may_be_evicted_by_one_with_its_name() {
    let mut decoder = Decoder::new(4096);
    // A table of 40 bytes; "custom": "", then its name with the value "xy".
    let block = bytes("3f09 40 06 637573746f6d 00 7e 02 7879 be");
    let expected = fields(&[("custom", ""), ("custom", "xy"), ("custom", "xy")]);
    assert_eq!(decode(&mut decoder, &block), Ok(expected));
    assert_eq!((decoder.table().len(), decoder.table().size()), (1, 40));
}

#[test]
fn a_list_that_is_too_long_keeps_the_table_in_step() {
    let mut decoder = Decoder::new(4096);
    // "a": "b" three times, with indexing; a field counts 34 bytes.
    let block = bytes("400161016240016101634001610164");
    let (list, end) = decode_within(&mut decoder, &block, 68).unwrap();
    assert_eq!(list, fields(&[("a", "b"), ("a", "c")]));
    assert_eq!(end, FieldSection::TooLong);
    assert_eq!(decode(&mut decoder, &bytes("be")), Ok(fields(&[("a", "d")])));
    assert_eq!(decode_within(&mut decoder, &block, 102).unwrap().1, FieldSection::Complete);
}

#[test]
fn a_rejected_field_keeps_the_table_in_step() {
    let mut decoder = Decoder::new(4096);
    let mut count = 0;
    let end = decoder.decode(&bytes("40016101624001610163"), 1 << 20, |_, value| {
        count += 1;
        ControlFlow::Break(value.to_vec())
    });
    assert_eq!((end, count), (Ok(FieldSection::Stopped(b"b".to_vec())), 1));
    assert_eq!(decode(&mut decoder, &bytes("bebf")), Ok(fields(&[("a", "c"), ("a", "b")])));
}

#[test]
fn references_to_a_large_entry_end_the_connection() {
    let mut decoder = Decoder::new(4096);
    let value = vec![b'x'; 4000];
    let entry = [&bytes("4001617fa11e")[..], &value].concat();
    assert_eq!(decode(&mut decoder, &entry).unwrap().len(), 1);
    let block = vec![0xbe; 16_384];
    assert_eq!(decode_within(&mut decoder, &block, 65_536), Err(DecodeError::ListFarTooLong));
    // The same for its name in new entries.
    let mut decoder = Decoder::new(4096);
    let entry = [&bytes("407fa11e")[..], &value, &[0]].concat();
    assert_eq!(decode(&mut decoder, &entry).unwrap().len(), 1);
    let block = [0x7e, 0].repeat(8192);
    assert_eq!(decode_within(&mut decoder, &block, 65_536), Err(DecodeError::ListFarTooLong));
    let (list, end) = decode_within(&mut decoder, &block[..64], 65_536).unwrap();
    assert_eq!((list.len(), end), (16, FieldSection::TooLong));
}
