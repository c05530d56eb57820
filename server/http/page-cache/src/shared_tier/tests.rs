use super::fake_server::FakeServer;
use super::message::{self, Message};
use super::*;
use crate::test_support::{entry, error_log, key, until};
use outboard_reactor::{run, spawn};
use outboard_upstream::Settings;
use std::rc::Weak;

/// A gateway with a shared tier and a record of the purges that it applied.
struct Gateway {
    tier: Rc<SharedTier>,
    local: Rc<Local>,
}

#[derive(Default)]
struct Local {
    purges: RefCell<Vec<(Selector, bool)>>,
}

impl LocalTiers for Local {
    fn purge_locally(&self, selector: Selector, is_soft: bool) {
        self.purges.borrow_mut().push((selector, is_soft));
    }
}

impl Gateway {
    /// A gateway that is not connected yet.
    fn connecting(configured: &PageCacheShared) -> Self {
        Self::shard(configured, &Arc::default())
    }

    /// One of the shards that know the same purges.
    fn shard(configured: &PageCacheShared, known: &Arc<KnownPurges>) -> Self {
        let client = Client::new(Settings::default());
        let tier = SharedTier::new(configured, "site", known, &client, &error_log());
        let local = Rc::new(Local::default());
        let weak: Weak<Local> = Rc::downgrade(&local);
        spawn(tier.clone().run(weak));
        Self { tier, local }
    }

    async fn connected(server: &FakeServer) -> Self {
        let gateway = Self::connecting(&server.configured());
        until(|| gateway.tier.is_available()).await;
        // A new gateway does not know the purges of the epoch so far.
        assert_eq!(gateway.local.purges.take(), [(Selector::All, false)]);
        gateway
    }

    async fn get(&self, path: &str) -> Vec<Entry> {
        self.tier.get(&*self.local, &key(path)).await
    }

    fn broadcast(&self, selector: &Selector, is_soft: bool) {
        self.tier.broadcast(selector, is_soft, PurgeEpoch::default());
    }

    fn purges(&self) -> Vec<(Selector, bool)> {
        self.local.purges.borrow().clone()
    }
}

fn url(path: &str) -> Selector {
    Selector::url(path.as_bytes())
}

/// Stores a page that was rendered now.
async fn put(gateway: &Gateway, server: &FakeServer, path: &str) {
    let count = server.state().pages.len();
    gateway.tier.put(&entry(path, now_s()), || false);
    until(|| server.state().pages.len() > count).await;
}

/// Runs a test that gets a server.
fn with_server<F: Future<Output = ()> + 'static>(test: impl FnOnce(FakeServer) -> F + 'static) {
    run(test(FakeServer::start())).unwrap();
}

#[test]
fn a_page_of_one_gateway_is_read_by_another() {
    with_server(async |server| {
        let (one, other) = (Gateway::connected(&server).await, Gateway::connected(&server).await);
        put(&one, &server, "/a").await;
        let found = other.get("/a").await;
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].key(), &*found[0].plain().body), (&key("/a"), &[b'x'; 2000][..]));
        assert!(other.get("/b").await.is_empty());
        let stats = other.tier.stats();
        assert_eq!((stats.hits, one.tier.stats().stores, stats.away), (1, 1, None));
    });
}

#[test]
fn a_page_that_is_soon_stale_is_not_written() {
    with_server(async |server| {
        let gateway = Gateway::connected(&server).await;
        gateway.tier.put(&entry("/stale", now_s() - 996), || false);
        put(&gateway, &server, "/fresh").await;
        assert_eq!(gateway.tier.stats().stores, 1);
    });
}

#[test]
fn a_purge_applies_to_all_other_gateways_once() {
    with_server(async |server| {
        let (one, other) = (Gateway::connected(&server).await, Gateway::connected(&server).await);
        one.broadcast(&url("/a"), true);
        assert!(one.tier.settle().await);
        until(|| !other.purges().is_empty()).await;
        assert_eq!(other.purges(), [(url("/a"), true)]);
        assert!(one.purges().is_empty(), "it has applied its own purge before");
        until(|| one.tier.known.generation() == 1).await;
        assert_eq!((one.tier.stats().purges_sent, other.tier.stats().purges_received), (1, 1));
    });
}

