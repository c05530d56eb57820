use super::*;
use crate::{Change, Condition, ID_MAX_BYTES, Mode, NamespaceSettings, Record, StoreError, Write};
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary folder.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outboard-entity-store-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn settings(folder: &Folder, durability: Durability) -> Settings {
    let namespaces = vec![NamespaceSettings::new("default", durability)];
    Settings { namespaces, ..Settings::new(folder.path().to_owned()) }
}

/// Opens a store, runs with its one namespace, and closes the store.
fn with_namespace<T: 'static>(
    settings: &Settings,
    run: impl AsyncFnOnce(Rc<Namespace>) -> T + 'static,
) -> T {
    let settings = settings.clone();
    outboard_reactor::run(async move {
        let store = Store::open(&settings).unwrap();
        run(store.namespaces()[0].clone()).await
    })
    .unwrap()
}

pub(crate) fn put(id: &[u8], value: &[u8]) -> Write {
    let change = Change::Put { value: value.into(), ttl_ms: None };
    Write { id: id.into(), change, condition: Condition::Always }
}

fn delete(id: &[u8]) -> Write {
    Write { id: id.into(), change: Change::Delete, condition: Condition::Always }
}

pub(crate) async fn value(namespace: &Namespace, id: &[u8]) -> Option<Vec<u8>> {
    namespace.get(id).await.unwrap().map(|record| record.value.to_vec())
}

async fn all(namespace: &Rc<Namespace>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut scan = namespace.scan(Bound::Unbounded, Bound::Unbounded);
    let mut all = Vec::new();
    loop {
        let piece = scan.next().await.unwrap();
        if piece.is_empty() {
            return all;
        }
        all.extend(piece.into_iter().map(|(id, record)| (id.to_vec(), record.value.to_vec())));
    }
}

const EVERY: [(Durability, Mode); 4] = [
    (Durability::Always, Mode::Asynchronous),
    (Durability::Interval(1000), Mode::Asynchronous),
    (Durability::Memory, Mode::Asynchronous),
    (Durability::Always, Mode::Synchronous),
];

#[test]
fn a_write_is_read_with_every_durability() {
    for (durability, mode) in EVERY {
        let folder = Folder::new();
        let settings = Settings { mode, ..settings(&folder, durability) };
        with_namespace(&settings, async |namespace| {
            assert_eq!(value(&namespace, b"a").await, None);
            let first = namespace.write(put(b"a", b"one")).await.unwrap().record.unwrap();
            let second = namespace.write(put(b"a", b"")).await.unwrap().record.unwrap();
            assert!(second.version > first.version);
            assert_eq!(value(&namespace, b"a").await, Some(vec![]));
            namespace.write(put(b"\0\xff", b"\0")).await.unwrap();
            let both = namespace.get_many(&[b"\0\xff", b"x"]).await.unwrap();
            assert_eq!(both[0].as_ref().unwrap().value[..], *b"\0");
            assert_eq!(both[1], None);
            namespace.write(delete(b"a")).await.unwrap();
            assert_eq!(value(&namespace, b"a").await, None);
            assert_eq!(all(&namespace).await, [(b"\0\xff".to_vec(), b"\0".to_vec())]);
        });
    }
}

#[test]
fn conditions_hold_within_a_batch_and_across_batches() {
    for (durability, mode) in EVERY {
        let folder = Folder::new();
        let settings = Settings { mode, ..settings(&folder, durability) };
        with_namespace(&settings, async |namespace| {
            let create = || Write { condition: Condition::Absent, ..put(b"a", b"one") };
            let first = namespace.write(create()).await.unwrap().record.unwrap().version;
            let refused = namespace.write(create()).await;
            assert_eq!(refused, Err(StoreError::ConditionFailed { present: Some(first) }));
            let count = || Write {
                id: (*b"n").into(),
                change: Change::Increment { by: 2, ttl_ms: None },
                condition: Condition::Always,
            };
            for _ in 0..3 {
                namespace.write(count()).await.unwrap();
            }
            assert_eq!(value(&namespace, b"n").await, Some(b"6".to_vec()));
        });
    }
}

#[test]
fn confirmed_writes_survive_a_restart() {
    for (durability, mode) in [EVERY[0], EVERY[1], EVERY[3]] {
        let folder = Folder::new();
        // Several sorted files.
        let buffer_bytes = 128 << 10;
        let settings = Settings { mode, buffer_bytes, ..settings(&folder, durability) };
        for round in 0..4_u32 {
            with_namespace(&settings, async move |namespace| {
                for number in 0..round * 300 {
                    let id = number.to_be_bytes();
                    let expected = (number % 7 != 0).then(|| vec![round as u8; 400]);
                    assert_eq!(value(&namespace, &id).await, expected, "{round} {number}");
                }
                for number in 0..(round + 1) * 300 {
                    let id = number.to_be_bytes();
                    let value = [round as u8 + 1; 400];
                    let write = if number % 7 == 0 { delete(&id) } else { put(&id, &value) };
                    namespace.write(write).await.unwrap();
                }
                assert!(namespace.stats().findings.is_empty());
            });
        }
    }
}

