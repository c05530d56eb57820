use super::segment::HEAD_BYTES;
use super::*;
use crate::record::Record;
use crate::store::tests::Folder;
use std::io;
use std::path::{Path, PathBuf};

fn record(version: u64, value: &[u8]) -> Record {
    Record { version, expires_ms: Some(version * 10), value: value.into() }
}

/// Three frames of two entries each; the file's path and where the frames end.
fn written(folder: &Path) -> (PathBuf, Vec<u64>) {
    let mut journal = Segment::create(folder, 5, 1 << 16).unwrap();
    let mut ends = Vec::new();
    for first in [1, 3, 5] {
        let mut frame = Frame::new();
        frame.push(b"put", first, Some(&record(first, b"some value")));
        frame.push(b"gone", first + 1, None);
        journal.append(&mut frame).unwrap();
        ends.push(journal.end);
    }
    (segment_path(folder, 5), ends)
}

fn versions(path: &Path) -> (Vec<u64>, Vec<Flaw>) {
    let mut versions = Vec::new();
    let flaws = replay::<io::Error>(path, |entry| {
        let expected = entry.record.clone().map(|_| record(entry.version, b"some value"));
        assert_eq!(entry.record, expected);
        versions.push(entry.version);
        Ok(())
    });
    (versions, flaws.unwrap())
}

#[test]
fn frames_are_replayed_in_order_up_to_the_preallocated_room() {
    let folder = Folder::new();
    let (path, _) = written(folder.path());
    assert_eq!(versions(&path), (vec![1, 2, 3, 4, 5, 6], vec![]));
    assert_eq!(segments(folder.path()).unwrap(), [5]);
}

#[test]
fn a_truncated_frame_is_dropped_and_the_others_replayed() {
    let folder = Folder::new();
    let (path, ends) = written(folder.path());
    let whole = std::fs::read(&path).unwrap();
    for cut in ends[1] + 1..ends[2] {
        std::fs::write(&path, &whole[..cut as usize]).unwrap();
        assert_eq!(versions(&path), (vec![1, 2, 3, 4], vec![Flaw::Truncated { at: ends[1] }]));
    }
}

#[test]
fn damage_costs_one_frame_and_is_reported_with_its_offset() {
    let folder = Folder::new();
    let (path, ends) = written(folder.path());
    let whole = std::fs::read(&path).unwrap();
    for at in ends[0]..ends[1] {
        let mut damaged = whole.clone();
        damaged[at as usize] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        let flaw = Flaw::Damage { at: ends[0], bytes: ends[1] - ends[0] };
        assert_eq!(versions(&path), (vec![1, 2, 5, 6], vec![flaw]), "byte {at}");
    }
}

#[test]
fn a_segment_with_a_damaged_head_is_reported_whole() {
    let folder = Folder::new();
    let (path, _) = written(folder.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3] = 0;
    std::fs::write(&path, &bytes).unwrap();
    let flaw = Flaw::Damage { at: 0, bytes: bytes.len() as u64 };
    assert_eq!(versions(&path), (vec![], vec![flaw]));
}

#[test]
fn a_value_with_the_bytes_of_a_frame_is_not_one() {
    let folder = Folder::new();
    let (path, ends) = written(folder.path());
    let bytes = std::fs::read(&path).unwrap();
    let forged = &bytes[ends[0] as usize..ends[1] as usize];
    let mut journal = Segment::create(folder.path(), 6, 1 << 16).unwrap();
    let mut frame = Frame::new();
    frame.push(b"put", 7, Some(&record(7, forged)));
    journal.append(&mut frame).unwrap();
    let path = segment_path(folder.path(), 6);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[HEAD_BYTES as usize] = 0;
    std::fs::write(&path, &bytes).unwrap();
    let flaw = Flaw::Truncated { at: HEAD_BYTES };
    assert_eq!(versions(&path), (vec![], vec![flaw]));
}