#[test]
fn a_page_from_before_a_purge_is_not_used() {
    with_server(async |server| {
        let gateway = Gateway::connected(&server).await;
        put(&gateway, &server, "/a").await;
        put(&gateway, &server, "/b").await;
        // The push is missing: the lookup itself has to notice the purge.
        server.state().loses_purges = true;
        let message = message::encoded("other", false, &url("/a"));
        server.state().purge(&message);
        assert!(gateway.get("/a").await.is_empty());
        assert_eq!(gateway.get("/b").await.len(), 1);
        assert_eq!(gateway.purges(), [(url("/a"), false)]);
    });
}

#[test]
fn a_gap_in_the_pushed_purges_is_filled() {
    with_server(async |server| {
        let gateway = Gateway::connected(&server).await;
        for (is_missed, path) in [(true, "/a"), (true, "/b"), (false, "/c")] {
            let message = message::encoded("other", false, &url(path));
            server.state().loses_purges = is_missed;
            server.state().purge(&message);
        }
        until(|| gateway.tier.known.generation() == 3).await;
        assert_eq!(gateway.purges(), ["/a", "/b", "/c"].map(|path| (url(path), false)));
    });
}

#[test]
fn purges_during_a_disconnect_are_applied_before_a_read() {
    with_server(async |server| {
        let gateway = Gateway::connected(&server).await;
        server.disconnect_all();
        until(|| !gateway.tier.is_available()).await;
        assert!(gateway.get("/a").await.is_empty());
        server.state().purge(&message::encoded("other", true, &url("/a")));
        until(|| gateway.tier.is_available()).await;
        assert_eq!(gateway.purges(), [(url("/a"), true)]);
    });
}

#[test]
fn purges_that_the_server_has_forgotten_purge_everything() {
    with_server(async |server| {
        let gateway = Gateway::connected(&server).await;
        server.disconnect_all();
        until(|| !gateway.tier.is_available()).await;
        for path in ["/a", "/b", "/c"] {
            server.state().purge(&message::encoded("other", false, &url(path)));
        }
        server.state().purges.drain(..2);
        until(|| gateway.tier.is_available()).await;
        assert_eq!(gateway.purges(), [(Selector::All, false), (url("/c"), false)]);
        assert_eq!(gateway.tier.known.generation(), 3);
    });
}

#[test]
fn a_restarted_server_begins_an_epoch_without_pages() {
    with_server(async |server| {
        let gateway = Gateway::connected(&server).await;
        put(&gateway, &server, "/a").await;
        server.state().run = "run-2".to_owned();
        server.disconnect_all();
        until(|| !gateway.tier.is_available()).await;
        until(|| gateway.tier.is_available()).await;
        assert_eq!(gateway.purges(), [(Selector::All, false)]);
        assert!(gateway.get("/a").await.is_empty());
    });
}

#[test]
fn a_server_that_lost_its_state_is_joined_again() {
    with_server(async |server| {
        let gateway = Gateway::connected(&server).await;
        server.state().epoch = None;
        assert!(gateway.get("/a").await.is_empty());
        until(|| !gateway.tier.is_available()).await;
        until(|| gateway.tier.is_available()).await;
        assert!(server.state().epoch.is_some());
        assert_eq!(gateway.purges(), [(Selector::All, false)]);
    });
}

#[test]
fn an_unconfirmed_purge_is_sent_again() {
    for is_counted in [false, true] {
        with_server(async move |server| {
            let gateway = Gateway::connected(&server).await;
            server.state().closes_on_purge = Some(is_counted);
            gateway.broadcast(&url("/a"), false);
            assert!(!gateway.tier.settle().await, "the connection ends before the confirmation");
            assert_eq!(gateway.tier.stats().purges_unconfirmed, 1);
            server.state().closes_on_purge = None;
            until(|| gateway.tier.stats().purges_unconfirmed == 0).await;
            assert!(gateway.tier.settle().await);
            assert!(server.state().generation >= 1);
            assert!(gateway.purges().is_empty());
        });
    }
}

