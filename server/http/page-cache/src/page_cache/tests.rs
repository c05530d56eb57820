mod shards;

use super::*;
use crate::audit::{OwnFields, Replayed};
use crate::cache_status::{CacheStatus, MissReason};
use crate::shared_tier::fake_server::FakeServer;
use crate::test_support::{Scratch, entry, entry_with, error_log, key, until};
use outboard_config::Config;
use outboard_reactor::run;
use outboard_upstream::Settings as ClientSettings;
use std::pin::Pin;

/// The cache of an app with these keys in its `page_cache`.
fn open(scratch: &Scratch, keys: &str, is_first: bool) -> Rc<PageCache> {
    std::fs::create_dir_all(&scratch.0).unwrap();
    let text = format!("[app.site]\nroot = \".\"\n[app.site.page_cache]\nmode = \"on\"\n{keys}");
    let config = Config::parse(&text, &scratch.0.join("outboard.toml"))
        .unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"));
    let client = Client::new(ClientSettings::default());
    PageCache::open(&config.apps[0], is_first, &client, &error_log()).unwrap().unwrap()
}

/// The cache of another shard.
fn join(pages: &Arc<Pages>) -> Rc<PageCache> {
    PageCache::join(pages.clone(), &Client::new(ClientSettings::default()), &error_log())
}

const ON_DISK: &str = "disk = \"disk\"\n";

fn shared_by(server: &FakeServer) -> String {
    format!("[app.site.page_cache.shared]\nserver = \"redis://127.0.0.1:{}\"", server.port())
}

fn has(cache: &PageCache, path: &str) -> bool {
    matches!(cache.find(&key(path), |_| true), Found::Entry(_))
}

/// Stores a page in memory and in the tiers behind it.
fn store(cache: &Rc<PageCache>, entry: Entry) -> Shared {
    let stored = cache.insert(entry, cache.purge_epoch()).unwrap();
    cache.compress(&stored);
    stored
}

/// Pages on disk: files whose names are numbers.
fn files(directory: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => files(&entry.path()),
            false => usize::from(entry.file_name().to_string_lossy().parse::<u64>().is_ok()),
        })
        .sum()
}

#[test]
fn a_page_on_disk_is_loaded_into_memory_after_a_restart() {
    run(async {
        let scratch = Scratch::new();
        let cache = open(&scratch, ON_DISK, true);
        store(&cache, entry("/a", now_s()));
        store(&cache, entry("/b", now_s()));
        cache.purge_url(&key("/b"));
        // The scan of the directory has ended, and the thread has written the one page.
        until(|| Rc::strong_count(&cache) == 1 && files(&scratch.0) == 1).await;
        drop(cache);
        let cache = open(&scratch, ON_DISK, true);
        until(|| cache.stats().disk_entries == 1).await;
        assert!(!has(&cache, "/a"));
        let file = cache.find_on_disk(&key("/a"), |_| true);
        assert_eq!(cache.load(&key("/a"), file).await.len(), 1);
        assert!(has(&cache, "/a"));
        assert_eq!(cache.find_on_disk(&key("/b"), |_| true), None);
    })
    .unwrap();
}

#[test]
fn a_compressed_page_replaces_the_plain_one_in_all_tiers() {
    run(async {
        let scratch = Scratch::new();
        let cache = open(&scratch, ON_DISK, true);
        store(&cache, entry_with("/a", now_s(), &[(b"Content-Type", b"text/html")]));
        assert_eq!(cache.stats().disk_entries, 0, "it is written once it is compressed");
        until(|| cache.stats().disk_entries == 1).await;
        let Found::Entry(entry) = cache.find(&key("/a"), |_| true) else { panic!("it is stored") };
        assert!(!entry.coded().is_empty());
    })
    .unwrap();
}

#[test]
fn a_page_purged_during_its_compression_is_not_written() {
    run(async {
        let scratch = Scratch::new();
        let cache = open(&scratch, ON_DISK, true);
        for path in ["/purged", "/stored"] {
            store(&cache, entry_with(path, now_s(), &[(b"Content-Type", b"text/html")]));
        }
        cache.purge_url(&key("/purged"));
        until(|| cache.find_on_disk(&key("/stored"), |_| true).is_some()).await;
        assert_eq!(cache.find_on_disk(&key("/purged"), |_| true), None);
        assert!(!has(&cache, "/purged"));
    })
    .unwrap();
}