#[test]
fn versions_continue_after_a_restart() {
    let folder = Folder::new();
    let settings = settings(&folder, Durability::Always);
    let mut last = 0;
    for _ in 0..3 {
        let write = async |namespace: Rc<Namespace>| {
            namespace.write(put(b"a", b"")).await.unwrap().record.unwrap().version
        };
        let version = with_namespace(&settings, write);
        assert!(version > last);
        last = version;
    }
}

#[test]
fn an_expired_record_is_gone_and_merging_frees_its_space() {
    let folder = Folder::new();
    with_namespace(&settings(&folder, Durability::Always), async |namespace| {
        let short = Change::Put { value: (*b"v").into(), ttl_ms: Some(0) };
        let long = Change::Put { value: (*b"v").into(), ttl_ms: Some(1 << 40) };
        for (id, change) in [(*b"s", short), (*b"l", long)] {
            let write = Write { id: id.into(), change, condition: Condition::Always };
            namespace.write(write).await.unwrap();
        }
        assert_eq!(value(&namespace, b"s").await, None);
        assert_eq!(value(&namespace, b"l").await, Some(b"v".to_vec()));
        assert_eq!(all(&namespace).await.len(), 1);
        namespace.compact().await.unwrap();
        assert_eq!(namespace.stats().records, 1);
        assert_eq!(value(&namespace, b"l").await, Some(b"v".to_vec()));
    });
}

#[test]
fn a_scan_is_ordered_and_ignores_later_writes() {
    for (durability, mode) in EVERY {
        let folder = Folder::new();
        let settings = Settings { mode, ..settings(&folder, durability) };
        with_namespace(&settings, async move |namespace| {
            for number in 0..2000_u32 {
                namespace.write(put(&number.to_be_bytes(), &[7; 100])).await.unwrap();
            }
            let (start, end) = (10_u32.to_be_bytes().to_vec(), 1990_u32.to_be_bytes().to_vec());
            let mut scan = namespace.scan(Bound::Included(start), Bound::Excluded(end));
            let mut seen = scan.next().await.unwrap();
            assert!(seen.len() < 1980, "a scan comes in pieces");
            for number in 0..2000_u32 {
                namespace.write(delete(&number.to_be_bytes())).await.unwrap();
            }
            loop {
                let piece = scan.next().await.unwrap();
                if piece.is_empty() {
                    break;
                }
                seen.extend(piece);
            }
            let ids: Vec<u32> =
                seen.iter().map(|(id, _)| u32::from_be_bytes((**id).try_into().unwrap())).collect();
            if durability != Durability::Memory {
                assert_eq!(ids, (10..1990).collect::<Vec<_>>());
            }
            assert!(ids.is_sorted());
            let nothing = namespace.scan(Bound::Included(vec![9]), Bound::Excluded(vec![3]));
            assert!({ nothing }.next().await.unwrap().is_empty());
        });
    }
}

#[test]
fn a_full_namespace_in_memory_rejects_writes() {
    let folder = Folder::new();
    let mut settings = settings(&folder, Durability::Memory);
    settings.namespaces[0].memory_max_bytes = 4096;
    with_namespace(&settings, async |namespace| {
        namespace.write(put(b"a", &[1; 3000])).await.unwrap();
        assert_eq!(namespace.write(put(b"b", &[1; 3000])).await, Err(StoreError::Full));
        assert_eq!(value(&namespace, b"a").await, Some(vec![1; 3000]));
        namespace.write(put(b"a", b"")).await.unwrap();
        namespace.write(put(b"b", &[1; 3000])).await.unwrap();
    });
}

#[test]
fn a_folder_is_opened_by_one_process_at_a_time() {
    let folder = Folder::new();
    let settings = settings(&folder, Durability::Always);
    outboard_reactor::run(async move {
        let first = Store::open(&settings).unwrap();
        assert!(matches!(Store::open(&settings), Err(OpenError::Locked { .. })));
        drop(first);
    })
    .unwrap();
}

