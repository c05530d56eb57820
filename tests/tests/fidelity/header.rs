//! `header()` in all its forms, statuses and cookies.

use crate::pair;
use outboard_e2e::{Framing, Request};

#[track_caller]
fn same(target: &str) -> outboard_e2e::Response {
    pair().same(&Request::get(target))
}

#[test]
fn header_replaces_adds_and_removes() {
    let response = same("/header_forms.php").expect(200);
    assert_eq!(response.header("x-one"), Some("second"));
    assert_eq!(response.all("x-two").collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(response.header("x-gone"), None);
}

#[test]
fn a_status_line_sets_the_status() {
    same("/header_status_line.php").expect(418).holding("short and stout");
}

#[test]
fn a_status_field_sets_the_status() {
    same("/header_status_field.php").expect(404);
}

#[test]
fn the_third_argument_sets_the_status() {
    same("/header_third_argument.php").expect(503);
}

#[test]
fn location_means_302_unless_another_status_was_set() {
    let response = same("/header_location.php").expect(302);
    assert_eq!(response.header("location"), Some("/hello.php?from=location"));
    same("/header_location_201.php").expect(201);
    for status in [301, 303, 307, 308] {
        same(&format!("/header_location_status.php?status={status}")).expect(status);
    }
}

#[test]
fn http_response_code_returns_the_old_status_and_sets_the_new() {
    for code in [200, 202, 203, 400, 401, 403, 404, 405, 410, 422, 429, 451, 500, 501, 503, 599] {
        same(&format!("/status.php?code={code}")).expect(code);
    }
}

#[test]
fn statuses_without_a_body_have_none() {
    assert_eq!(same("/no_content.php").expect(204).framing, Framing::None);
}

#[test]
fn not_modified_from_php_has_its_fields_and_no_body() {
    same("/not_modified.php").expect(200).holding("fresh");
    let request = Request::get("/not_modified.php").header("If-None-Match", "\"version-1\"");
    let response = pair().same(&request).expect(304);
    assert_eq!(response.header("cache-control"), Some("max-age=60"));
}

#[test]
fn a_newline_cannot_smuggle_a_header() {
    let response = same("/header_newline.php").expect(200);
    assert_eq!(response.header("x-evil"), None);
}

/// A line costs no page that php-fpm and nginx send.
#[test]
fn an_invalid_line_costs_no_page() {
    let target = |line: &[u8]| {
        let digits: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("/header_line.php?line={digits}")
    };
    for (line, is_sent) in [
        (&b"X-Flag"[..], true),
        (b"Access-Control-Allow-Origin", true),
        (b"X-Utf8: caf\xc3\xa9", true),
        (b"Content-Type", false),
    ] {
        let response = same(&target(line)).expect(200).saying("the page");
        let names = ["x-flag", "access-control-allow-origin", "x-utf8"];
        assert_eq!(names.iter().any(|name| response.header(name).is_some()), is_sent);
    }
    // nginx sends the first four as they are, and 502 in the place of the others.
    for line in [
        &b"X-Ctl: a\x01b"[..],
        b"X-Del: a\x7fb",
        b"X-Paren(1): v",
        b"X-\xc3\xa9: v",
        b"X Foo: v",
        b":v",
        b"HTTP 400 Bad Request",
    ] {
        let response = pair().visit().subject.send(&Request::get(&target(line)));
        response.expect(200).saying("the page");
    }
}

#[test]
fn www_authenticate_means_401() {
    same("/header_www_authenticate.php").expect(401);
}

#[test]
fn a_content_length_by_the_script_is_kept() {
    let response = same("/header_content_length.php").expect(200).saying("five!");
    assert_eq!(response.framing, Framing::Length);
}

#[test]
fn the_content_type_follows_the_ini_and_the_script() {
    assert_eq!(same("/hello.php").header("content-type"), Some("text/html; charset=UTF-8"));
    same("/header_charset.php").expect(200);
    same("/header_no_content_type.php").expect(200);
}

#[test]
fn header_callbacks_run_before_headers_leave() {
    assert!(same("/header_callback.php").expect(200).header("x-late").is_some());
}

#[test]
fn x_powered_by_is_phps_and_can_be_removed() {
    assert!(same("/hello.php").header("x-powered-by").is_some());
    assert!(same("/header_powered_by.php").expect(200).header("x-powered-by").is_none());
}

#[test]
fn forty_headers_arrive() {
    assert_eq!(same("/header_many.php").expect(200).header("x-many-39").map(str::len), Some(60));
}

#[test]
fn repeated_fields_stay_apart() {
    assert_eq!(same("/header_link.php").expect(200).all("link").count(), 2);
}

#[test]
fn every_cookie_is_a_field_of_its_own() {
    assert_eq!(same("/cookies.php").expect(200).all("set-cookie").count(), 5);
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    let response = pair().same(&Request::new("HEAD", "/header_forms.php")).expect(200);
    assert_eq!(response.framing, Framing::None);
    assert_eq!(response.header("x-one"), Some("second"));
    pair().same(&Request::new("HEAD", "/header_status_line.php")).expect(418);
    pair().same(&Request::new("HEAD", "/big.php")).expect(200);
}

/// What both say of a file that `X-Accel-Redirect` names. nginx forgets the script's other fields,
/// Outboard keeps them, so they are not part of it.
#[track_caller]
fn same_file(request: &Request) -> outboard_e2e::Response {
    let mut visit = pair().visit();
    let expected = visit.reference.send(request);
    let actual = visit.subject.send(request);
    assert_eq!(expected.status, actual.status, "{}", actual.text());
    assert_eq!(expected.text(), actual.text());
    for name in ["content-type", "content-disposition", "content-range", "last-modified"] {
        assert_eq!(expected.header(name), actual.header(name), "{name}");
    }
    assert_eq!(actual.header("x-accel-redirect"), None);
    expected
}

#[test]
fn x_accel_redirect_sends_the_protected_file() {
    let request = Request::get("/accel.php?file=report.txt");
    let response = same_file(&request).expect(200).saying("the protected report\n");
    assert_eq!(response.header("content-type"), Some("text/x-protected;charset=UTF-8"));
    let mut visit = pair().visit();
    for client in [&mut visit.reference, &mut visit.subject] {
        client.send(&Request::get("/accel.php?file=missing.txt")).expect(404);
        client.send(&Request::get("/protected/report.txt")).expect(404);
        // Not the source of a script, which lies beside the protected folder.
        let outside = client.send(&Request::get("/accel.php?file=../www/hello.php"));
        assert!(!outside.text().contains("<?php"), "{}", outside.text());
    }
}

#[test]
fn x_accel_redirect_ranges_are_honoured() {
    let request = Request::get("/accel.php?file=report.txt").header("Range", "bytes=4-12");
    same_file(&request).expect(206).saying("protected");
}

#[test]
fn x_accel_redirect_may_name_another_page() {
    same("/accel_internal.php").expect(200).saying("Hello, world\n");
}
