//! What the page cache keeps on disk: any bytes are an entry or none, an entry is written again so that
//! it is read as it was, and the log of purges ends.
#![no_main]

use flate2::Crc;
use libfuzzer_sys::fuzz_target;
use outboard_page_cache::{Selector, decoded, encoded};

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let mut sum = Crc::new();
    sum.update(bytes);
    let length = (bytes.len() as u64).to_le_bytes();
    check(&[b"OBpage\x00\x01", &sum.sum().to_le_bytes()[..], &length, bytes].concat());

    let mut rest = bytes;
    while let Some((selector, behind)) = Selector::decoded(rest) {
        assert!(behind.len() < rest.len());
        assert_eq!(Selector::decoded(&selector.encoded()), Some((selector, &b""[..])));
        rest = behind;
    }
});

fn check(bytes: &[u8]) {
    let Some(entry) = decoded(bytes) else { return };
    let written = encoded(&entry);
    let again = decoded(&written).expect("what was written is read");
    assert_eq!(encoded(&again), written);
    assert!(entry.key().bytes().ends_with(entry.key().path_and_query()));
    assert!(Selector::All.selects_entry(&entry));
    let _ = (entry.fields(), entry.representation(Some(b"gzip, br")).body.len());
    let _ = (entry.without_bodies(), entry.expired(1_700_000_000, 60));
}