#[test]
fn a_purge_during_the_rendering_keeps_the_page_out() {
    run(async {
        let cache = open(&Scratch::new(), "", true);
        let began = cache.purge_epoch();
        cache.purge(Selector::prefix(b"/a"), false);
        assert_eq!(cache.insert(entry("/a", now_s()), began).err(), Some(Reason::PurgedMeanwhile));
        assert!(cache.insert(entry("/b", now_s()), began).is_ok());
    })
    .unwrap();
}

#[test]
fn a_soft_purge_leaves_a_stale_page() {
    run(async {
        let cache = open(&Scratch::new(), "", true);
        let fresh = store(&cache, entry("/a", now_s()));
        assert_eq!(cache.purge(Selector::All, true), 1);
        let Found::Entry(stale) = cache.find(&key("/a"), |_| true) else { panic!("it is purged") };
        assert!(fresh.times().is_fresh(now_s()) && !stale.times().is_fresh(now_s()));
        assert_eq!(cache.purge(Selector::All, false), 1);
        assert!(!has(&cache, "/a"));
    })
    .unwrap();
}

#[test]
fn an_old_worker_purges_the_caches_of_later_generations() {
    run(async {
        let scratch = Scratch::new();
        let [old, new] = [true, false].map(|is_first| open(&scratch, ON_DISK, is_first));
        old.set_successor(&new);
        for cache in [&old, &new] {
            store(cache, entry("/a", now_s()));
            store(cache, entry("/b", now_s()));
        }
        assert_eq!(old.purge_with_successors(&[Selector::url(b"/a")], false), 2);
        assert!(!has(&new, "/a") && has(&new, "/b"));
        assert!(old.settle().await, "there is no shared tier");
    })
    .unwrap();
}

#[test]
fn a_page_is_loaded_from_the_shared_tier_unless_it_was_purged() {
    run(async {
        let (server, scratch) = (FakeServer::start(), Scratch::new());
        let [one, other] =
            [true, true].map(|is_first| open(&scratch, &shared_by(&server), is_first));
        until(|| one.is_shared_tier_available() && other.is_shared_tier_available()).await;
        store(&one, entry("/a", now_s()));
        until(|| server.state().pages.len() == 1).await;
        assert_eq!(other.load(&key("/a"), None).await.len(), 1);
        assert!(has(&other, "/a"));
        one.purge_url(&key("/a"));
        assert!(one.settle().await);
        until(|| !has(&other, "/a")).await;
        assert!(one.load(&key("/a"), None).await.is_empty());
        // A new release does not use the pages of the old one at once.
        store(&other, entry("/b", now_s()));
        let next = open(&scratch, &shared_by(&server), false);
        one.set_successor(&next);
        until(|| next.is_shared_tier_available()).await;
        assert!(next.settle().await);
        assert!(next.load(&key("/b"), None).await.is_empty());
    })
    .unwrap();
}

#[test]
fn responses_are_counted_by_their_status() {
    run(async {
        let cache = open(&Scratch::new(), "", true);
        cache.count(CacheStatus::Hit { remaining_s: 1 });
        cache.count(CacheStatus::Stale { remaining_s: -1, after_error: false });
        for _ in 0..2 {
            cache.count(CacheStatus::Miss { forward: MissReason::Uri, stored: Ok(()) });
        }
        for _ in 0..3 {
            cache.count(CacheStatus::Bypass(Reason::Method));
        }
        let expected = [("hit", 1), ("stale", 1), ("miss", 2), ("bypass", 3)];
        assert_eq!(cache.responses(), expected);
    })
    .unwrap();
}

/// A page that shows its visitor's cookie.
#[derive(Debug)]
struct Personal;

impl Replay for Personal {
    fn path(&self) -> &[u8] {
        b"/a"
    }

    fn fields(&self) -> OwnFields {
        vec![(b"cookie".to_vec(), b"name=Ann".to_vec())]
    }

    fn send(&self, fields: &OwnFields) -> Pin<Box<dyn Future<Output = Option<Replayed>>>> {
        let body =
            [b"hello ", &*fields.first().map_or(b"guest".to_vec(), |cookie| cookie.1.clone())]
                .concat();
        Box::pin(async { Some(Replayed { status: 200, personal_because: None, body }) })
    }
}

#[test]
fn a_page_that_the_audit_finds_personal_is_removed() {
    run(async {
        let cache = open(&Scratch::new(), "audit = \"100%\"", true);
        let stored = store(&cache, entry("/a?x=1", now_s()));
        store(&cache, entry("/b", now_s()));
        cache.sample_hit(&stored, || Some(Rc::new(Personal)));
        until(|| !has(&cache, "/a?x=1")).await;
        assert!(cache.audit().has_removed(b"/a") && !cache.audit().has_removed(b"/b"));
        assert!(has(&cache, "/b"));
    })
    .unwrap();
}
