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
