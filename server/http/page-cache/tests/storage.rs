//! RFC 9111 3: which responses may be stored, and for which requests.

mod support;

use outboard_page_cache::{Audience, CookieRules, Fields, NamePattern, Policy, Reason, Response};
use outboard_page_cache::{Control, may_be_stored, storable, stored_fields};
use support::{AT_ONCE, facts, lines, stored, stored_by};

#[test]
fn section_3_what_forbids_storing() {
    for (request, response, reason) in [
        ("", "Cache-Control: no-store, max-age=60", Reason::NoStore),
        ("", "Cache-Control: max-age=60\nCache-Control: NO-STORE", Reason::NoStore),
        ("Cache-Control: no-store", "Cache-Control: max-age=60", Reason::RequestNoStore),
        ("", "Cache-Control: private, max-age=60", Reason::Private),
        ("", "Cache-Control: private, public, s-maxage=60", Reason::Private),
        ("Authorization: Basic x", "Cache-Control: max-age=60", Reason::Authorization),
        (
            "Authorization: Basic x",
            "Cache-Control: max-age=60, must-revalidate",
            Reason::Authorization,
        ),
        ("", "Cache-Control: max-age=60\nVary: *", Reason::VaryStar),
        ("", "Cache-Control: max-age=60\nVary: Accept, *", Reason::VaryStar),
        ("", "Cache-Control: max-age=60\nSet-Cookie: a=b", Reason::SetCookie),
        ("", "Cache-Control: public, s-maxage=60\nSet-Cookie: a=b", Reason::SetCookie),
        ("", "", Reason::NoLifetime),
        ("", "Cache-Control: max-age=0", Reason::NoLifetime),
        ("", "Expires: 0", Reason::NoLifetime),
        ("Cookie: x=1", "ETag: \"a\"", Reason::UnknownCookie),
        ("Cookie: x=1", "Cache-Control: no-cache, max-age=9\nETag: \"a\"", Reason::UnknownCookie),
    ] {
        assert_eq!(stored(request, response).err(), Some(reason), "{request} / {response}");
    }
}

#[test]
fn section_3_what_allows_storing() {
    for (request, response, audience) in [
        ("", "Cache-Control: max-age=60", Audience::Everybody),
        ("", "Cache-Control: s-maxage=60", Audience::EvenAuthorized),
        ("", "Cache-Control: public, max-age=60", Audience::EvenAuthorized),
        ("", "Expires: Fri, 31 Dec 9999 23:59:59 GMT", Audience::Everybody),
        ("", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", Audience::Anonymous),
        ("", "ETag: \"a\"", Audience::Anonymous),
        ("", "Cache-Control: no-cache\nETag: \"a\"", Audience::Anonymous),
        ("", "Cache-Control: max-age=0, stale-while-revalidate=9", Audience::Anonymous),
        ("Cookie: x=1", "Cache-Control: max-age=60", Audience::Everybody),
    ] {
        let storable = stored(request, response).map(|storable| storable.audience);
        assert_eq!(storable, Ok(audience), "{request} / {response}");
    }
}

#[test]
fn section_3_5_credentials_need_a_shareable_response() {
    for directive in ["public, max-age=60", "s-maxage=60", "public, s-maxage=1"] {
        let response = format!("Cache-Control: {directive}");
        let storable = stored("Authorization: Basic x", &response).unwrap();
        let (without, with) = (lines(""), lines("Authorization: Basic y"));
        assert_eq!(storable.audience.admits(&facts(&with)), Ok(()));
        assert_eq!(storable.audience.admits(&facts(&without)), Ok(()));
    }
    let storable = stored("", "Cache-Control: max-age=60").unwrap();
    let with = lines("Authorization: Basic y");
    assert_eq!(storable.audience.admits(&facts(&with)), Err(Reason::Authorization));
}

#[test]
fn a_page_without_lifetime_is_for_requests_without_cookies() {
    let policy = Policy { default_ttl_s: 1, ..Policy::STANDARD };
    let storable = stored_by(&policy, "", 200, "").unwrap();
    let (none, some) = (lines(""), lines("Cookie: x=1"));
    assert_eq!(storable.audience.admits(&facts(&none)), Ok(()));
    assert_eq!(storable.audience.admits(&facts(&some)), Err(Reason::UnknownCookie));
    let refused = stored_by(&policy, "Cookie: x=1", 200, "").err();
    assert_eq!(refused, Some(Reason::UnknownCookie));
}

#[test]
fn a_page_without_lifetime_is_not_for_unknown_fields() {
    let policy = Policy { default_ttl_s: 1, ..Policy::STANDARD };
    let storable = stored_by(&policy, "", 200, "").unwrap();
    for line in ["X-Api-Key: a", "Proxy-Authorization: Basic x", "X_Real_IP: 192.0.2.1"] {
        let fields = lines(line);
        assert_eq!(storable.audience.admits(&facts(&fields)), Err(Reason::UnknownField), "{line}");
        let implicit = stored_by(&policy, line, 200, "").err();
        assert_eq!(implicit, Some(Reason::UnknownField), "{line}");
        // A page that states its lifetime also states what it varies by.
        assert!(stored_by(&policy, line, 200, "Cache-Control: max-age=60").is_ok(), "{line}");
    }
}

#[test]
fn grace_does_not_make_an_expired_page_storable() {
    let policy = Policy {
        default_ttl_s: 60,
        stale_while_revalidate_s: 60,
        stale_if_error_s: 600,
        ..Policy::STANDARD
    };
    for response in [
        "Expires: 0",
        "Expires: -1",
        "Expires: Thu, 19 Nov 1981 08:52:00 GMT",
        "Cache-Control: max-age=0",
        "Cache-Control: s-maxage=0",
        "Cache-Control: public, max-age=0",
        "Cache-Control: max-age=0, must-revalidate",
        "Cache-Control: max-age=10, max-age=20",
        "Cache-Control: max-age=60\nAge: 60",
        "Cache-Control: no-cache",
        "CDN-Cache-Control: max-age=0",
        "Pragma: no-cache",
        "Surrogate-Control: no-store",
    ] {
        let storable = stored_by(&policy, "", 200, response).map(|_| ());
        assert_eq!(storable, Err(Reason::NoLifetime), "{response}");
    }
    assert!(stored_by(&policy, "", 200, "Cache-Control: max-age=0, stale-if-error=5").is_ok());
}

#[test]
fn an_ignored_cookie_leaves_the_visitor_anonymous() {
    let policy = Policy { default_ttl_s: 1, ..Policy::STANDARD };
    let ignored = [NamePattern::new("_ga*")];
    let rules = CookieRules { login: vec![], ignored: ignored.into() };
    let request = lines("Cookie: _ga=1; _ga_X=2");
    let mut facts = facts(&request);
    facts.visitor = rules.visitor(Fields(&request));
    let response = Response { status: 200, fields: Fields(&[]) };
    assert!(storable(&policy, &rules, &facts, Fields(&request), response, AT_ONCE).is_ok());
}

#[test]
fn section_3_statuses() {
    let keep = "Cache-Control: max-age=60";
    for (status, response, storable) in [
        (200, keep, Ok(())),
        (203, keep, Ok(())),
        (204, keep, Ok(())),
        (301, keep, Ok(())),
        (302, keep, Ok(())),
        (404, keep, Ok(())),
        (410, keep, Ok(())),
        (500, keep, Ok(())),
        (299, keep, Ok(())),
        (206, keep, Err(Reason::Status)),
        (304, keep, Err(Reason::Status)),
        (302, "ETag: \"a\"", Err(Reason::Status)),
        (500, "ETag: \"a\"", Err(Reason::Status)),
        (301, "ETag: \"a\"", Ok(())),
        // Section 5.2.2.3.
        (299, "Cache-Control: max-age=60, must-understand", Err(Reason::Status)),
        (299, "Cache-Control: max-age=60, must-understand, no-store", Err(Reason::Status)),
        (200, "Cache-Control: max-age=60, must-understand, no-store", Ok(())),
        (200, "Cache-Control: max-age=60, must-understand", Ok(())),
    ] {
        let outcome = stored_by(&Policy::STANDARD, "", status, response).map(|_| ());
        assert_eq!(outcome, storable, "{status} {response}");
    }
}

#[test]
fn sections_5_2_2_4_and_7_named_fields_are_not_stored() {
    for directive in
        ["no-cache=\"set-cookie\"", "private=\"Set-Cookie, x-user\"", "private=set-cookie"]
    {
        let text = format!("Cache-Control: max-age=60, {directive}\nSet-Cookie: a=b\nX-Page: 1");
        assert!(stored("", &text).is_ok(), "{directive}");
        let response = lines(&text);
        let fields = Fields(&response);
        let storable = stored_fields(fields, &Control::read(fields));
        let names: Vec<&[u8]> = storable.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [&b"Cache-Control"[..], b"X-Page"], "{directive}");
    }
}

