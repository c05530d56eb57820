use crate::testing::{Site, in_loop};
use outboard_access::Ban;
use outboard_config::Network;
use outboard_http_server::{ListenerContext, Role};

const FILES: &[(&str, &str)] = &[
    ("a.txt", "a"),
    ("admin/index.html", "secret"),
    ("admin/b.txt", "secret"),
    ("other/index.html", "other"),
    ("index.php", "<?php"),
];

fn rule(keys: &str) -> String {
    format!("[[app.site.access]]\n{keys}\n")
}

#[test]
fn an_address_outside_of_allow_is_refused() {
    in_loop(async {
        let rules = rule("path = \"/admin/\"\nallow = [\"192.0.2.0/24\"]");
        let site = Site::new(FILES, &rules);
        assert_eq!(site.get("/a.txt").await.status, 200);
        for path in [
            "/admin",
            "/admin/",
            "/admin/b.txt",
            "/%61dmin/b.txt",
            "/a/../admin/b.txt",
            "//admin/b.txt",
            "/ADMIN/b.txt",
            "/index.php/admin/",
            "/x.PHP/Admin",
            "/./admin/x?a=/",
        ] {
            assert_eq!(site.get(path).await.status, 403, "{path}");
        }
        assert_eq!(site.refusals("address_denied"), 10);
        assert!(site.php_request().is_none());
    });
}

#[test]
fn deny_wins_over_allow() {
    in_loop(async {
        let rules = rule("allow = [\"127.0.0.0/8\"]\ndeny = [\"::ffff:127.0.0.1\"]");
        assert_eq!(Site::new(FILES, &rules).get("/a.txt").await.status, 403);
        let rules = rule("allow = [\"127.0.0.0/8\"]");
        assert_eq!(Site::new(FILES, &rules).get("/a.txt").await.status, 200);
    });
}

#[test]
fn rules_hold_for_what_a_request_leads_to() {
    in_loop(async {
        let rewrite = "[[app.site.rewrite]]\nmatch = '^/pub/(.*)$'\nto = '/admin/$1'\n";
        let rules = rule("path = \"/admin/\"\ndeny = [\"0.0.0.0/0\"]")
            + &rule("path = \"/other/index.html\"\ndeny = [\"0.0.0.0/0\"]")
            + rewrite;
        let site = Site::new(FILES, &rules);
        for path in ["/pub/b.txt", "/pub/", "/other/", "/other/index.html"] {
            assert_eq!(site.get(path).await.status, 403, "{path}");
        }
    });
}

#[test]
fn a_front_controller_is_protected_behind_any_path() {
    in_loop(async {
        let site = Site::new(FILES, &rule("path = \"/index.php\"\ndeny = [\"127.0.0.1\"]"));
        for path in ["/missing", "/index.php", "/", "/index.php/x"] {
            assert_eq!(site.get(path).await.status, 403, "{path}");
        }
        assert_eq!(site.get("/a.txt").await.status, 200);
    });
}

#[test]
fn excepted_paths_are_open() {
    in_loop(async {
        let rules = rule("except = [\"/a.txt\"]\ndeny = [\"127.0.0.1\"]");
        let site = Site::new(FILES, &rules);
        assert_eq!(site.get("/a.txt").await.status, 200);
        assert_eq!(site.get("/a.txt/").await.status, 403);
        assert_eq!(site.get("/A.txt").await.status, 403);
    });
}

#[test]
fn the_client_behind_a_trusted_proxy_is_checked() {
    in_loop(async {
        let site = Site::new(FILES, &rule("deny = [\"192.0.2.0/24\"]"));
        let mut trusting = ListenerContext::plain(Role::Apps);
        trusting.forwarding.client_address = true;
        trusting.forwarding.trusted_proxies = vec!["127.0.0.1".parse::<Network>().unwrap()];
        let lines = "X-Forwarded-For: 198.51.100.1, 192.0.2.7\r\n";
        let response = site.request_to(trusting, "GET", "/a.txt", lines, "").await;
        assert_eq!(response.status, 403);
        // A client without a proxy is not what it claims to be.
        let rules = rule("allow = [\"192.0.2.0/24\"]");
        let site = Site::new(FILES, &rules);
        let response = site.request("GET", "/a.txt", "X-Forwarded-For: 192.0.2.7\r\n", "").await;
        assert_eq!(response.status, 403);
    });
}

