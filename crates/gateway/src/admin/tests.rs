//! Endpoints of the admin socket.

use crate::testing::{Response, Site, Upstream, in_loop, ok, request_text, wait_for};
use outboard_entity_store::{write_backup_head, write_backup_record};
use outboard_http_server::{ListenerContext, Role};

async fn request(site: &Site, method: &str, target: &str) -> Response {
    site.request_to(ListenerContext::plain(Role::Admin), method, target, "", "").await
}

async fn request_with_body(site: &Site, method: &str, target: &str, body: &str) -> Response {
    site.request_to(ListenerContext::plain(Role::Admin), method, target, "", body).await
}

/// The text of the response to a request, which may be binary.
async fn exchange(site: &Site, request: impl AsRef<[u8]>) -> String {
    let client = site.connect_to(ListenerContext::plain(Role::Admin));
    client.send(request);
    client.receive_to_end().await
}

#[test]
fn the_status_names_apps_and_counters() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "");
        site.get("/a.txt").await;
        let response = request(&site, "GET", "/status").await;
        assert_eq!(response.header("content-type"), Some("application/json"));
        let status: serde_json::Value = serde_json::from_str(&response.body).unwrap();
        assert_eq!(status["generation"], 1);
        assert_eq!(status["pools"][0]["app"], "site");
        assert_eq!(status["responses"]["2xx"], 1);
    });
}

#[test]
fn unknown_resources_and_parameters_are_refused() {
    in_loop(async {
        let site = Site::new(&[], "");
        assert_eq!(request(&site, "GET", "/none").await.status, 404);
        assert_eq!(request(&site, "DELETE", "/status").await.status, 404);
        let response = request(&site, "GET", "/cache/get?other=1").await;
        assert_eq!(response.status, 400, "{}", response.body);
    });
}

#[test]
fn a_metrics_listener_serves_metrics_only() {
    in_loop(async {
        let site = Site::new(&[], "");
        let metrics = || ListenerContext::plain(Role::Metrics);
        let response = site.request_to(metrics(), "GET", "/metrics", "", "").await;
        assert!(response.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
        for line in response.body.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("outboard_"), "{line}");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
        for target in ["/status", "/v0/status", "/kv/backup"] {
            assert_eq!(site.request_to(metrics(), "GET", target, "", "").await.status, 404);
        }
        assert_eq!(site.request_to(metrics(), "POST", "/stop", "", "").await.status, 404);
        assert!(site.gateway.control.stop.poll().is_pending());
    });
}

#[test]
fn stop_and_reload_are_passed_to_the_server() {
    in_loop(async {
        let site = Site::new(&[], "");
        assert_eq!(request(&site, "POST", "/stop").await.status, 202);
        assert!(site.gateway.control.stop.poll().is_ready());
        let gateway = site.gateway.clone();
        outboard_reactor::spawn(async move {
            gateway.control.reload.wait().await;
            for waiter in gateway.control.take_reload_waiters() {
                waiter.complete(Err("an error in line 7".to_owned()));
            }
        });
        let response = request(&site, "POST", "/reload").await;
        assert_eq!(response.status, 409);
        assert!(response.body.contains("an error in line 7"), "{}", response.body);
    });
}

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
        assert_eq!(list["entries"][0]["url"], "https://example.test/c/d");
        let entry = request(&site, "GET", "/cache/get?url=https://example.test/a").await;
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

#[test]
fn a_backup_is_restored() {
    in_loop(async {
        let site = Site::new(&[], "[kv]\ndata_dir = \"DIR/kv\"\n");
        for (id, value) in [("a", "1"), ("b", "2")] {
            let target = format!("/v0/entity?id={id}");
            assert_eq!(request_with_body(&site, "PUT", &target, value).await.status, 201);
        }
        let mut backup = Vec::new();
        write_backup_head(&mut backup);
        let exported = exchange(&site, request_text("GET", "/kv/backup", "", "")).await;
        assert!(exported.contains(&*String::from_utf8_lossy(&backup)), "{exported}");
        let entities = site.gateway.generation().entities.clone().unwrap();
        let namespace = entities.namespace("default").unwrap();
        for id in [b"a", b"b"] {
            let record = namespace.get(id).await.unwrap().unwrap();
            write_backup_record(&mut backup, Ok((id, &record)));
        }
        write_backup_record(&mut backup, Err(2));
        assert_eq!(request(&site, "DELETE", "/v0/entity?id=a").await.status, 202);
        let lines = format!("Content-Length: {}\r\n", backup.len());
        let head = request_text("POST", "/kv/restore", &lines, "");
        let restored = exchange(&site, [head.as_bytes(), &backup].concat()).await;
        assert!(restored.contains("\"restored\":2"), "{restored}");
        assert_eq!(request(&site, "GET", "/v0/entity?id=a").await.body, "1");
        assert_eq!(request_with_body(&site, "POST", "/kv/restore", "junk").await.status, 400);
        let stats = request(&site, "GET", "/kv/stats").await;
        assert!(stats.body.contains("\"namespace\":\"default\""), "{}", stats.body);
        assert_eq!(request(&site, "GET", "/kv/stats?namespace=none").await.status, 404);
        assert_eq!(request(&site, "POST", "/kv/compact").await.status, 200);
    });
}

#[test]
fn a_server_without_a_store_refuses_records() {
    in_loop(async {
        let site = Site::new(&[], "");
        let response = request(&site, "GET", "/v0/entity?id=a").await;
        assert_eq!(response.status, 409);
        assert!(response.body.contains("see [kv]"), "{}", response.body);
    });
}

#[test]
fn the_opcache_report_is_rendered_by_php() {
    in_loop(async {
        let site = Site::new(&[], "");
        let client = site.connect_to(ListenerContext::plain(Role::Admin));
        client.send(request_text("GET", "/opcache", "", ""));
        let pool = site.app().pool.clone();
        let take = || outboard_php_pool::pool::testing::next_request(&pool);
        let php = wait_for("a request to PHP", take).await;
        php.respond(200, &[], "{\"opcache_enabled\":true}");
        let response = client.receive_to_end().await;
        assert!(response.contains("\"opcache_enabled\":true"), "{response}");
    });
}