#[test]
fn damage_of_a_sorted_file_is_reported_and_limited() {
    let folder = Folder::new();
    let settings = settings(&folder, Durability::Always);
    with_namespace(&settings, async |namespace| {
        for number in 0..2000_u32 {
            let value = [number as u8; 500];
            namespace.write(put(&number.to_be_bytes(), &value)).await.unwrap();
        }
        namespace.compact().await.unwrap();
    });
    let tables = folder.path().join("namespaces/default/levels/tables");
    let table = std::fs::read_dir(tables).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    with_namespace(&settings, async move |namespace| {
        let mut damaged = 0;
        for number in 0..2000_u32 {
            match namespace.get(&number.to_be_bytes()).await {
                Ok(record) => assert_eq!(*record.unwrap().value, [number as u8; 500]),
                Err(StoreError::Damaged(what)) => {
                    assert!(what.contains(table.to_str().unwrap()), "{what}");
                    damaged += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!((1..100).contains(&damaged), "{damaged} records are lost with their block");
        assert_eq!(namespace.stats().damaged.len(), 1);
        let record = namespace.write(put(b"new", b"value")).await.unwrap().record;
        assert_eq!(record.map(|Record { value, .. }| value.to_vec()), Some(b"value".to_vec()));
    });
}

#[test]
fn damage_of_the_journal_is_reported_and_limited() {
    let folder = Folder::new();
    let settings = settings(&folder, Durability::Always);
    with_namespace(&settings, async |namespace| {
        for number in 0..100_u32 {
            namespace.write(put(&number.to_be_bytes(), &[5; 500])).await.unwrap();
        }
    });
    let journals = folder.path().join("namespaces/default/journal");
    let journal = std::fs::read_dir(journals).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes[20_000] ^= 1;
    std::fs::write(&journal, bytes).unwrap();
    with_namespace(&settings, async move |namespace| {
        assert_eq!(all(&namespace).await.len(), 99);
        let findings = namespace.stats().findings;
        assert_eq!(findings.len(), 1);
        assert!(findings[0].contains(journal.to_str().unwrap()), "{findings:?}");
        assert!(journal.with_extension("damaged").exists());
    });
}

/// A key that sorted files cannot store would otherwise be replayed at each start.
#[test]
fn an_invalid_key_is_rejected_by_every_engine() {
    for durability in [Durability::Memory, Durability::Always] {
        let folder = Folder::new();
        let settings = settings(&folder, durability);
        with_namespace(&settings, async |namespace: Rc<Namespace>| {
            for bytes in [0, ID_MAX_BYTES + 1, 70_000] {
                let id = vec![b'k'; bytes];
                let refused = StoreError::InvalidKey { bytes };
                assert_eq!(namespace.get(&id).await, Err(refused.clone()));
                assert_eq!(namespace.get_many(&[b"a", &id]).await, Err(refused.clone()));
                assert_eq!(namespace.write(put(&id, b"v")).await, Err(refused.clone()));
                let both = namespace.write_many(vec![put(b"a", b"v"), put(&id, b"v")]).await;
                assert_eq!(both, [Err(refused.clone()), Err(refused.clone())]);
                if bytes > 0 {
                    let mut scan = namespace.scan(Bound::Included(id), Bound::Unbounded);
                    assert_eq!(scan.next().await, Err(refused));
                }
            }
            let longest = vec![b'k'; ID_MAX_BYTES];
            namespace.write(put(&longest, b"v")).await.unwrap();
            namespace.compact().await.unwrap();
            assert_eq!(value(&namespace, &longest).await.unwrap(), b"v");
            assert_eq!(value(&namespace, b"a").await, None);
        });
    }
}

#[test]
fn only_cached_records_are_shown() {
    for durability in [Durability::Memory, Durability::Always] {
        let folder = Folder::new();
        let settings = settings(&folder, durability);
        let fill = async |namespace: Rc<Namespace>| {
            for id in [b"a", b"b"] {
                namespace.write(put(id, id)).await.unwrap();
            }
            namespace.write(delete(b"gone")).await.unwrap();
            let shown = shown(&namespace, &[b"b", b"gone", b"a"]);
            assert_eq!(shown, Some(vec![Some(b"b".to_vec()), None, Some(b"a".to_vec())]));
            let nothing = vec![b'k'; ID_MAX_BYTES + 1];
            let refused = namespace.show_many(&[b"a", &nothing], |_| ());
            assert_eq!(refused, Err(StoreError::InvalidKey { bytes: nothing.len() }));
        };
        with_namespace(&settings, fill);
        if durability == Durability::Always {
            with_namespace(&settings, async |namespace: Rc<Namespace>| {
                assert_eq!(shown(&namespace, &[b"a"]), None);
                namespace.get(b"a").await.unwrap();
                assert_eq!(shown(&namespace, &[b"a"]), Some(vec![Some(b"a".to_vec())]));
            });
        }
    }
}

fn shown(namespace: &Namespace, ids: &[&[u8]]) -> Option<Vec<Option<Vec<u8>>>> {
    let mut values = Vec::new();
    let has_all =
        namespace.show_many(ids, |record| values.push(record.map(|record| record.value.to_vec())));
    has_all.unwrap().then_some(values)
}
