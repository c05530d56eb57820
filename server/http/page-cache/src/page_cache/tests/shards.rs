//! Several shards with the same pages, each on a thread with a loop of its own.

use super::*;
use crate::single_flight::Role;
use crate::store::Stored;
use outboard_reactor::yield_now;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, spawn as start};
use std::time::Duration;

/// Runs work on another shard.
fn on_shard<F: Future<Output = ()> + 'static>(
    pages: &Arc<Pages>,
    work: impl FnOnce(Rc<PageCache>) -> F + Send + 'static,
) -> JoinHandle<()> {
    let pages = pages.clone();
    start(move || run(async move { work(join(&pages)).await }).unwrap())
}

fn wait_for_all(shards: impl IntoIterator<Item = JoinHandle<()>>) {
    shards.into_iter().for_each(|shard| shard.join().unwrap());
}

#[test]
fn a_hit_takes_no_lock() {
    run(async {
        let lead = open(&Scratch::new(), "", true);
        store(&lead, entry("/a", now_s()));
        let (to_shard, commands) = channel();
        let (replies, from_shard): (Sender<bool>, _) = channel();
        let shard = on_shard(lead.pages(), async move |cache| {
            for () in commands {
                replies.send(has(&cache, "/a")).unwrap();
            }
        });
        let ask = || {
            to_shard.send(()).unwrap();
            from_shard.recv_timeout(Duration::from_secs(30)).expect("it waits for a lock")
        };
        assert!(ask(), "the page of the lead");
        let locked = lead.memory();
        assert!(ask());
        drop(locked);
        lead.purge_url(&key("/a"));
        assert!(!ask());
        drop(to_shard);
        wait_for_all([shard]);
    })
    .unwrap();
}