#[test]
fn too_many_unconfirmed_purges_become_one_of_everything() {
    with_server(async |server| {
        server.state().rejects = Some("LOADING not yet");
        let gateway = Gateway::connecting(&server.configured());
        for number in 0..sent_purges::UNCONFIRMED_MAX + 1 {
            gateway.broadcast(&url(&format!("/{number}")), true);
        }
        assert_eq!(gateway.tier.stats().purges_unconfirmed, 1);
        server.state().rejects = None;
        until(|| gateway.tier.stats().purges_unconfirmed == 0).await;
        let message = Message::decoded(&server.state().purges[0]).unwrap();
        assert_eq!((message.selector, message.is_soft), (Selector::All, false));
    });
}

#[test]
fn an_unavailable_server_makes_no_request_wait() {
    with_server(async |server| {
        server.state().rejects = Some("WRONGPASS invalid password");
        let gateway = Gateway::connecting(&server.configured());
        let why = || gateway.tier.unavailable_because().unwrap();
        assert_eq!(why(), "not connected yet");
        until(|| why() == "WRONGPASS invalid password").await;
        gateway.broadcast(&url("/a"), false);
        assert!(!gateway.tier.settle().await);
        assert!(gateway.get("/a").await.is_empty());
    });
}

#[test]
fn a_silent_server_delays_a_request_by_the_time_limit_at_most() {
    with_server(async |server| {
        let gateway =
            Gateway::connecting(&PageCacheShared { timeout_ms: 10, ..server.configured() });
        until(|| gateway.tier.is_available()).await;
        server.state().is_silent = true;
        assert!(gateway.get("/a").await.is_empty());
        assert!(gateway.tier.is_available(), "the request has given up, not the connection");
    });
}

#[test]
fn a_purge_is_applied_by_one_shard_of_a_gateway() {
    with_server(async |server| {
        let (known, configured) = (Arc::default(), server.configured());
        let shards = [(); 2].map(|()| Gateway::shard(&configured, &known));
        until(|| shards.iter().all(|shard| shard.tier.is_available())).await;
        let applied = || shards.iter().flat_map(Gateway::purges).collect::<Vec<_>>();
        assert_eq!(applied(), [(Selector::All, false)], "the first connection joins the epoch");
        let other = Gateway::connected(&server).await;
        for path in ["/a", "/b"] {
            other.broadcast(&url(path), true);
            assert!(other.tier.settle().await);
        }
        until(|| known.generation() == 2).await;
        shards[1].broadcast(&url("/c"), false);
        assert!(shards[1].tier.settle().await);
        until(|| known.generation() == 3).await;
        let mut all = applied();
        all.sort_by_key(|(selector, _)| format!("{selector:?}"));
        assert_eq!(all, [(Selector::All, false), (url("/a"), true), (url("/b"), true)]);
        until(|| other.purges() == [(url("/c"), false)]).await;
    });
}

#[test]
fn an_epoch_that_one_shard_finds_lost_is_over_for_all() {
    with_server(async |server| {
        let (known, configured) = (Arc::default(), server.configured());
        let shards = [(); 2].map(|()| Gateway::shard(&configured, &known));
        until(|| shards.iter().all(|shard| shard.tier.is_available())).await;
        server.state().epoch = None;
        assert!(shards[0].get("/a").await.is_empty());
        until(|| !shards[0].tier.is_available()).await;
        until(|| shards[0].tier.is_available()).await;
        assert!(shards[1].get("/a").await.is_empty());
        let has_joined = |shard: &Gateway| *shard.tier.epoch.borrow() == known.now().0;
        until(|| shards.iter().all(has_joined)).await;
        assert_eq!(server.state().epoch.as_deref(), Some(&*known.now().0));
    });
}
