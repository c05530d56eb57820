//! Encoding and decoding are inverse, and decoding survives any bytes.

use super::*;
use proptest::prelude::*;

fn encoded(value: &[u8], headers: &[(&[u8], &[u8])], params: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
    fields[Field::Uri as usize] = value;
    let fixed = Fixed { content_length: Some(5), remote_port: 7, ..Fixed::default() };
    let mut out = Vec::new();
    let parts = RequestParts {
        fixed,
        fields,
        headers: headers.iter().copied(),
        params: params.iter().copied(),
    };
    encode(parts, &mut out);
    out
}

#[test]
fn ids_have_sixteen_digits() {
    assert_eq!(&request_id_text(0), b"0000000000000000");
    assert_eq!(&request_id_text(0x0123_4567_89ab_cdef), b"0123456789abcdef");
}

#[test]
fn every_string_is_followed_by_a_nul() {
    let out = encoded(b"/x?y", &[(b"Host", b"a")], &[(b"K", b"")]);
    let view = RequestView::decode(&out).unwrap();
    assert_eq!(view.field(Field::Uri), b"/x?y");
    assert_eq!(view.fixed.content_length, Some(5));
    assert_eq!(view.headers().collect::<Vec<_>>(), [(&b"Host"[..], &b"a"[..])]);
    assert_eq!(view.params().collect::<Vec<_>>(), [(&b"K"[..], &b""[..])]);
    let after = view.field(Field::Uri).as_ptr_range().end;
    let offset = after as usize - out.as_ptr() as usize;
    assert_eq!(out[offset], 0);
}

#[test]
fn a_frame_cut_anywhere_is_corrupt() {
    let out = encoded(b"/x", &[(b"Host", b"a")], &[]);
    for len in 0..out.len() {
        assert!(RequestView::decode(&out[..len]).is_err(), "{len} bytes");
    }
    let longer = [&out[..], b"\0"].concat();
    assert!(RequestView::decode(&longer).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(payload in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(view) = RequestView::decode(&payload) {
            prop_assert_eq!(view.headers().count(), usize::from(view.fixed.header_count));
        }
    }

    #[test]
    fn any_damage_to_a_valid_frame_is_survived(at in 0_usize..150, byte in any::<u8>()) {
        let mut out = encoded(b"/index.php", &[(b"Accept", b"*/*"), (b"Host", b"h")], &[]);
        let at = at % out.len();
        out[at] = byte;
        if let Ok(view) = RequestView::decode(&out) {
            let total: usize = view.headers().map(|(name, value)| name.len() + value.len()).sum();
            prop_assert!(total <= out.len());
        }
    }
}

#[test]
fn every_field_is_found_in_an_encoded_frame_without_decoding_it() {
    let texts: Vec<Vec<u8>> = (0..FIELD_COUNT).map(|index| vec![b'a'; index % 4]).collect();
    let mut out = b"a frame before".to_vec();
    let start = out.len();
    let fields = std::array::from_fn(|index| &texts[index][..]);
    let (headers, params) = (std::iter::empty(), std::iter::empty());
    encode(RequestParts { fixed: Fixed::default(), fields, headers, params }, &mut out);
    let payload = &out[start..];
    assert_eq!(RequestView::decode(payload).unwrap().fields(), fields);
    for field in [Field::Method, Field::Uri, Field::ScriptName, Field::RequestId] {
        assert_eq!(peek(payload, field), Some(&texts[field as usize][..]), "{field:?}");
        assert_eq!(peek(&payload[..FIXED_BYTES], field), None);
    }
    assert_eq!(peek(b"", Field::Method), None);
}

#[test]
fn a_count_that_does_not_match_the_lists_is_corrupt() {
    const HEADERS_AT: usize = 28;
    const PARAMS_AT: usize = 30;
    let valid = encoded(b"/x", &[(b"Host", b"a"), (b"A", b"")], &[(b"K", b"v")]);
    assert!(RequestView::decode(&valid).is_ok());
    for (at, count) in [(HEADERS_AT, 0_u16), (HEADERS_AT, 4), (PARAMS_AT, 0), (PARAMS_AT, u16::MAX)]
    {
        let mut out = valid.clone();
        out[at..at + 2].copy_from_slice(&count.to_le_bytes());
        assert!(RequestView::decode(&out).is_err(), "{count} at {at}");
    }
    // A border between the lists that moves takes no bytes of others.
    let mut out = valid;
    out[HEADERS_AT..HEADERS_AT + 2].copy_from_slice(&3_u16.to_le_bytes());
    out[PARAMS_AT..PARAMS_AT + 2].copy_from_slice(&0_u16.to_le_bytes());
    let view = RequestView::decode(&out).unwrap();
    assert_eq!(view.headers().last(), Some((&b"K"[..], &b"v"[..])));
    assert_eq!(view.params().next(), None);
}

#[test]
fn a_string_whose_end_is_another_byte_than_nul_is_corrupt() {
    let mut out = encoded(b"/x?y", &[], &[]);
    let at = out.windows(4).position(|bytes| bytes == b"/x?y").unwrap() + 4;
    assert_eq!(out[at], 0);
    out[at] = b'z';
    let what = "a string of a request frame does not end with NUL";
    assert_eq!(RequestView::decode(&out).map(|_| ()), Err(Corrupt { what }));
}

#[test]
fn an_unknown_detail_traces_nothing() {
    let mut raw = Fixed::default().encode();
    for (detail, expected) in [
        (0, TraceDetail::None),
        (1, TraceDetail::Spans),
        (2, TraceDetail::Statements),
        (3, TraceDetail::None),
        (255, TraceDetail::None),
    ] {
        raw[1] = detail;
        assert_eq!(Fixed::decode(&raw).trace_detail, expected, "{detail}");
    }
}
