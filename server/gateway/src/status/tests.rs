//! The report of a gateway, and of the gateways of two threads.

use super::*;
use crate::testing::{Site, in_loop};
use std::collections::BTreeMap;

const PROXY: &str = "[[app.site.proxy]]\npath = \"/api/\"\nupstream = \"http://127.0.0.1:1\"\n";

#[test]
fn a_report_adds_up_both_threads() {
    in_loop(async {
        let files = &[("a.txt", "abc")];
        let (lead, other) = (Site::new(files, PROXY), Site::new(files, PROXY));
        lead.gateway.shards.set_followers(vec![other.handle()]);
        for (site, path) in [(&lead, "/a.txt"), (&other, "/a.txt"), (&other, "/api/")] {
            site.get(path).await;
        }
        let status = of(&lead.gateway).await;
        assert_eq!((status.threads, status.requests), (2, 3));
        let classes = [("2xx".to_owned(), 2), ("5xx".to_owned(), 1)];
        assert_eq!(status.responses, BTreeMap::from(classes), "only those that there were");
        let failed: Vec<_> = status.reasons.iter().filter(|reason| reason.count > 0).collect();
        assert!(matches!(failed[..], [one] if one.reason == "upstream_failed" && one.count == 1));
        assert_eq!(status.pools.len(), 1, "{:?}", status.pools);
        assert_eq!(status.pools[0].app, "site");
        let all = status.latencies.iter().filter(|one| one.kind == "all");
        assert_eq!(all.map(|one| (&*one.app, one.count)).collect::<Vec<_>>(), [("site", 3)]);
    });
}

#[test]
fn a_report_names_only_kinds_of_failures_that_there_were() {
    in_loop(async {
        let site = Site::new(&[], PROXY);
        let before = of(&site.gateway).await;
        assert_eq!(before.upstream.failures, BTreeMap::new());
        assert_eq!(site.get("/api/").await.status, 502);
        let after = of(&site.gateway).await;
        assert_eq!(after.upstream.failures, BTreeMap::from([("connect".to_owned(), 1)]));
        assert_eq!((after.upstream.requests, after.upstream.under_way), (1, 0));
        assert_eq!(after.upstream.responses, 0);
    });
}

#[test]
fn a_report_shows_what_the_server_is_about_to_do() {
    in_loop(async {
        let site = Site::with_config(
            &[],
            "drain_timeout = \"7s\"\nenvironment = \"development\"\n[app.site]\nroot = \"www\"\n\
             [development]\nwatch = []\n",
        );
        let starting = of(&site.gateway).await;
        assert_eq!((starting.ready, starting.draining, starting.generation), (false, false, 1));
        assert_eq!((&*starting.environment, starting.drain_timeout_ms), ("development", 7_000));
        assert_eq!(
            (starting.pid, &*starting.version),
            (std::process::id(), env!("CARGO_PKG_VERSION"))
        );
        site.gateway.adopt(Some("blue".to_owned()), Vec::new());
        site.gateway.ready.set(true);
        site.gateway.server.drain();
        let ending = of(&site.gateway).await;
        assert_eq!((ending.ready, ending.draining), (true, true));
        assert_eq!(ending.name.as_deref(), Some("blue"));
    });
}

#[test]
fn a_cache_out_of_reach_of_its_server_says_why() {
    in_loop(async {
        let shared = "[app.site.page_cache]\nmode = \"on\"\n";
        let site = Site::new(&[], shared);
        assert_eq!(of(&site.gateway).await.unshared_page_caches, []);
        let shared =
            format!("{shared}[app.site.page_cache.shared]\nserver = \"redis://127.0.0.1:1\"\n");
        let lead = Site::new(&[], &shared);
        let other = Site::new(&[], &shared);
        lead.gateway.shards.set_followers(vec![other.handle()]);
        let unshared = of(&lead.gateway).await.unshared_page_caches;
        let [one] = &unshared[..] else { panic!("once, not for each thread: {unshared:?}") };
        assert!(one.app == "site" && !one.why.is_empty(), "{one:?}");
    });
}
