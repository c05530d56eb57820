//! RFC 9111 4.1: matching by Vary.

mod support;

use outboard_page_cache::{CookieRules, Fields, NamePattern, Variant, VariesByAnything};
use support::lines;

fn rules() -> CookieRules {
    CookieRules { login: vec![], ignored: vec![NamePattern::new("_ga*")] }
}

fn matches(vary: &str, first: &str, second: &str, implicit: bool) -> bool {
    let (response, first, second) = (format!("Vary: {vary}"), lines(first), lines(second));
    let response = lines(&response);
    let variant = Variant::of(Fields(&first), Fields(&response), implicit, &rules()).unwrap();
    variant.matches(Fields(&second), implicit, &rules())
}

#[test]
fn section_4_1_the_named_fields_have_to_agree() {
    for (vary, first, second, expected) in [
        ("X", "X: 1", "X: 1", true),
        ("X", "X: 1", "X: 2", false),
        ("X", "X: 1", "", false),
        ("X", "", "X: 1", false),
        ("X", "", "X:", false),
        ("X", "", "", true),
        ("X", "X: 1\nY: 2", "X: 1\nY: 3", true),
        ("X, Y", "X: 1\nY: 2", "Y: 2\nX: 1", true),
        ("X, Y", "X: 1\nY: 2", "X: 1\nY: 3", false),
        ("x", "X: 1", "x: 1", true),
        ("X", "X: 1\nX: 2", "X: 1, 2", true),
        ("X", "X: 1\nX: 2", "X: 2\nX: 1", false),
        ("X", "X: a", "X: A", false),
        ("", "X: 1", "X: 2", true),
        (" , X ,", "X: 1", "X: 2", false),
        ("X, Y", "X: 1", "Y: 1", false),
    ] {
        assert_eq!(matches(vary, first, second, false), expected, "{vary}: {first} / {second}");
    }
}

#[test]
fn section_4_1_an_invalid_field_name_never_matches() {
    for vary in ["*", "Accept, *", "no-cache=\"a, b\"", "X Y", "\"X\"", "X;q=1"] {
        let response = format!("Vary: {vary}");
        let variant = Variant::of(Fields(&[]), Fields(&lines(&response)), false, &rules());
        assert_eq!(variant, Err(VariesByAnything), "{vary}");
    }
}

#[test]
fn section_4_1_values_are_normalised_by_their_syntax() {
    for (name, first, second, expected) in [
        ("Accept-Encoding", "gzip, br", "br,gzip", true),
        ("Accept-Encoding", "gzip;q=1.0, br", "BR, gzip;q=0.5", true),
        ("Accept-Encoding", "gzip, br;q=0", "gzip", true),
        ("Accept-Encoding", "gzip", "gzip, br", false),
        ("Accept-Encoding", "gzip;q=0.001", "gzip", true),
        ("Accept-Encoding", "gzip;q=0.000", "", true),
        ("Accept-Language", "de, en;q=0.5", "DE,en; q=0.5", true),
        ("Accept-Language", "de, en", "en, de", false),
        ("Accept-Language", "de;q=1.0,en;q=0.50", "de, en ; q=0.5", true),
        ("Accept-Language", "de, en;q=0.5", "de, en;q=0.51", false),
        ("Accept-Language", "de, en;q=0.5", "de, en;q=x", false),
        ("Accept-Language", "de, en;q=0", "de, en;q=0.000", true),
        ("Accept", "text/html;q=1", "text/html; q=1", true),
        ("Accept", "text/html", "text/plain", false),
        ("Cookie", "_ga=1; a=2; b=3", "b=3; a=2; _ga_X=9", true),
        ("Cookie", "_ga=1", "", true),
        ("Cookie", "a=1", "a=2", false),
    ] {
        let (first, second) = (format!("{name}: {first}"), format!("{name}: {second}"));
        assert_eq!(matches(name, &first, &second, false), expected, "{first} / {second}");
    }
}

