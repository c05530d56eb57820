use super::*;
use crate::scratch::Scratch;

/// Keys of files that exist no longer.
fn keys(count: usize) -> Vec<Key> {
    let scratch = Scratch::new();
    let key = |number| {
        let path = scratch.file(&format!("{number}.txt"), "");
        let stat = rustix::fs::stat(path).unwrap();
        Key { stamp: Stamp::of_file(&stat).unwrap(), coding: Coding::Gzip }
    };
    (0..count).map(key).collect()
}

fn files(max_bytes: usize) -> Arc<CompressedFiles> {
    Arc::new(CompressedFiles::new(max_bytes))
}

fn keep(files: &Arc<CompressedFiles>, key: Key, bytes: usize) {
    files.claim(key).expect("it is new").keep(vec![b'z'; bytes].into());
}

fn held_bytes(files: &CompressedFiles) -> usize {
    files.held_bytes.load(Ordering::Relaxed)
}

#[test]
fn a_file_is_compressed_once_in_each_coding() {
    let (files, keys) = (files(64 << 10), keys(1));
    let claim = files.claim(keys[0]).unwrap();
    assert!(files.claim(keys[0]).is_none(), "another compresses it");
    assert!(files.claim(Key { coding: Coding::Brotli, ..keys[0] }).is_some());
    claim.keep([1, 2, 3].into());
    assert!(files.claim(keys[0]).is_none(), "it is kept");
    assert_eq!(files.get(&keys[0]).unwrap().bytes(), [1, 2, 3]);
    assert!(files.get(&Key { coding: Coding::Brotli, ..keys[0] }).is_none());
}

#[test]
fn without_an_outcome_a_file_is_taken_on_again() {
    let (files, keys) = (files(64 << 10), keys(1));
    drop(files.claim(keys[0]).unwrap());
    assert!(files.get(&keys[0]).is_none());
    assert!(files.claim(keys[0]).is_some());
}

#[test]
fn a_flood_of_files_stays_within_the_memory_and_spares_those_in_use() {
    const MAX_BYTES: usize = 64 << 10;
    let (files, keys) = (files(MAX_BYTES), keys(2_000));
    keep(&files, keys[0], 5_000);
    for (number, key) in keys.iter().enumerate().skip(1) {
        files.get(&keys[0]).expect("it is in use").mark_as_used();
        keep(&files, *key, number % 7_000);
        assert!(held_bytes(&files) <= MAX_BYTES);
        let state = files.lock();
        assert_eq!(state.index.len(), state.slots.len());
        assert!(state.slots.iter().enumerate().all(|(at, slot)| state.index[&slot.key] == at));
        assert!(state.under_way.is_empty());
    }
    assert!(files.get(&keys[1_999]).is_some());
    assert!(files.get(&keys[1]).is_none());
}

#[test]
fn what_responses_still_send_counts() {
    let (files, keys) = (files(4 * (SLOT_BYTES + 1_000)), keys(9));
    keys[..4].iter().for_each(|key| keep(&files, *key, 1_000));
    let sent: Vec<_> = keys[..4].iter().map(|key| files.get(key).unwrap()).collect();
    keep(&files, keys[4], 1_000);
    assert!(files.get(&keys[4]).is_none(), "there is no room");
    assert!(keys[..4].iter().all(|key| files.get(key).is_some()));
    drop(sent);
    keep(&files, keys[4], 1_000);
    assert!(files.get(&keys[4]).is_some());
    assert_eq!(held_bytes(&files), 4 * (SLOT_BYTES + 1_000));
}

#[test]
fn only_files_that_are_worth_it_and_fit_are_admitted() {
    let files = files(1 << 20);
    for (size, is_admitted) in [(0, false), (1023, false), (1024, true), (256 << 10, true)] {
        assert_eq!(files.admits(size), is_admitted, "{size}");
    }
    assert!(!files.admits((256 << 10) + 1) && !files.admits(u64::MAX));
    assert!(!CompressedFiles::new(0).admits(1024));
}
