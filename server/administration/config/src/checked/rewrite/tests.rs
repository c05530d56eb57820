use crate::checked::testing::{APP, assert_error, site};
use crate::*;

/// Applies the only rule of an app to a path.
fn rewrite(keys: &str, path: &str) -> Option<Rewritten> {
    let app = site(&format!("[[app.site.rewrite]]\n{keys}\n"));
    assert!(app.rewrites[0].last && app.rewrites[0].when == RewriteWhen::Always);
    app.rewrites[0].apply(path.as_bytes())
}

fn to(path: &str, query: Option<&str>) -> Option<Rewritten> {
    Some(Rewritten::To { path: path.into(), query: query.map(Into::into) })
}

#[test]
fn a_rewrite_fills_in_what_its_groups_matched() {
    let rule = "match = '^/p/(?<id>\\d+)(x)?'\nto = '/i.php?id=${id}&x=$2&c=$$1'";
    assert_eq!(rewrite(rule, "/p/42"), to("/i.php", Some("id=42&x=&c=$1")));
    assert_eq!(rewrite(rule, "/q/42"), None);
    assert_eq!(rewrite("match = '^/(.*)'\nto = '/a/$1'", "/ü b"), to("/a/ü b", None));
}

#[test]
fn a_query_is_preserved_unless_the_rule_has_one() {
    assert_eq!(rewrite("match = '^/a'\nto = '/b'", "/a"), to("/b", None));
    assert_eq!(rewrite("match = '^/a'\nto = '/b?'", "/a"), to("/b", Some("")));
}

#[test]
fn a_rewrite_can_redirect_or_respond() {
    let redirect = Rewritten::Redirect {
        status: 308,
        location: b"https://b/x/y".to_vec(),
        query: Some(b"z=1".to_vec()),
    };
    let rule = "match = '^/a/(.*)'\nstatus = 308\nto = 'https://b/$1?z=1'";
    assert_eq!(rewrite(rule, "/a/x/y"), Some(redirect));
    assert_eq!(rewrite("match = '^/a'\nstatus = 410", "/a"), Some(Rewritten::Status(410, None)));
}

#[test]
fn a_path_cannot_break_a_header_or_add_a_parameter() {
    let rule = "match = '(?s)^/(.*)'\nstatus = 302\nto = '/é $1?q=$1'";
    let redirect = Rewritten::Redirect {
        status: 302,
        location: b"/%C3%A9%20a%0D%0AX:%3F%23&b=%C3%BC".to_vec(),
        query: Some(b"q=a%0D%0AX:%3F%23%26b%3D%C3%BC".to_vec()),
    };
    assert_eq!(rewrite(rule, "/a\r\nX:?#&b=ü"), Some(redirect));
}

#[test]
fn an_invalid_rewrite_is_rejected() {
    for (keys, kind, line, words) in [
        ("last = false", Kind::Conflict, 3, "neither"),
        ("status = 301", Kind::Conflict, 5, "needs `to`"),
        ("status = 404\nto = '/b'", Kind::Conflict, 5, "remove `to`"),
        ("status = 304", Kind::Conflict, 5, "304 is not a valid status"),
        ("to = 'b'", Kind::BadValue, 5, "slash"),
        ("to = '/$2'", Kind::BadValue, 5, "no group `2`"),
        ("to = '/${x}'", Kind::BadValue, 5, "no group `x`"),
        ("to = '/${x'", Kind::BadValue, 5, "not closed"),
        ("to = '/$'", Kind::BadValue, 5, "without a group"),
        ("to = \"/a\\r\\nb\"", Kind::BadValue, 5, "control"),
    ] {
        let text = format!("{APP}[[app.site.rewrite]]\nmatch = '^/(a)'\n{keys}\n");
        assert_error(&text, kind, line, words);
    }
}
