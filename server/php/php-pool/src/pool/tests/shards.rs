//! What the threads tell all others: hints, wishes and the numbers of workers.

use super::*;
use std::collections::BTreeSet;

#[test]
fn shares_sum_up_and_numbers_name_the_owner() {
    let shards = PoolShards::new(3);
    for total in [0, 1, 2, 3, 8, 100] {
        let shares: Vec<usize> = (0..3).map(|at| shards.place(at).share(total)).collect();
        assert_eq!(shares.iter().sum::<usize>(), total);
        assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
    }
    let mut seen = BTreeSet::new();
    for at in 0..3 {
        let (shard, mut last) = (shards.place(at), 0);
        for _ in 0..5 {
            last = shard.next_worker(last);
            assert!(seen.insert(last) && shard.is_owner_of(last));
            assert_eq!(shard.owner_of(last), at);
        }
    }
}

#[test]
fn a_wish_is_granted_once() {
    let shards = PoolShards::new(3);
    let (one, two, three) = (shards.place(0), shards.place(1), shards.place(2));
    assert_eq!(one.take_wish(u64::MAX), None);
    two.wish(5);
    two.wish(5);
    assert_eq!(two.take_wish(u64::MAX), None, "its own wish");
    assert_eq!((three.take_wish(u64::MAX), one.take_wish(u64::MAX)), (Some(1), None));
    three.wish(5);
    three.renew_wish(None);
    assert_eq!(one.take_wish(u64::MAX), None);
    two.renew_wish(Some(7));
    assert!(!one.has_wish(u64::MAX), "only a wish is renewed");
}

#[test]
fn the_oldest_wish_is_granted_first() {
    let shards = PoolShards::new(3);
    let (one, two, three) = (shards.place(0), shards.place(1), shards.place(2));
    two.wish(0);
    two.renew_wish(Some(20));
    three.wish(10);
    assert!(!one.has_wish(10) && one.has_wish(11));
    assert_eq!(one.take_wish(10), None);
    assert_eq!(one.take_wish(30), Some(2));
    assert_eq!(one.take_wish(30), Some(1));
    assert!(!one.has_wish(u64::MAX));
}

#[test]
fn a_wish_for_the_first_millisecond_is_one() {
    let shards = PoolShards::new(2);
    shards.place(1).wish(0);
    assert_eq!(shards.place(0).take_wish(u64::MAX), Some(1));
}

#[test]
fn free_workers_and_queues_are_seen_by_the_others() {
    let shards = PoolShards::new(2);
    let (one, two) = (shards.place(0), shards.place(1));
    one.publish(2, 5);
    assert_eq!((one.free_elsewhere(0), two.free_elsewhere(1)), (None, Some(0)));
    assert_eq!((one.queued_elsewhere(), two.queued_elsewhere()), (0, 5));
    one.publish(0, 0);
    assert_eq!((two.free_elsewhere(1), two.queued_elsewhere()), (None, 0));
}

#[test]
fn workers_that_may_be_forked_are_seen_by_the_others() {
    let shards = PoolShards::new(3);
    shards.place(0).publish_vacant(1);
    shards.place(2).publish_vacant(4);
    assert_eq!(shards.place(1).vacant_elsewhere().collect::<Vec<_>>(), [(2, 4), (0, 1)]);
    assert_eq!(shards.place(2).vacant_elsewhere().collect::<Vec<_>>(), [(0, 1)]);
}