#[test]
fn section_4_1_a_star_never_matches() {
    for vary in ["*", "X, *", "*, X", "\"a, b\"", "a b"] {
        let response = format!("Vary: {vary}");
        let response = lines(&response);
        let variant = Variant::of(Fields(&[]), Fields(&response), false, &rules());
        assert_eq!(variant, Err(VariesByAnything));
    }
}

#[test]
fn implicit_pages_vary_by_what_applications_read() {
    const DESKTOP: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Firefox/130";
    const PHONE: &str = "User-Agent: Mozilla/5.0 (Linux; Android 14) Mobile Safari/537.36";
    for (first, second, expected) in [
        (DESKTOP, "User-Agent: curl/8", true),
        (DESKTOP, PHONE, false),
        ("Accept-Language: de", "Accept-Language: en", false),
        ("Accept: text/html, */*;q=0.8", "Accept: */*;q=0.1, TEXT/html;q=0.9", true),
        ("Accept: text/html, */*", "Accept: text/html;q=0.9, text/plain", false),
        ("Accept: text/html", "Accept: text/html, application/json;q=0.1", false),
        ("Accept: text/html", "Accept: text/html, text/vnd.turbo-stream.html", false),
        (DESKTOP, "User-Agent: curl/8\nSec-CH-UA-Mobile: ?0", true),
        (DESKTOP, "User-Agent: curl/8\nSec-CH-UA-Mobile: ?1", false),
        (PHONE, "User-Agent: Android\nSec-CH-UA-Mobile: ?1", true),
        ("CF-IPCountry: DE", "CF-IPCountry: US", false),
        ("Save-Data: on", "", false),
        ("Accept: text/html", "Accept: application/json", false),
        ("Accept: text/html", "Accept: text/html, image/webp", false),
        ("", "X-Requested-With: XMLHttpRequest", false),
        ("Origin: https://a", "Origin: https://b", false),
        ("X-Other: 1", "X-Other: 2", true),
    ] {
        assert_eq!(matches("", first, second, true), expected, "{first} / {second}");
    }
}

#[test]
fn every_page_varies_by_url_overrides() {
    assert!(!matches("", "X-Forwarded-Host: evil.test", "", false));
    assert!(!matches("", "", "X-Forwarded-Host: evil.test", false));
    assert!(!matches("", "Forwarded: host=a", "Forwarded: host=b", false));
    assert!(matches("", "X-Forwarded-Proto: https", "x-forwarded-proto: https", false));
    assert!(matches("", "X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 2.2.2.2", false));
    assert!(matches("", "Host: a.test", "", false));
    for line in [
        "Front-End-Https: on",
        "X-Forwarded-Ssl: on",
        "CF-Visitor: {\"scheme\":\"http\"}",
        "X-Url-Scheme: http",
        "HX-Request: true",
        "Turbo-Frame: part",
        "X-Inertia: true",
        "X-PJAX: true",
        "X-Requested-With: XMLHttpRequest",
        "X_Forwarded_Prefix: //evil.test",
        "x-forwarded_prefix: //evil.test",
        "X_Original_URL: /admin",
        "Host: a.test:80",
        "Host: A.test",
    ] {
        assert!(!matches("", line, "", false), "{line}");
        assert!(!matches("", "", line, false), "{line}");
    }
}

#[test]
fn a_coded_page_is_for_clients_that_accept_the_coding() {
    let response = lines("Content-Encoding: gzip");
    let first = lines("Accept-Encoding: gzip");
    let variant = Variant::of(Fields(&first), Fields(&response), false, &rules()).unwrap();
    assert!(variant.matches(Fields(&lines("Accept-Encoding: GZIP;q=0.9")), false, &rules()));
    assert!(!variant.matches(Fields(&[]), false, &rules()));
}

#[test]
fn no_value_imitates_another_field_or_its_absence() {
    assert!(!matches("A, B", "A: 1\nB: 2", "A: 1,2", false));
    assert!(!matches("A, B", "A: x", "B: x", false));
}
