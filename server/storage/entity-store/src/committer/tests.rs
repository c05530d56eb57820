//! Batches, and what the next start finds of them.

use super::*;
use crate::change::{Change, Condition};
use crate::journal::segments;
use crate::store::tests::{Folder, put};

fn open(folder: &Folder) -> Opened {
    let blocks = Blocks::new(1 << 20, 16);
    Committer::open(folder.path(), Durability::Always, 1 << 20, &blocks).unwrap()
}

fn journals(folder: &Folder) -> Vec<u64> {
    segments(&folder.path().join("journal")).unwrap()
}

fn increment(id: &[u8]) -> Write {
    let change = Change::Increment { by: 1, ttl_ms: None };
    Write { id: id.into(), change, condition: Condition::Always }
}

fn value(levels: &Levels, id: &[u8]) -> Option<Vec<u8>> {
    levels.get(id).unwrap().map(|record| record.value.to_vec())
}

#[test]
fn a_write_sees_those_before_it_in_its_batch() {
    let folder = Folder::new();
    let Opened { mut committer, levels, .. } = open(&folder);
    let create = || Write { condition: Condition::Absent, ..put(b"a", b"one") };
    let delete = Write { change: Change::Delete, condition: Condition::Present, ..put(b"a", b"") };
    let batch = [create(), create(), increment(b"n"), increment(b"n"), delete, create()];
    let results = committer.commit(&batch);
    let first = results[0].as_ref().unwrap().record.as_ref().unwrap().version;
    assert_eq!(results[1], Err(StoreError::ConditionFailed { present: Some(first) }));
    let existed = |index: usize| results[index].as_ref().unwrap().existed;
    assert_eq!([2, 3, 4, 5].map(existed), [Some(false), Some(true), Some(true), Some(false)]);
    assert_eq!(value(&levels, b"n"), Some(b"2".to_vec()));
    assert_eq!(value(&levels, b"a"), Some(b"one".to_vec()));
    let versions = results.iter().filter_map(|result| result.as_ref().ok()?.record.as_ref());
    let versions: Vec<u64> = versions.map(|record| record.version).collect();
    assert!(versions.is_sorted_by(|one, next| one < next), "{versions:?}");
}

#[test]
fn a_write_that_looks_at_nothing_does_not_know_what_was_there() {
    let folder = Folder::new();
    let mut committer = open(&folder).committer;
    let written = committer.commit(&[put(b"a", b""), put(b"a", b"")]);
    assert!(written.iter().all(|one| one.as_ref().unwrap().existed.is_none()));
}

#[test]
fn a_batch_without_a_change_is_not_journaled() {
    let folder = Folder::new();
    let mut committer = open(&folder).committer;
    let version = committer.next_version;
    let absent = Write { condition: Condition::Present, ..put(b"a", b"") };
    let failed = Err(StoreError::ConditionFailed { present: None });
    assert_eq!(committer.commit(&[absent.clone(), absent]), [failed.clone(), failed]);
    assert_eq!(committer.commit(&[]), []);
    assert!(committer.frame.is_empty());
    assert_eq!(committer.next_version, version, "no version is spent");
}

#[test]
fn the_next_start_has_every_write_and_a_segment_of_its_own() {
    let folder = Folder::new();
    let mut version = 0;
    for round in 1..4 {
        let Opened { mut committer, levels, findings } = open(&folder);
        assert_eq!(findings, [""; 0]);
        assert_eq!(journals(&folder), [round], "the older ones are in sorted files");
        assert_eq!(value(&levels, b"n"), (round > 1).then(|| (round - 1).to_string().into_bytes()));
        let written = committer.commit(&[increment(b"n")]).pop().unwrap().unwrap();
        let next = written.record.unwrap().version;
        assert!(next > version, "versions go on");
        version = next;
    }
}

#[test]
fn a_sealed_buffer_is_in_a_sorted_file_and_its_segment_is_gone() {
    let folder = Folder::new();
    let Opened { mut committer, levels, .. } = open(&folder);
    assert!(committer.commit(&[put(b"a", b"1")])[0].is_ok());
    committer.seal().unwrap();
    assert_eq!((levels.sealed(), levels.size().0, journals(&folder)), (0, 1, vec![2]));
    assert_eq!(value(&levels, b"a"), Some(b"1".to_vec()));
    assert!(committer.commit(&[put(b"b", b"2")])[0].is_ok());
    drop((committer, levels));
    let levels = open(&folder).levels;
    assert_eq!(value(&levels, b"b"), Some(b"2".to_vec()));
}

#[test]
fn a_write_that_was_cut_off_is_dropped_and_reported() {
    let folder = Folder::new();
    let Opened { mut committer, .. } = open(&folder);
    assert!(committer.commit(&[put(b"a", b"1")])[0].is_ok());
    assert!(committer.commit(&[put(b"b", b"2")])[0].is_ok());
    drop(committer);
    let path = segment_path(&folder.path().join("journal"), 1);
    let bytes = std::fs::read(&path).unwrap();
    let last = bytes.windows(4).rposition(|window| window == b"ENTB").unwrap();
    std::fs::write(&path, &bytes[..last + 10]).unwrap();
    let Opened { levels, findings, .. } = open(&folder);
    let shown = path.display();
    assert_eq!(
        findings,
        [format!("{shown} ends in the middle of a write, at byte {last}: that write is dropped")]
    );
    assert_eq!((value(&levels, b"a"), value(&levels, b"b")), (Some(b"1".to_vec()), None));
    assert!(!path.with_extension("damaged").exists(), "that is no damage");
}

#[test]
fn after_a_failure_of_a_sync_nothing_is_written_until_a_restart() {
    let folder = Folder::new();
    let Opened { mut committer, levels, .. } = open(&folder);
    let failure = StoreError::Failed("fsync failed; restart the server".to_owned());
    committer.failure = Some(failure.clone());
    for _ in 0..2 {
        assert_eq!(committer.commit(&[put(b"a", b"1")]), [Err(failure.clone())]);
    }
    assert_eq!(value(&levels, b"a"), None);
    assert!(!committer.can_commit_inline(&[put(b"a", b"1")]));
}

#[test]
fn a_folder_that_is_a_file_is_an_error_with_its_path() {
    let folder = Folder::new();
    let path = folder.path().join("journal");
    std::fs::write(&path, "").unwrap();
    let blocks = Blocks::new(1 << 20, 16);
    let opened = Committer::open(folder.path(), Durability::Memory, 1 << 20, &blocks);
    let Err(OpenError::Io { path: at, .. }) = opened else { panic!("it is open") };
    assert_eq!(at, path);
}
