//! Requests that bypass the cache.

use outboard_http1::Method;
use outboard_page_cache::{
    BypassRules, CookieRules, Field, Fields, NamePattern, Policy, Reason, Request, RequestFacts,
    Visitor,
};

mod support;

fn guard() -> BypassRules {
    let patterns = |texts: &[&str]| texts.iter().map(|text| NamePattern::new(text)).collect();
    BypassRules {
        cookies: CookieRules {
            login: patterns(&["wordpress_logged_in_*", "PHPSESSID"]),
            ignored: patterns(&["_ga*", "consent"]),
        },
        ignored_fields: patterns(&["x-edge-*"]),
        bypass_paths: patterns(&["/wp-admin/*", "/wp-login.php"]),
    }
}

fn read<'a>(
    method: Method,
    path: &'a str,
    fields: &'a [Field<'a>],
) -> Result<RequestFacts<'a>, Reason> {
    let request = Request { method, path: path.as_bytes(), fields: Fields(fields) };
    RequestFacts::read(request, &guard(), &Policy::STANDARD)
}

#[test]
fn only_get_and_head_without_a_body_are_looked_up() {
    for method in [Method::Post, Method::Put, Method::Delete, Method::Options, Method::Other] {
        assert_eq!(read(method, "/", &[]).err(), Some(Reason::Method), "{method:?}");
    }
    assert!(!read(Method::Get, "/", &[]).unwrap().is_head);
    assert!(read(Method::Head, "/", &[]).unwrap().is_head);
    for (fields, expected) in [
        ("Content-Length: 3", Some(Reason::RequestBody)),
        ("Transfer-Encoding: chunked", Some(Reason::RequestBody)),
        ("Content-Length: 0", None),
    ] {
        let fields = support::lines(fields);
        assert_eq!(read(Method::Get, "/", &fields).err(), expected);
    }
}

#[test]
fn bypassed_paths_are_never_looked_up() {
    for path in ["/wp-admin/", "/wp-admin/post.php", "/wp-login.php"] {
        assert_eq!(read(Method::Get, path, &[]).err(), Some(Reason::AdminPath), "{path}");
    }
    for path in ["/wp-administrator", "/wp-login.php/x", "/"] {
        assert!(read(Method::Get, path, &[]).is_ok(), "{path}");
    }
}

#[test]
fn cookies_identify_the_visitor() {
    for (cookie, expected) in [
        ("", Ok(Visitor::Anonymous)),
        ("_ga=1; consent=yes; _gat=1", Ok(Visitor::Anonymous)),
        ("_ga=1; theme=dark", Ok(Visitor::Unknown)),
        ("consent2=1", Ok(Visitor::Unknown)),
        ("no-value", Ok(Visitor::Unknown)),
        ("a=1; wordpress_logged_in_abc=x", Err(Reason::LoginCookie)),
        ("PHPSESSID=x", Err(Reason::LoginCookie)),
        ("phpsessid=x", Ok(Visitor::Unknown)),
        ("x=PHPSESSID=1", Ok(Visitor::Unknown)),
    ] {
        let line = format!("Cookie: {cookie}");
        let fields = support::lines(&line);
        let visitor = read(Method::Get, "/", &fields).map(|facts| facts.visitor);
        assert_eq!(visitor, expected, "{cookie}");
    }
    let two_lines = support::lines("Cookie: _ga=1\nCookie: PHPSESSID=1");
    assert_eq!(read(Method::Get, "/", &two_lines).err(), Some(Reason::LoginCookie));
}

#[test]
fn directives_of_requests_can_be_ignored() {
    let policy = Policy { honors_client_cache_control: false, ..Policy::STANDARD };
    let fields = support::lines("Cache-Control: no-cache, max-age=0");
    let request = Request { method: Method::Get, path: b"/", fields: Fields(&fields) };
    let facts = RequestFacts::read(request, &guard(), &policy).unwrap();
    assert_eq!(facts.directives, Default::default());
}

#[test]
fn an_unknown_field_identifies_the_visitor() {
    for (line, expected) in [
        ("X-Api-Key: a", true),
        ("X-Auth-Token: a", true),
        ("X-WP-Nonce: a", true),
        ("Proxy-Authorization: Basic x", true),
        ("X-Forwarded-Client-Cert: a", true),
        ("Authorisation: a", true),
        ("X_Real_IP: 1.2.3.4", true),
        ("X-Edge-Id: a", false),
        ("x-edge-ID: a", false),
        ("X-Requested-With: XMLHttpRequest", false),
        ("X-Forwarded-Host: a", false),
    ] {
        let fields = support::lines(line);
        let facts = read(Method::Get, "/", &fields).unwrap();
        assert_eq!(
            (facts.has_unknown_field, facts.is_anonymous()),
            (expected, !expected),
            "{line}"
        );
    }
}

/// Fields of browsers, tools and content delivery networks, from their documentation.
#[test]
fn browsers_crawlers_and_proxies_are_anonymous() {
    for client in include_str!("support/clients.txt").split("\n\n") {
        let fields: Vec<_> = client.lines().filter(|line| !line.starts_with('#')).collect();
        let fields = fields.join("\n");
        let fields = support::lines(&fields);
        let facts = read(Method::Get, "/", &fields).unwrap();
        assert!(fields.len() > 2 && facts.is_anonymous(), "{client}");
    }
}
