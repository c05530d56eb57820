//! Presets and rules of response headers.

use super::*;
use crate::Kind;
use crate::checked::testing::{APP, assert_error, site};

fn rules_of(text: &str) -> Vec<HeaderRule> {
    site(text).headers
}

fn names(headers: &[(String, String)]) -> Vec<&str> {
    headers.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn a_preset_is_a_first_rule_of_defaults() {
    assert!(rules_of("").is_empty());
    for (level, expected) in [("basic", &BASIC[..]), ("strict", &STRICT)] {
        let text = format!(
            "security_headers = \"{level}\"\n[[app.site.headers]]\nremove = [\"X-Frame-Options\"]\n"
        );
        let rules = rules_of(&text);
        let preset: Vec<(&str, &str)> =
            rules[0].default.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(preset, expected);
        assert!(rules[0].path.is_none() && rules[0].status.is_none());
        assert!(rules[0].set.is_empty() && rules[0].add.is_empty());
        assert_eq!(rules[1].remove, ["X-Frame-Options"], "rules come after it");
    }
}

#[test]
fn what_lets_caches_store_a_response_is_not_for_errors() {
    let rules = rules_of(
        "[[app.site.headers]]\npath = \"*.css\"\nremove = [\"Pragma\"]\n\
         set = { Cache-Control = \"max-age=31536000, immutable\", X-A = \"1\" }\n\
         add = { expires = \"Thu, 01 Jan 2037 00:00:00 GMT\" }\ndefault = { X-B = \"2\" }\n",
    );
    let [always, storing] = &rules[..] else { panic!("{rules:?}") };
    assert_eq!((names(&always.set), names(&always.default)), (vec!["X-A"], vec!["X-B"]));
    assert_eq!(
        (always.add.len(), &always.remove[..], &always.status),
        (0, &["Pragma".to_owned()][..], &None)
    );
    assert_eq!(
        (names(&storing.set), names(&storing.add)),
        (vec!["Cache-Control"], vec!["expires"])
    );
    assert!(storing.remove.is_empty() && storing.default.is_empty());
    let status = storing.status.as_ref().unwrap();
    for (code, expected) in [(200, true), (206, true), (304, true), (199, false), (404, false)] {
        assert_eq!(status.contains(code), expected, "{code}");
    }
    let path = |rule: &HeaderRule| rule.path.as_ref().unwrap().as_str().to_owned();
    assert_eq!((path(always), path(storing)), ("*.css".to_owned(), "*.css".to_owned()));
}

#[test]
fn a_rule_with_statuses_is_one_rule() {
    let rules = rules_of(
        "[[app.site.headers]]\nstatus = [\"404\", \"3xx\"]\nset.Cache-Control = \"max-age=60\"\n",
    );
    assert_eq!(rules.len(), 1);
    let status = rules[0].status.as_ref().unwrap();
    assert!(status.contains(404) && status.contains(302) && !status.contains(200));
}

#[test]
fn a_rule_without_a_header_is_left_out() {
    assert!(rules_of("[[app.site.headers]]\npath = \"/a\"\n").is_empty());
    let rules = rules_of("[[app.site.headers]]\nset.Expires = \"0\"\n");
    assert_eq!(rules.len(), 1, "only the one for statuses that are no errors");
    assert!(rules[0].status.is_some());
}

#[test]
fn only_a_header_that_permits_it_lets_a_response_be_stored() {
    for (name, value, expected) in [
        ("Cache-Control", "max-age=60", true),
        ("cache-control", "public, MAX-AGE=60", true),
        ("CACHE-CONTROL", "No-Store", false),
        ("Cache-Control", "private, no-cache", false),
        ("Cache-Control", "max-age=0, must-revalidate", false),
        ("Expires", "0", true),
        ("Vary", "max-age=60", false),
        ("X-Cache-Control", "max-age=60", false),
    ] {
        assert_eq!(lets_store(name, value), expected, "{name}: {value}");
    }
}

#[test]
fn headers_that_would_break_a_message_are_errors() {
    let text = |rule: &str| format!("{APP}[[app.site.headers]]\n{rule}\n");
    for (rule, words) in [
        ("set = { Content-Length = \"1\" }", "`Content-Length` is controlled by the server"),
        ("add = { \"a b\" = \"1\" }", "`a b` is not a header name"),
        ("default = { X-A = \"a\\r\\nSet-Cookie: b\" }", "line breaks"),
        ("set = { X-A = \" a\" }", "white space"),
        ("remove = [\"Transfer-Encoding\"]", "is controlled by the server"),
        ("status = [\"99\"]", "`99` is not the status of a response"),
    ] {
        assert_error(&text(rule), Kind::BadValue, 4, words);
    }
}
