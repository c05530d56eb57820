//! Users and services of access rules, and settings with which a path would be open or closed to all.

use super::*;
use crate::checked::testing::{APP, assert_error, site};

const HASH: &str = "$2y$10$jg44ROIOPEAL4.BPqcHtj.RTllnd4NFJPTSSVPQgYPDtgKrhVs1bG";

fn rule(keys: &str) -> String {
    format!("[[app.site.access]]\n{keys}\n")
}

fn forward(keys: &str) -> ForwardAuth {
    let app = site(&rule(&format!("forward_auth = {{ {keys} }}")));
    app.access.rules[0].forward_auth.clone().unwrap()
}

#[test]
fn a_service_is_a_url_with_its_own_path() {
    let url = "http://127.0.0.1:9091/api/verify/";
    let auth = forward(&format!("upstream = \"{url}\""));
    let to = ProxyTarget::Url(url.to_owned());
    assert_eq!(auth.service, AuthService::Upstream { to, verifies: true });
    assert_eq!((auth.timeout_ms, auth.copy_headers), (5_000, vec![]));
    let auth = forward("upstream = \"https://a\", verify = false, timeout = \"1s\"");
    assert!(matches!(auth.service, AuthService::Upstream { verifies: false, .. }));
    assert_eq!(auth.timeout_ms, 1_000);
}

#[test]
fn a_service_is_a_group_that_exists() {
    let keys = rule("forward_auth = { upstream = \"auth/check/\" }");
    let text = format!("{keys}[upstream.auth]\nservers = [\"a:1\"]\n");
    let service = site(&text).access.rules.remove(0).forward_auth.unwrap().service;
    let to = ProxyTarget::Group { name: "auth".to_owned(), path: "/check".to_owned() };
    assert_eq!(service, AuthService::Upstream { to, verifies: true });
    assert_error(&format!("{APP}{keys}"), Kind::Conflict, 4, "there is no upstream `auth`");
}

#[test]
fn a_service_is_a_script_of_the_app() {
    for (written, path) in [("/auth.php", "/auth.php"), ("sub/auth.php", "/sub/auth.php")] {
        let auth = forward(&format!("script = \"{written}\""));
        assert_eq!(auth.service, AuthService::Script(path.to_owned()));
    }
    let worker = format!("mode = \"worker\"\n{}", rule("forward_auth = { script = \"check\" }"));
    let service = site(&worker).access.rules.remove(0).forward_auth.unwrap().service;
    assert_eq!(service, AuthService::Script("/check".to_owned()), "the worker script handles it");
}

#[test]
fn a_service_that_cannot_decide_is_an_error() {
    for (keys, words) in [
        ("", "either `upstream` or `script` decides"),
        ("upstream = \"http://a\", script = \"/a.php\"", "either `upstream` or `script` decides"),
        ("script = \"/auth.txt\"", "`/auth.txt` is not a PHP script below the root"),
        ("script = \"/../auth.php\"", "is not a PHP script below the root"),
        ("script = \"/./auth.php\"", "is not a PHP script below the root"),
        ("script = \"//\"", "is not a PHP script below the root"),
        ("script = \"a//auth.php\"", "is not a PHP script below the root"),
        ("upstream = \"127.0.0.1:9091\"", "neither http:// nor https://"),
        ("upstream = \"http://u:p@a/\"", "the URL contains credentials"),
        ("upstream = \"http://a/?q\"", "a query"),
    ] {
        let text = format!("{APP}{}", rule(&format!("forward_auth = {{ {keys} }}")));
        assert_error(&text, Kind::BadValue, 4, words);
    }
}

#[test]
fn a_field_that_clients_or_the_protocol_use_cannot_name_a_user() {
    for name in
        ["X-Forwarded-User", "authorization", "Host", "Expect", "Proxy", "remote_user", "X_User"]
    {
        let keys =
            format!("forward_auth = {{ upstream = \"http://a\", copy_headers = [\"{name}\"] }}");
        let words = format!("`{name}` cannot name a user");
        assert_error(&format!("{APP}{}", rule(&keys)), Kind::BadValue, 4, &words);
    }
    let keys = "upstream = \"http://a\", copy_headers = [\"Remote-User\", \"X-Forward\"]";
    assert_eq!(forward(keys).copy_headers, ["Remote-User", "X-Forward"]);
}

#[test]
fn the_challenge_has_the_realm() {
    let challenge = |keys: &str| {
        let keys = format!("basic_auth = {{ users = {{ ops = '{HASH}' }}{keys} }}");
        site(&rule(&keys)).access.rules.remove(0).basic_auth.unwrap().challenge
    };
    assert_eq!(challenge(""), "Basic realm=\"Restricted\", charset=\"UTF-8\"");
    assert_eq!(challenge(", realm = 'Büro'"), "Basic realm=\"Büro\", charset=\"UTF-8\"");
}

#[test]
fn users_that_cannot_be_read_are_an_error_and_no_open_path() {
    let user = format!("users = {{ ops = '{HASH}' }}");
    for (keys, words) in [
        (String::new(), "no user can authenticate: `file` and `users` are missing"),
        ("users = {}".to_owned(), "no user can authenticate"),
        ("users = { ops = 'secret' }".to_owned(), ""),
        ("users = { ops = '$1$abc$xyz' }".to_owned(), ""),
        ("file = \"users.txt\"".to_owned(), ""),
        (format!("{user}, realm = 'a\"b'"), "a realm has no quotes"),
        (format!("{user}, realm = 'a\\b'"), "a realm has no quotes"),
        (format!("{user}, realm = \"a\\tb\""), "control characters"),
    ] {
        let text = format!("{APP}{}", rule(&format!("basic_auth = {{ {keys} }}")));
        assert_error(&text, Kind::BadValue, 4, words);
    }
}

#[test]
fn an_error_about_a_hash_does_not_show_it() {
    let text = format!("{APP}{}", rule("basic_auth.users = { ops = 'hunter2' }"));
    let errors = crate::checked::testing::parse(&text).unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!(error.key.as_deref(), Some("app.site.access.0.basic_auth.users.ops"));
    assert!(!error.message.contains("hunter2"), "{}", error.message);
}
