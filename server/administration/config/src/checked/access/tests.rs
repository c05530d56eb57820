//! Which rules a request has to satisfy, and which clients they admit.

use super::*;
use crate::checked::testing::{APP, assert_error, site};

/// The rules with these keys, one table for each.
fn access(rules: &[&str]) -> Access {
    let tables = rules.iter().map(|rule| format!("[[app.site.access]]\n{rule}\n"));
    site(&tables.collect::<String>()).access
}

fn of_request(access: &Access, path: &str) -> Vec<usize> {
    access.of_request(path.as_bytes(), ConditionSet::default()).indices().collect()
}

#[test]
fn a_set_has_each_of_the_most_rules_once() {
    let access = access(&["deny = [\"192.0.2.1\"]"; RuleSet::MAX]);
    let all = access.of_request(b"/", ConditionSet::default());
    assert_eq!(all.indices().collect::<Vec<_>>(), (0..RuleSet::MAX).collect::<Vec<_>>());
    assert!(all.without(all).is_empty() && !all.is_empty());
    assert_eq!(RuleSet::default().indices().next(), None);
    let [one, two] = [RuleSet(1), RuleSet(1 << 63)];
    assert_eq!(one.and(two).indices().collect::<Vec<_>>(), [0, 63]);
    assert_eq!(one.and(two).without(one), two);
}

#[test]
fn more_rules_than_a_set_has_are_an_error() {
    let rules = "[[app.site.access]]\ndeny = [\"192.0.2.1\"]\n".repeat(RuleSet::MAX + 1);
    let words = "an app has at most 64 access rules";
    assert_error(&format!("{APP}{rules}"), Kind::BadValue, 3, words);
}

#[test]
fn a_rule_holds_for_every_spelling_of_its_paths() {
    let access = access(&["path = \"/admin/\"\nexcept = [\"/admin/public/*\"]"]);
    for path in [
        "/admin",
        "/admin/",
        "/ADMIN/Users",
        "/admin.gz",
        "/admin/public",
        "/admin/public/a/b",
        "/index.php/admin",
        "/INDEX.PHP/admin/users",
        "/a.php/b.php/admin",
        "/a/b.php/admin",
    ] {
        assert_eq!(of_request(&access, path), [0], "{path}");
    }
    for path in [
        "/",
        "/administrator",
        "/blog/admin",
        "/admin/public/logo.svg",
        "/index.html/admin",
        "/index.php/blog/admin",
        "/.php",
        "/index.php",
    ] {
        assert!(of_request(&access, path).is_empty(), "{path}");
    }
}

#[test]
fn a_rule_without_a_path_is_of_requests_and_not_of_results() {
    let access = access(&["except = [\"/health\"]", "path = \"*.sql\"", "path = \"/a\""]);
    assert_eq!(of_request(&access, "/b"), [0]);
    assert_eq!(of_request(&access, "/health"), [0; 0]);
    assert_eq!(of_request(&access, "/a/dump.SQL"), [0, 1, 2]);
    let of_result =
        |path: &[u8]| access.of_result(path, ConditionSet::default()).indices().collect::<Vec<_>>();
    assert_eq!(of_result(b"/health"), [0; 0]);
    assert_eq!(of_result(b"/a/dump.sql.gz"), [1, 2]);
    assert_eq!(of_result(b"/\xff\xfe/x.sql"), [1], "paths are bytes");
}

#[test]
fn an_app_without_rules_asks_nothing_of_a_request() {
    let access = site("").access;
    assert!(access.of_request(b"/index.php/admin", ConditionSet::default()).is_empty());
    assert!(access.of_result(b"/index.php/admin", ConditionSet::default()).is_empty());
}

#[test]
fn addresses_are_admitted_by_both_lists() {
    let allowed = "allow = [\"10.0.0.0/8\", \"2001:db8::/32\"]";
    let both = "allow = [\"10.0.0.0/8\", \"unix\"]\ndeny = [\"10.1.0.0/16\"]";
    let denied = "deny = [\"10.1.0.0/16\", \"unix\"]";
    for (rule, client, refuses) in [
        ("", Some("203.0.113.9"), false),
        ("", None, false),
        (allowed, Some("10.1.2.3"), false),
        (allowed, Some("::ffff:10.1.2.3"), false),
        (allowed, Some("11.0.0.1"), true),
        (allowed, Some("2001:db8::1"), false),
        (allowed, None, true),
        (both, Some("10.2.0.1"), false),
        (both, Some("10.1.0.1"), true),
        (both, None, false),
        (denied, Some("10.2.0.1"), false),
        (denied, Some("10.1.0.1"), true),
        (denied, None, true),
    ] {
        let access = access(&[rule]);
        let client = client.map(|text| text.parse().unwrap());
        assert_eq!(access.rules[0].admission.refuses(client), refuses, "{rule}: {client:?}");
    }
}

#[test]
fn a_client_counts_as_its_address_or_its_network_of_64_bits() {
    for (address, expected) in [
        ("192.0.2.77", "192.0.2.77"),
        ("::ffff:192.0.2.77", "192.0.2.77"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2::", "2001:db8:1:2::"),
        ("::1", "::"),
    ] {
        let parse = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(counted_as(parse(address)), parse(expected), "{address}");
    }
}

#[test]
fn fields_that_name_users_are_those_of_all_services() {
    let service = |field: &str| {
        format!("forward_auth = {{ upstream = \"http://a\", copy_headers = [\"{field}\"] }}")
    };
    let access = access(&[&service("Remote-User"), "body = \"1k\"", &service("Remote-Groups")]);
    assert_eq!(access.identity_headers, ["Remote-User", "Remote-Groups"]);
    let bodies: Vec<Option<u64>> = access.rules.iter().map(|rule| rule.body_bytes).collect();
    assert_eq!(bodies, [None, Some(1024), None]);
}

#[test]
fn errors_of_a_rule_are_at_their_key() {
    let text = |rule: &str| format!("{APP}[[app.site.access]]\n{rule}\n");
    for (rule, words) in [
        ("rate_limit = \"0/s\"", "admits no request"),
        ("allow = [\"10.0.0.0/33\"]", "`10.0.0.0/33` is not a network"),
        ("except = [\"\"]", "a path pattern such as"),
        ("body = \"many\"", "a size such as"),
    ] {
        assert_error(&text(rule), Kind::BadValue, 4, words);
    }
}