#[test]
fn requests_beyond_the_rate_get_429_and_the_time_to_wait() {
    in_loop(async {
        let keys = "rate_limit = { rate = \"2/h\", headers = true }";
        let site = Site::new(FILES, &rule(keys));
        for _ in 0..2 {
            assert_eq!(site.get("/a.txt").await.status, 200);
        }
        let response = site.get("/missing").await;
        assert_eq!(response.status, 429);
        let retry_s: u64 = response.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=1_800).contains(&retry_s), "{retry_s}");
        assert_eq!(response.header("ratelimit-policy"), Some("\"default\";q=2;w=3600"));
        let expected = format!("\"default\";r=0;t={retry_s}");
        assert_eq!(response.header("ratelimit"), Some(&expected[..]));
        assert_eq!(site.refusals("rate_limited"), 1);
    });
}

#[test]
fn refused_addresses_take_no_tokens() {
    in_loop(async {
        let rules = rule("rate_limit = \"1/h\"")
            + &rule("path = \"/admin/\"\ndeny = [\"::/0\", \"0.0.0.0/0\"]");
        let site = Site::new(FILES, &rules);
        assert_eq!(site.get("/admin/").await.status, 403);
        assert_eq!(site.get("/a.txt").await.status, 200);
        assert_eq!(site.get("/a.txt").await.status, 429);
    });
}

#[test]
fn a_limit_by_header_counts_requests_without_it_by_address() {
    in_loop(async {
        let keys = "rate_limit = { rate = \"1/h\", key = \"header:X-Api-Key\" }";
        let site = Site::new(FILES, &rule(keys));
        for (line, status) in [
            ("X-Api-Key: a\r\n", 200),
            ("X-Api-Key: a\r\n", 429),
            ("x-api-key: b\r\n", 200),
            ("", 200),
            ("", 429),
            ("X-Api-Key:\r\n", 429),
        ] {
            let response = site.request("GET", "/a.txt", line, "").await;
            assert_eq!(response.status, status, "{line}");
        }
    });
}

#[test]
fn a_limit_by_cookie_finds_the_cookie() {
    in_loop(async {
        let keys = "rate_limit = { rate = \"1/h\", key = \"cookie:sid\" }";
        let site = Site::new(FILES, &rule(keys));
        for (line, status) in [
            ("Cookie: a=b; sid=1\r\n", 200),
            ("Cookie: sid=1\r\n", 429),
            ("Cookie: a=b\r\nCookie: sid=2\r\n", 200),
        ] {
            assert_eq!(site.request("GET", "/a.txt", line, "").await.status, status, "{line}");
        }
    });
}

#[test]
fn a_banned_client_gets_no_response_of_any_app() {
    in_loop(async {
        let site = Site::new(FILES, "");
        let generation = site.gateway.generation();
        let network: Network = "127.0.0.0/8".parse().unwrap();
        let ban = Ban { until_s: None, reason: String::new() };
        generation.access.bans.ban(network, ban, 0).unwrap();
        assert_eq!(site.get("/a.txt").await.status, 403);
        assert_eq!(site.refusals("banned"), 1);
        assert!(generation.access.bans.unban(&network));
        assert_eq!(site.get("/a.txt").await.status, 200);
    });
}

/// Of "secret", with a cost of 4.
const USERS: &str = "basic_auth = { realm = \"Staff\", users = { alice = \"HASH\" } }";

fn users() -> String {
    USERS.replace("HASH", "$2y$04$pdglQdojgwI4ukq8epOVbu90WL.6hgdZ.7xCkmRGeTmBssxrrNuMy")
}

#[test]
fn several_authorizations_are_none() {
    in_loop(async {
        let site = Site::new(FILES, &rule(&users()));
        let one = "Authorization: Basic YWxpY2U6eA==\r\n";
        for (lines, reason) in [
            (String::new(), "auth_required"),
            ("Authorization: Bearer x\r\n".to_owned(), "auth_required"),
            (format!("{one}{one}"), "auth_required"),
            (format!("{one}Authorization: Bearer x\r\n"), "auth_required"),
            (one.to_owned(), "auth_failed"),
        ] {
            let before = site.refusals(reason);
            let response = site.request("GET", "/a.txt", &lines, "").await;
            assert_eq!(response.status, 401, "{lines}");
            let challenge = response.header("www-authenticate");
            assert_eq!(challenge, Some("Basic realm=\"Staff\", charset=\"UTF-8\""));
            assert_eq!(site.refusals(reason), before + 1, "{lines}");
        }
    });
}