#[test]
fn an_unreadable_list_of_names_means_the_whole_response() {
    for directive in
        ["private=\"\"", "private=\"a", "private=\"a b\"", "private=\"a\\\"b\"", "private="]
    {
        let response = format!("Cache-Control: max-age=60, {directive}");
        assert_eq!(stored("", &response).err(), Some(Reason::Private), "{directive}");
    }
}

#[test]
fn section_3_1_connection_fields_are_not_stored() {
    let response = lines(
        "Connection: close, X-Hop\nX-Hop: 1\nKeep-Alive: 5\nTE: x\nTransfer-Encoding: chunked\n\
         Upgrade: h2c\nProxy-Authenticate: x\nProxy-Authentication-Info: x\n\
         Proxy-Authorization: x\nAge: 3\nX-Cache: HIT\nCache-Status: x\nContent-Length: 3\n\
         X-Unknown: storable\nETag: \"a\"",
    );
    let fields = Fields(&response);
    let storable = stored_fields(fields, &Control::read(fields));
    let names: Vec<&[u8]> = storable.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, [&b"X-Unknown"[..], b"ETag"]);
}

#[test]
fn a_head_tells_whether_the_response_may_be_stored() {
    for (status, response, expected) in [
        (200, "", true),
        (200, "Cache-Control: max-age=60", true),
        (200, "Cache-Control: no-store", false),
        (200, "Cache-Control: private", false),
        (200, "Set-Cookie: a=b", false),
        (200, "Content-Type: Text/Event-Stream", false),
        (302, "", false),
        (302, "Cache-Control: max-age=60", true),
        (206, "Cache-Control: max-age=60", false),
    ] {
        let response_lines = lines(response);
        let head = Response { status, fields: Fields(&response_lines) };
        assert_eq!(may_be_stored(head), expected, "{status} {response}");
    }
}

#[test]
fn no_transform_is_stored() {
    assert!(stored("", "Cache-Control: max-age=60, no-transform").unwrap().no_transform);
    assert!(!stored("", "Cache-Control: max-age=60").unwrap().no_transform);
}
