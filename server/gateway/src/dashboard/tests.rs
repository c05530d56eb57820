//! The dashboard on the admin socket and on an address.

use super::{VIEWERS_MAX, recorder, state};
use crate::testing::{Response, Site, in_loop};
use outboard_admin_api::dashboard::{Dashboard, Get};
use outboard_http_server::{ListenerContext, Role};

async fn admin(site: &Site, method: &str, target: &str, fields: &str) -> Response {
    site.request_to(ListenerContext::plain(Role::Admin), method, target, fields, "").await
}

async fn dashboard(site: &Site) -> Dashboard {
    let response = admin(site, "GET", "/dashboard/state", "").await;
    assert_eq!(response.status, 200, "{}", response.body);
    serde_json::from_str(&response.body).expect("it is of this type")
}

#[test]
fn the_page_runs_scripts_of_this_server_only() {
    in_loop(async {
        let site = Site::new(&[], "");
        for target in ["/", "/dashboard", "/dashboard/dashboard.js", "/dashboard/dashboard.css"] {
            let response = admin(&site, "GET", target, "").await;
            let policy = response.header("content-security-policy").expect("a policy");
            assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
            assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        }
        assert_eq!(admin(&site, "POST", "/dashboard", "").await.status, 404);
        assert_eq!(admin(&site, "GET", "/dashboard/other.js", "").await.status, 404);
    });
}

#[test]
fn pages_of_other_sites_cannot_use_the_admin_socket() {
    in_loop(async {
        let site = Site::new(&[], "");
        for fields in [
            "Origin: http://evil.example\r\n",
            "Origin: null\r\n",
            "Sec-Fetch-Site: cross-site\r\n",
            // By a name that resolves to this machine.
            "Origin: http://example.test\r\nSec-Fetch-Site: same-origin\r\n",
        ] {
            assert_eq!(admin(&site, "POST", "/stop", fields).await.status, 403, "{fields}");
            assert_eq!(admin(&site, "GET", "/dashboard/state", fields).await.status, 403);
        }
        assert!(site.gateway.control.stop.poll().is_pending());
        assert_eq!(admin(&site, "GET", "/status", "").await.status, 200, "a program");
    });
}

#[test]
fn paths_are_counted_once_a_dashboard_is_open() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "");
        site.get("/a.txt").await;
        assert!(dashboard(&site).await.paths.is_empty());
        site.get("/a.txt?token=secret").await;
        let found = dashboard(&site).await;
        assert_eq!((found.paths[0].path.as_str(), found.paths[0].requests), ("/a.txt", 1));
        assert_eq!(found.status.requests, 2);
    });
}

#[test]
fn a_point_of_the_history_has_what_happened_since_the_last() {
    in_loop(async {
        let site = Site::new(&[("a.txt", "a")], "");
        recorder::record(&site.gateway).await;
        assert!(dashboard(&site).await.history.is_empty());
        site.get("/a.txt").await;
        site.get("/b.txt").await;
        recorder::record(&site.gateway).await;
        let history = dashboard(&site).await.history;
        let [point] = &history[..] else { panic!("{history:?}") };
        assert_eq!((point.classes[2], point.classes[4], point.body_bytes > 0), (1, 1, true));
        assert_eq!(point.phases["total"].count, 2);
        let later = format!("/dashboard/state?since_ms={}", point.at_ms);
        let later = admin(&site, "GET", &later, "").await;
        let later: Dashboard = serde_json::from_str(&later.body).expect("it is of this type");
        assert!(later.history.is_empty());
    });
}

#[test]
fn so_many_viewers_and_no_more_are_served_at_once() {
    in_loop(async {
        let site = Site::new(&[], "");
        let others: Vec<_> = (0..VIEWERS_MAX).map(|_| site.gateway.viewers.clone()).collect();
        let refused = state(&site.gateway, &Get::default()).await.err();
        assert_eq!(refused.map(|refusal| refusal.status), Some(503));
        drop(others);
        assert!(state(&site.gateway, &Get::default()).await.is_ok());
    });
}

#[test]
fn an_address_whose_dashboard_was_removed_shows_nothing() {
    in_loop(async {
        let site = Site::new(&[], "");
        let listener = ListenerContext::plain(Role::Dashboard);
        assert_eq!(site.request_to(listener, "GET", "/", "", "").await.status, 404);
    });
}
