//! The records on disk and their index.

mod support;

use outboard_http_semantics::Coding;
use outboard_page_cache::{
    DiskIndex, Entry, Fields, Key, Selector, compressed, decoded, encoded, tags_of,
};
use proptest::prelude::*;
use support::{lines, stored};

fn entry(path: &str, request: &str, size: usize) -> Entry {
    let response = "Cache-Control: max-age=60, stale-if-error=7\nVary: X\nCache-Tag: a,b\n\
                    Content-Type: text/plain\nServer: x";
    let storable = stored(request, response).unwrap();
    let fields = lines(response);
    let tags = tags_of(Fields(&fields));
    let body = vec![b'x'; size].into();
    let key = Key::new(true, b"a.test", path.as_bytes());
    Entry::new(key, 200, Fields(&fields), body, storable, tags)
}

#[test]
fn a_decoded_entry_equals_the_encoded_one() {
    let plain = entry("/a?b", "X: 1", 3000);
    let body = compressed(Coding::Gzip, &plain.plain().body).unwrap();
    for entry in [plain.clone(), plain.with_coding(Coding::Gzip, body.into())] {
        let back = decoded(&encoded(&entry)).unwrap();
        assert_eq!(format!("{back:?}"), format!("{entry:?}"));
        let mut index = DiskIndex::new(1 << 20);
        index.insert(1, &back, 100);
        assert_eq!(index.purge(&Selector::tags([&b"b"[..]])), [1]);
    }
}

proptest! {
    #[test]
    fn a_truncated_or_changed_entry_is_rejected(cut in 0_usize..500, flip in 0_usize..500, bit in 0_u8..8) {
        let whole = encoded(&entry("/a", "X: 1", 50));
        prop_assert!(decoded(&whole[..cut.min(whole.len() - 1)]).is_none());
        let mut changed = whole.clone();
        let at = flip % whole.len();
        changed[at] ^= 1_u8 << bit;
        prop_assert!(decoded(&changed).is_none());
        let longer = [&whole[..], b"x"].concat();
        prop_assert!(decoded(&longer).is_none());
    }

    #[test]
    fn selectors_come_back_as_they_were(texts in proptest::collection::vec(".{0,20}", 0..5)) {
        let mut bytes = Vec::new();
        let mut selectors = vec![Selector::All, Selector::Tags(vec![1, u64::MAX])];
        selectors.extend(texts.iter().map(|text| Selector::url(text.as_bytes())));
        selectors.extend(texts.iter().map(|text| Selector::prefix(text.as_bytes())));
        selectors.iter().for_each(|one| bytes.extend(one.encoded()));
        let mut rest = &bytes[..];
        for selector in &selectors {
            let (read, more) = Selector::decoded(rest).unwrap();
            prop_assert_eq!(&read, selector);
            rest = more;
        }
        prop_assert!(rest.is_empty());
        if bytes.len() > 20 {
            let cut = Selector::decoded(&bytes[5..bytes.len() - 1]);
            prop_assert!(cut.is_some());
        }
    }
}

#[test]
fn a_truncated_purge_selects_everything() {
    let bytes = Selector::url(b"/a").encoded();
    for length in 1..bytes.len() {
        assert_eq!(Selector::decoded(&bytes[..length]), Some((Selector::All, &b""[..])));
    }
}

#[test]
fn files_are_removed_when_replaced_purged_or_evicted() {
    let mut index = DiskIndex::new(300);
    assert_eq!(index.insert(1, &entry("/a", "X: 1", 1), 100), [0_u64; 0]);
    assert_eq!(index.insert(2, &entry("/a", "X: 2", 1), 100), [0_u64; 0]);
    assert_eq!(index.insert(3, &entry("/a", "X: 1", 2), 100), [1]);
    assert_eq!(index.insert(4, &entry("/b", "", 1), 150), [2]);
    assert_eq!((index.len(), index.used_bytes()), (2, 250));
    let found = |index: &DiskIndex, path: &str, wanted: &str| {
        let (key, request) = (Key::new(true, b"a.test", path.as_bytes()), lines(wanted));
        let rules = Default::default();
        index.find(&key, |one| one.variant().matches(Fields(&request), false, &rules))
    };
    assert_eq!(found(&index, "/a", "X: 1"), Some(3));
    assert_eq!(found(&index, "/a", "X: 2"), None);
    assert_eq!(index.purge(&Selector::url(b"https://a.test/a")), [3]);
    assert_eq!(found(&index, "/a", "X: 1"), None);
    assert_eq!(index.insert(5, &entry("/c", "", 1), 400), [4, 5]);
    assert!(index.is_empty() && index.used_bytes() == 0);
}
