use super::*;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::AtomicU32;

const SECOND: u64 = 1_000_000_000;

fn admitted(table: &RateTable, key: u32, now_ns: u64) -> bool {
    table.spend(KeyHash::of(key), now_ns).is_admitted
}

#[test]
fn each_key_has_a_bucket() {
    let table = RateTable::new(Rate::new(1, 1_000, 2), 1_000);
    for key in 0..500 {
        let results = [0; 3].map(|_| admitted(&table, key, SECOND));
        assert_eq!(results, [true, true, false], "{key}");
    }
}

#[test]
fn a_full_table_grants_no_client_more_than_its_rate() {
    // One set, and many more keys: an attacker who uses the others to be forgotten.
    let table = RateTable::new(Rate::new(1, 1_000, 5), 1);
    let mut granted = 0;
    for step in 0..10_000 {
        let now_ns = SECOND + step * SECOND / 1_000;
        granted += u32::from(admitted(&table, 0, now_ns));
        (1..40).for_each(|other| _ = table.spend(KeyHash::of(other), now_ns));
    }
    assert!(granted <= 5 + 10, "{granted} in 10 s at 1 per second, 5 at once");
}

#[test]
fn full_buckets_are_replaced_first() {
    let table = RateTable::new(Rate::new(1, 1_000, 1), 1);
    let ways = u32::try_from(WAYS).unwrap();
    assert_eq!(table.sets.len(), 1);
    assert!(admitted(&table, 0, SECOND));
    (1..ways).for_each(|key| assert!(admitted(&table, key, SECOND / 2)));
    // The others are full at 1.5 s, the first at 2 s.
    let now_ns = SECOND * 7 / 4;
    (100..100 + ways - 1).for_each(|key| assert!(admitted(&table, key, now_ns), "{key}"));
    assert!(!admitted(&table, 0, now_ns));
}

#[test]
fn threads_share_the_buckets() {
    let table = RateTable::new(Rate::new(1, 1_000_000, 1_000), 100);
    let granted = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    granted.fetch_add(u32::from(admitted(&table, 7, SECOND)), Ordering::Relaxed);
                }
            });
        }
    });
    let granted = granted.into_inner();
    assert_eq!(granted, 1_000);
}

#[test]
fn several_tokens_are_taken_together_or_not_at_all() {
    let table = RateTable::new(Rate::new(1, 1_000, 5), 10);
    assert_eq!(table.spend_many(KeyHash::of(1), 3, SECOND).remaining, 2);
    assert!(
        !table.look(KeyHash::of(1), 3, SECOND).is_admitted
            && table.look(KeyHash::of(1), 2, SECOND).is_admitted
    );
    assert_eq!(table.spend_many(KeyHash::of(1), 3, SECOND).retry_ns, SECOND);
    assert!(table.spend_many(KeyHash::of(1), 3, 2 * SECOND).is_admitted);
    table.charge(KeyHash::of(1), 2, 2 * SECOND);
    assert_eq!(table.look(KeyHash::of(1), 1, 2 * SECOND).retry_ns, 3 * SECOND);
    // A key that was only looked at has no bucket.
    assert!(
        table.look(KeyHash::of(2), 5, SECOND).is_admitted
            && table.spend_many(KeyHash::of(2), 5, SECOND).is_admitted
    );
}

#[test]
fn a_bucket_is_empty_for_threads_whose_clocks_are_behind() {
    let table = RateTable::new(Rate::new(100, 1_000, 100), 10);
    let now_ns = 1_000 * SECOND;
    (0..100).for_each(|_| assert!(admitted(&table, 1, now_ns)));
    for behind_ms in [0, 1, 100, 3_000] {
        assert!(!admitted(&table, 1, now_ns - behind_ms * 1_000_000), "{behind_ms}");
    }
}

proptest! {
    /// However keys and times mix, a key gets at most its burst and what came in since.
    #[test]
    fn no_key_exceeds_its_rate(
        clients in 1usize..40,
        burst in 1u32..5,
        requests in prop::collection::vec((0u32..200, 0u64..500), 1..800),
    ) {
        let table = RateTable::new(Rate::new(1, 1_000, burst), clients);
        let (mut now_ns, start) = (SECOND, SECOND);
        let mut counts: HashMap<u32, u64> = HashMap::new();
        for (key, pause_ms) in requests {
            now_ns += pause_ms * 1_000_000;
            if admitted(&table, key, now_ns) {
                let count = counts.entry(key).or_default();
                *count += 1;
                prop_assert!(*count <= u64::from(burst) + (now_ns - start) / SECOND);
            }
        }
    }
}