proptest::proptest! {
    #[test]
    fn random_bytes_are_no_entries_and_no_panic(noise in proptest::collection::vec(0_u8.., 0..300)) {
        let folder = Folder::new();
        let (path, ends) = written(folder.path());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.truncate(ends[1] as usize);
        bytes.extend_from_slice(&noise);
        std::fs::write(&path, &bytes).unwrap();
        let (versions, flaws) = versions(&path);
        proptest::prop_assert_eq!(versions, [1, 2, 3, 4]);
        let is_noise = noise.iter().any(|byte| *byte != 0);
        proptest::prop_assert_eq!(flaws.len(), usize::from(is_noise));
    }
}

#[test]
fn an_impossible_entry_is_damage_and_the_others_are_replayed() {
    let folder = Folder::new();
    let mut journal = Segment::create(folder.path(), 5, 1 << 12).unwrap();
    let mut frame = Frame::new();
    frame.push(b"put", 1, Some(&record(1, b"some value")));
    let begins = HEAD_BYTES + frame.seal(0).len() as u64;
    frame.push(b"", 2, None);
    let ends = HEAD_BYTES + frame.seal(0).len() as u64;
    journal.append(&mut frame).unwrap();
    frame.clear();
    frame.push(b"gone", 3, None);
    journal.append(&mut frame).unwrap();
    let damage = Flaw::Damage { at: begins, bytes: ends - begins };
    assert_eq!(versions(&segment_path(folder.path(), 5)), (vec![1, 3], vec![damage]));
}

proptest::proptest! {
    #[test]
    fn entries_come_back_as_they_were_pushed(
        entries in proptest::collection::vec(
            (proptest::collection::vec(0_u8.., 1..9), 0_u64.., proptest::option::of(0..9_usize)),
            0..8,
        ),
        salt: u64,
    ) {
        let mut frame = Frame::new();
        let expires_ms = |version: u64| Some(version).filter(|version| version % 2 == 1);
        let of = |version, bytes: &Option<usize>| bytes.map(|bytes| Record {
            version,
            expires_ms: expires_ms(version),
            value: vec![9; bytes].into(),
        });
        for (id, version, bytes) in &entries {
            frame.push(id, *version, of(*version, bytes).as_ref());
        }
        proptest::prop_assert_eq!(frame.is_empty(), entries.is_empty());
        let sealed = [frame.seal(salt), b"behind"].concat();
        let (mut rest, len) = frame::read(&sealed, salt).unwrap();
        proptest::prop_assert_eq!(len, sealed.len() - 6);
        for (id, version, bytes) in &entries {
            let entry = frame::next_entry(&mut rest).unwrap();
            let expected = frame::Entry { id, version: *version, record: of(*version, bytes) };
            proptest::prop_assert_eq!(entry, expected);
        }
        proptest::prop_assert_eq!(frame::next_entry(&mut rest), None);
        proptest::prop_assert!(rest.is_empty());
        proptest::prop_assert_eq!(frame::read(&sealed, !salt), None, "it is of another segment");
    }
}

#[test]
fn a_frame_is_written_over_one_that_could_not_be_written() {
    let folder = Folder::new();
    let (path, ends) = written(folder.path());
    let mut journal = Segment::create(folder.path(), 5, 1 << 16).unwrap();
    let mut frame = Frame::new();
    frame.push(b"put", 1, Some(&record(1, b"some value")));
    journal.append(&mut frame).unwrap();
    assert!(journal.end < ends[0], "a segment that is created again begins empty");
    assert_eq!(versions(&path), (vec![1], vec![]));
}

#[test]
fn only_files_with_a_number_are_segments() {
    let folder = Folder::new();
    for name in ["000000000012.journal", "000000000003.journal", "x.journal", "1.damaged", "lock"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    assert_eq!(segments(folder.path()).unwrap(), [3, 12]);
    assert_eq!(versions(&segment_path(folder.path(), 12)), (vec![], vec![]), "empty");
    assert!(segments(&folder.path().join("lock")).is_err());
}