#[test]
fn shards_render_a_page_once() {
    run(async {
        let lead = open(&Scratch::new(), "", true);
        let (started, rendered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let shards = [(); 3].map(|()| {
            let (started, rendered) = (started.clone(), rendered.clone());
            on_shard(lead.pages(), async move |cache| {
                let role = cache.single_flight().join(&key("/a"));
                started.fetch_add(1, Ordering::SeqCst);
                match role {
                    Role::Leader(leader) => {
                        until(|| started.load(Ordering::SeqCst) == 3).await;
                        until(|| cache.stats().waiting == 2).await;
                        rendered.fetch_add(1, Ordering::SeqCst);
                        store(&cache, entry("/a", now_s()));
                        drop(leader);
                    }
                    Role::Follower(flight) => poll_fn(|context| flight.poll_over(context)).await,
                    Role::Alone => panic!("the page can be stored"),
                }
                assert!(has(&cache, "/a"));
            })
        });
        wait_for_all(shards);
        assert_eq!((rendered.load(Ordering::SeqCst), lead.stats().stored), (1, 1));
    })
    .unwrap();
}

#[test]
fn no_lookup_after_a_purge_finds_the_page() {
    const ROUNDS: u64 = 300;
    const SHARDS: usize = 4;
    run(async {
        let lead = open(&Scratch::new(), "", true);
        let purged = Arc::new(AtomicU64::new(0));
        let found = Arc::new([const { AtomicU64::new(0) }; SHARDS]);
        let shards: [_; SHARDS] = std::array::from_fn(|number| {
            let (purged, found) = (purged.clone(), found.clone());
            on_shard(lead.pages(), async move |cache| {
                loop {
                    let before = purged.load(Ordering::Acquire);
                    if before == ROUNDS {
                        return;
                    }
                    if let Found::Entry(entry) = cache.find(&key("/a"), |_| true) {
                        let round = entry.times().received_s - 1_000;
                        assert!(round > before, "round {round} was purged, as {before}");
                        found[number].store(round, Ordering::Release);
                    }
                    yield_now().await;
                }
            })
        });
        for round in 1..=ROUNDS {
            lead.insert(entry("/a", 1_000 + round), lead.purge_epoch()).unwrap();
            while !found.iter().all(|found| found.load(Ordering::Acquire) == round) {
                assert!(!shards.iter().any(JoinHandle::is_finished), "a lookup found too much");
                std::thread::yield_now();
            }
            // Each shard has it in its front, and looks it up all the time.
            assert_eq!(lead.purge(Selector::All, false), 1);
            purged.store(round, Ordering::Release);
        }
        wait_for_all(shards);
    })
    .unwrap();
}

#[test]
fn fronts_hold_a_share_of_the_budget_at_most() {
    run(async {
        const BUDGET_BYTES: usize = 1 << 20;
        let lead = open(&Scratch::new(), "max_memory = \"1 MiB\"", true);
        let is_over = Arc::new(AtomicUsize::new(0));
        let (has_used, used) = channel();
        for number in 0..100 {
            store(&lead, entry(&format!("/{number}"), now_s()));
        }
        let first: Vec<std::sync::Weak<Stored>> = (0..100)
            .map(|number| match lead.find(&key(&format!("/{number}")), |_| true) {
                Found::Entry(entry) => Arc::downgrade(entry.stored()),
                _ => panic!("there is room"),
            })
            .collect();
        let shards = [(); 2].map(|()| {
            let (is_over, has_used) = (is_over.clone(), has_used.clone());
            on_shard(lead.pages(), async move |cache| {
                (0..100).for_each(|number| assert!(has(&cache, &format!("/{number}"))));
                has_used.send(()).unwrap();
                // It gets no more requests.
                until(|| is_over.load(Ordering::SeqCst) == 1).await;
            })
        });
        shards.iter().for_each(|_| used.recv().unwrap());
        // The pages leave, though they are used: twice the budget follows, which is used as well.
        let mut later = 0;
        while lead.memory().iter().any(|entry| first_number(entry).is_some_and(|one| one < 100)) {
            let path = format!("/{}", 100 + later);
            store(&lead, entry(&path, now_s()));
            (0..3).for_each(|_| drop(lead.find(&key(&path), |_| true)));
            later += 1;
        }
        let held_bytes =
            || -> usize { first.iter().filter_map(|one| Some(one.upgrade()?.cost_bytes())).sum() };
        until(|| held_bytes() <= BUDGET_BYTES / 16).await;
        assert!(lead.stats().used_bytes <= BUDGET_BYTES);
        is_over.store(1, Ordering::SeqCst);
        wait_for_all(shards);
    })
    .unwrap();
}

fn first_number(entry: &Entry) -> Option<usize> {
    std::str::from_utf8(&entry.key().path_and_query()[1..]).ok()?.parse().ok()
}

#[test]
fn shards_of_two_generations_purge_each_other_during_a_reload() {
    run(async {
        let scratch = Scratch::new();
        let [old, new] = [true, false].map(|is_first| open(&scratch, ON_DISK, is_first));
        for cache in [&old, &new] {
            ["/a", "/b", "/c"].iter().for_each(|path| drop(store(cache, entry(path, now_s()))));
        }
        old.set_successor(&new);
        let of_new = new.pages().clone();
        // This shard is reloaded last.
        let shard = on_shard(old.pages(), async move |late| {
            assert!(has(&late, "/a") && has(&late, "/b"));
            let next = join(&of_new);
            assert!(has(&next, "/a"));
            assert_eq!(late.purge_with_successors(&[Selector::url(b"/a")], false), 2);
            assert!(!has(&late, "/a") && !has(&next, "/a"));
            assert_eq!(next.purge(Selector::url(b"/b"), false), 1);
            assert!(!has(&late, "/b") && !has(&next, "/b"));
            late.set_successor(&next);
        });
        wait_for_all([shard]);
        assert_eq!(["/a", "/b", "/c"].map(|path| has(&new, path)), [false, false, true]);
        assert!(old.settle().await);
    })
    .unwrap();
}

#[test]
fn statistics_are_those_of_all_shards() {
    run(async {
        let lead = open(&Scratch::new(), "", true);
        lead.count(CacheStatus::Hit { remaining_s: 1 });
        let shard = on_shard(lead.pages(), async |cache| {
            cache.count(CacheStatus::Hit { remaining_s: 1 });
            cache.count(CacheStatus::Bypass(Reason::Method));
            store(&cache, entry("/a", now_s()));
        });
        wait_for_all([shard]);
        let stats = lead.stats();
        assert_eq!((stats.hit, stats.bypass, stats.stored, stats.entries), (2, 1, 1, 1));
        assert_eq!(lead.responses(), [("hit", 2), ("stale", 0), ("miss", 0), ("bypass", 1)]);
    })
    .unwrap();
}

#[test]
fn a_purge_on_its_way_to_the_server_keeps_the_page_out() {
    run(async {
        let (server, scratch) = (FakeServer::start(), Scratch::new());
        let lead = open(&scratch, &shared_by(&server), true);
        let shard = join(lead.pages());
        until(|| lead.is_shared_tier_available() && shard.is_shared_tier_available()).await;
        store(&lead, entry("/a", now_s()));
        store(&lead, entry("/b", now_s()));
        until(|| server.state().pages.len() == 2).await;
        server.state().closes_on_purge = Some(false);
        lead.purge_url(&key("/a"));
        assert!(!lead.settle().await);
        assert!(shard.load(&key("/a"), None).await.is_empty());
        assert_eq!(shard.load(&key("/b"), None).await.len(), 1);
        server.state().closes_on_purge = None;
        until(|| shard.stats().shared.is_some_and(|shared| shared.purges_unconfirmed == 0)).await;
        assert!(shard.load(&key("/a"), None).await.is_empty());
    })
    .unwrap();
}
