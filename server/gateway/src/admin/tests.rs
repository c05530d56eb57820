//! Endpoints of the admin socket.

mod caches;
mod records;

use crate::testing::{Response, Site, Upstream, in_loop, ok, request_text, wait_for};
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
fn the_opcache_report_is_rendered_by_php() {
    in_loop(async {
        let site = Site::new(&[], "");
        let client = site.connect_to(ListenerContext::plain(Role::Admin));
        client.send(request_text("GET", "/opcache", "", ""));
        let pool = site.app().pool();
        let take = || outboard_php_pool::pool::testing::next_request(&pool);
        let php = wait_for("a request to PHP", take).await;
        php.respond(200, &[], "{\"opcache_enabled\":true}");
        let response = client.receive_to_end().await;
        assert!(response.contains("\"opcache_enabled\":true"), "{response}");
    });
}

/// The opcache report of a site whose PHP does this.
async fn opcache_report(
    respond: impl FnOnce(&outboard_php_pool::pool::testing::PhpRequest),
) -> String {
    let site = Site::new(&[], "");
    let client = site.connect_to(ListenerContext::plain(Role::Admin));
    client.send(request_text("GET", "/opcache", "", ""));
    respond(&site.next_php_request().await);
    client.receive_to_end().await
}

#[test]
fn a_report_of_php_that_is_none_is_an_error_of_its_app() {
    in_loop(async {
        for body in ["", "false", "<html>", "{\"opcache_enabled\":"] {
            let response = opcache_report(|php| php.respond(200, &[], body)).await;
            assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
            assert!(response.contains("\"site\":{\"error\":"), "{body}: {response}");
        }
        let response = opcache_report(|php| php.respond(200, &[], vec![b' '; 8 << 20])).await;
        assert!(response.contains("\"site\":{\"error\":"), "too long: {response}");
        let response = opcache_report(|php| php.fail(outboard_log::Reason::WorkerCrashed)).await;
        assert!(response.contains("\"site\":{\"error\":"), "{response}");
    });
}

#[test]
fn only_get_and_post_have_admin_resources() {
    in_loop(async {
        let site = Site::new(&[], "");
        for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
            for target in ["/stop", "/reload", "/metrics"] {
                assert_eq!(request(&site, method, target).await.status, 404, "{method} {target}");
            }
        }
        assert_eq!(request(&site, "GET", "/stop").await.status, 404);
        assert!(site.gateway.control.stop.poll().is_pending());
        assert_eq!(request(&site, "HEAD", "/status").await.body, "");
    });
}

#[test]
fn the_metrics_count_what_clients_got() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "");
        for path in ["/a.txt", "/a.txt", "/none"] {
            site.get(path).await;
        }
        let metrics = request(&site, "GET", "/metrics").await.body;
        let sum = |name: &str, label: &str| {
            let lines = metrics.lines().filter(|line| line.starts_with(name));
            let lines = lines.filter(|line| line.contains(label));
            lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum::<f64>()
        };
        assert_eq!(sum("outboard_responses_total", "2xx"), 2.0, "{metrics}");
        assert_eq!(sum("outboard_responses_total", "4xx"), 1.0, "{metrics}");
        // Each metric is declared once, before its samples.
        let types: Vec<&str> = metrics.lines().filter(|line| line.starts_with("# TYPE ")).collect();
        let names: std::collections::BTreeSet<&&str> = types.iter().collect();
        assert_eq!(types.len(), names.len());
    });
}
