//! Page caches: contents and purges.

use super::*;

#[test]
fn cached_pages_are_listed_shown_and_purged() {
    in_loop(async {
        let upstream =
            Upstream::start(|_| ok("Cache-Control: max-age=60\r\nCache-Tag: t\r\n", "x"));
        let keys = format!(
            "page_cache = \"on\"\n[[app.site.proxy]]\npath = \"/**\"\nupstream = \"http://127.0.0.1:{}\"\n",
            upstream.port
        );
        let site = Site::new(&[], &keys);
        for path in ["/a", "/b", "/c/d"] {
            site.get(path).await;
        }
        let stats = request(&site, "GET", "/cache/stats").await;
        assert!(stats.body.contains("\"site\""), "{}", stats.body);
        let list = request(&site, "GET", "/cache/list?prefix=/c").await;
        let list: serde_json::Value = serde_json::from_str(&list.body).unwrap();
        assert_eq!(list["entries"].as_array().unwrap().len(), 1);
        assert_eq!(list["entries"][0]["url"], "http://example.test/c/d");
        let entry = request(&site, "GET", "/cache/get?url=http://example.test/a").await;
        assert!(entry.body.contains("\"body_bytes\":1"), "{}", entry.body);
        assert_eq!(request(&site, "POST", "/cache/purge").await.status, 400);
        let purged = request(&site, "POST", "/cache/purge?url=/a").await;
        assert_eq!(purged.status, 200, "{}", purged.body);
        let purged = request(&site, "POST", "/cache/purge?tag=t").await;
        assert!(purged.body.contains("\"purged\":"), "{}", purged.body);
        assert_eq!(request(&site, "GET", "/cache/list?app=other").await.status, 404);
        let audit = request(&site, "POST", "/cache/audit").await;
        assert!(audit.body.contains("\"examined\":0"), "{}", audit.body);
    });
}

/// A site with a cached page for each path.
async fn cached(upstream: &Upstream, paths: &[&str]) -> Site {
    let keys = format!(
        "page_cache = \"on\"\n[[app.site.proxy]]\npath = \"/**\"\nupstream = \"http://127.0.0.1:{}\"\n",
        upstream.port
    );
    let site = Site::new(&[], &keys);
    for path in paths {
        site.get(path).await;
    }
    site
}

#[test]
fn pages_below_a_prefix_or_all_of_them_are_purged() {
    in_loop(async {
        let upstream = Upstream::start(|_| ok("Cache-Control: max-age=60\r\n", "x"));
        let site = cached(&upstream, &["/a/1", "/a/2", "/b", "/c"]).await;
        let purge =
            async |query: &str| request(&site, "POST", &format!("/cache/purge?{query}")).await.body;
        assert!(purge("prefix=/a/").await.contains("\"purged\":2"));
        assert!(purge("prefix=/a/").await.contains("\"purged\":0"), "they are gone");
        assert!(purge("url=http://example.test/b").await.contains("\"purged\":1"));
        assert!(purge("all=true").await.contains("\"purged\":1"));
        assert!(request(&site, "GET", "/cache/list").await.body.contains("\"entries\":[]"));
        assert_eq!(request(&site, "POST", "/cache/purge?all=true&app=none").await.status, 404);
    });
}

#[test]
fn an_entry_is_shown_with_its_headers_by_url_or_path() {
    in_loop(async {
        let lines = "Cache-Control: max-age=60\r\nX-Own: 1\r\nVary: Accept-Language\r\n";
        let upstream = Upstream::start(move |_| ok(lines, "x"));
        let site = cached(&upstream, &["/a?x=1", "/b"]).await;
        for url in ["http://example.test/a?x=1", "/a?x=1"] {
            let target = format!("/cache/get?url={}", url.replace('?', "%3F").replace('=', "%3D"));
            let response = request(&site, "GET", &target).await;
            let details: serde_json::Value = serde_json::from_str(&response.body).unwrap();
            let [entry] = &details["entries"].as_array().unwrap()[..] else {
                panic!("{}", response.body)
            };
            assert_eq!(entry["url"], "http://example.test/a?x=1");
            assert_eq!(entry["varies_by"][0], "accept-language");
            assert!(response.body.to_lowercase().contains("x-own"), "{}", response.body);
        }
        assert_eq!(request(&site, "GET", "/cache/get").await.status, 400);
        let none = request(&site, "GET", "/cache/get?url=/none").await;
        assert!(none.body.contains("\"entries\":[]"), "{}", none.body);
    });
}

#[test]
fn servers_without_a_page_cache_have_none_to_manage() {
    in_loop(async {
        let site = Site::new(&[], "");
        for (method, target) in [
            ("GET", "/cache/stats"),
            ("GET", "/cache/list"),
            ("GET", "/cache/get?url=/"),
            ("POST", "/cache/purge?all=true"),
        ] {
            let response = request(&site, method, target).await;
            assert_eq!(response.status, 404, "{target}");
            assert!(response.body.contains("page_cache"), "{}", response.body);
        }
    });
}
