//! `$_SERVER` and the other ways to learn about the request.

use crate::pair;
use outboard_e2e::{Pair, Protocol, Request, Response, Site};
use std::collections::BTreeMap;

/// Entries of `$_SERVER` that are not compared, and why.
const DIFFERENCES: &[(&str, &str)] = &[
    ("SERVER_SOFTWARE", "each names itself"),
    ("REMOTE_PORT", "two connections have two ports"),
    ("REQUEST_TIME", "the clock; request_time.php looks at it"),
    ("REQUEST_TIME_FLOAT", "likewise"),
    ("USER", "php-fpm exports the pool's user; it is not part of CGI"),
    ("HOME", "likewise"),
    ("SERVER_NAME", "nginx says its configured server_name, Outboard the host that was asked for"),
    ("FCGI_ROLE", "the FastCGI protocol's own"),
    (
        "PATH",
        "php-fpm's clear_env takes it away; Outboard keeps one, so that scripts find programs",
    ),
    ("REQUEST_ID", "Outboard's own: the name of the request in its logs"),
    ("SSL_PROTOCOL", "nginx sends it where it is configured, Outboard with TLS, which HTTP/3 has"),
    ("SSL_CIPHER", "likewise"),
    ("SSL_SESSION_RESUMED", "likewise"),
    ("PATH_TRANSLATED", "RFC 3875, section 4.1.6; Debian's nginx snippet leaves it out"),
];

fn variables(response: &Response, site: &dyn Site) -> BTreeMap<String, String> {
    let ports = site.ports().into_iter().map(|port| port.to_string());
    let text = ports.fold(response.text(), |text, port| text.replace(&port, "PORT"));
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Sends the request to both and compares what `server.php` lists; returns the reference's list.
#[track_caller]
fn same_variables(request: &Request) -> BTreeMap<String, String> {
    let pair = pair();
    let mut visit = pair.visit();
    let reference = visit.reference.send(request).expect(200);
    let subject = visit.subject.send(request).expect(200);
    let mut expected = variables(&reference, &*pair.reference);
    let mut actual = variables(&subject, &*pair.subject);
    let all = expected.clone();
    for (name, _) in DIFFERENCES {
        expected.remove(*name);
        actual.remove(*name);
    }
    let names = expected.keys().chain(actual.keys());
    let differing: BTreeMap<_, _> = names
        .filter(|name| expected.get(*name) != actual.get(*name))
        .map(|name| (name, (expected.get(name), actual.get(name))))
        .collect();
    assert!(differing.is_empty(), "(php-fpm, outboard) differ in {differing:#?}");
    all
}

#[test]
fn a_plain_request_has_the_variables_of_cgi() {
    let seen = same_variables(&Request::get("/server.php?a=1&b=2"));
    assert_eq!(seen["QUERY_STRING"], "\"a=1&b=2\"");
    assert_eq!(seen["REQUEST_URI"], "\"/server.php?a=1&b=2\"");
    assert_eq!(seen["SCRIPT_NAME"], "\"/server.php\"");
    assert_eq!(seen["SERVER_PROTOCOL"], format!("\"HTTP/{}\"", Protocol::of_run().version()));
    assert_eq!(seen["REMOTE_ADDR"], "\"127.0.0.1\"");
}

#[test]
fn a_query_that_is_missing_empty_or_only_a_mark_reads_alike() {
    same_variables(&Request::get("/server.php"));
    same_variables(&Request::get("/server.php?"));
    same_variables(&Request::get("/server.php??"));
    same_variables(&Request::get("/server.php?a=%00%zz&b=%E2%82%AC+x"));
}

#[test]
fn path_info_is_what_follows_the_script() {
    let seen = same_variables(&Request::get("/server.php/a/b%20c?d=e"));
    assert_eq!(seen["PATH_INFO"], "\"/a/b c\"");
    same_variables(&Request::get("/server.php/"));
    same_variables(&Request::get("/server.php//double//slashes"));
    same_variables(&Request::get("/server.php/a.php/b"));
    same_variables(&Request::get("/server.php/%C3%BC/%3F%23"));
}

#[test]
fn headers_become_variables() {
    let request = Request::get("/server.php")
        .header("X-Custom-Header", "value")
        .header("Accept", "text/html")
        .header("Accept-Language", "de")
        .header("User-Agent", "outboard-e2e")
        .header("Referer", "http://elsewhere.example/")
        .header("X-Forwarded-For", "192.0.2.1")
        .header("X-Forwarded-Proto", "https")
        .header("X-Empty", "")
        .header("Cookie", "a=b; c=d");
    let seen = same_variables(&request);
    assert_eq!(seen["HTTP_X_CUSTOM_HEADER"], "\"value\"");
    assert_eq!(seen["REMOTE_ADDR"], "\"127.0.0.1\"");
}

/// RFC 3875, section 4.1.18, wants one list, and RFC 9113, section 8.2.3, one cookie string. nginx
/// sends both fields to php-fpm, which keeps the last alone; so there is nothing to compare with.
#[test]
fn a_header_that_comes_twice_is_one_list() {
    let request = Request::get("/server.php")
        .header("X-Twice", "one")
        .header("X-Twice", "two")
        .header("Cookie", "a=1")
        .header("Cookie", "b=2");
    let mut visit = pair().visit();
    visit.reference.send(&request).expect(200).holding("HTTP_X_TWICE=\"two\"");
    if !Pair::is_self_comparison() {
        let response = visit.subject.send(&request).expect(200);
        response.holding("HTTP_X_TWICE=\"one, two\"").holding("HTTP_COOKIE=\"a=1; b=2\"");
    }
}

#[test]
fn a_header_with_an_underscore_cannot_pose_as_one_with_a_dash() {
    let request = Request::get("/server.php").header("X_Forged", "1");
    let seen = same_variables(&request);
    assert!(!seen.contains_key("HTTP_X_FORGED"));
}

#[test]
fn the_proxy_header_does_not_become_an_environment_variable() {
    let request = Request::get("/environment.php").header("Proxy", "http://evil.example");
    pair().same(&request).expect(200);
    same_variables(&Request::get("/server.php").header("Proxy", "http://evil.example"));
}

#[test]
fn a_body_has_its_length_and_type() {
    let seen = same_variables(&Request::post("/server.php", "text/plain; charset=utf-8", "12345"));
    assert_eq!(seen["CONTENT_LENGTH"], "\"5\"");
    assert_eq!(seen["CONTENT_TYPE"], "\"text/plain; charset=utf-8\"");
    same_variables(&Request::new("POST", "/server.php").header("Content-Length", "0"));
}

#[test]
fn every_method_reaches_the_script() {
    for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "PURGE"] {
        let request = Request::new(method, "/server.php").header("Content-Length", "0");
        let seen = same_variables(&request);
        assert_eq!(seen["REQUEST_METHOD"], format!("\"{method}\""));
    }
}

#[test]
fn the_host_is_what_the_client_asked_for() {
    let seen = same_variables(&Request::get("/server.php").header("Host", "shop.example:8443"));
    assert_eq!(seen["HTTP_HOST"], "\"shop.example:8443\"");
    same_variables(&Request::get("/server.php").header("Host", "[::1]:8080"));
}

#[test]
fn http_1_0_is_visible_to_the_script() {
    let pair = pair();
    for site in [&pair.reference, &pair.subject] {
        let mut connection = outboard_e2e::Connection::open(site.address());
        connection.send(b"GET /server.php HTTP/1.0\r\nHost: old.example\r\n\r\n").unwrap();
        let response = connection.response().unwrap().expect(200);
        assert!(response.text().contains("SERVER_PROTOCOL=\"HTTP/1.0\""), "{}", site.name());
        assert!(connection.is_closed(), "{}", site.name());
    }
}

#[test]
fn basic_authentication_arrives_decoded() {
    // "user:pass:word" in base64.
    let request = Request::get("/auth.php").header("Authorization", "Basic dXNlcjpwYXNzOndvcmQ=");
    pair().same(&request).expect(200).holding("pass:word");
    for broken in ["Basic", "Basic ", "Basic !!!", "Basic dXNlcg==", "basic dXNlcjpw"] {
        pair().same(&Request::get("/auth.php").header("Authorization", broken)).expect(200);
    }
}

#[test]
fn digest_and_bearer_authentication_arrive_as_sent() {
    let digest = "Digest username=\"u\", realm=\"r\", nonce=\"n\", uri=\"/\", response=\"x\"";
    let request = Request::get("/auth.php").header("Authorization", digest);
    pair().same(&request).expect(200).holding("username");
    let request = Request::get("/auth.php").header("Authorization", "Bearer abc.def");
    pair().same(&request).expect(200).holding("Bearer abc.def");
}

#[test]
fn getallheaders_lists_what_was_sent() {
    let request = Request::post("/all_headers.php", "text/x-test", "body")
        .header("X-Mixed-CASE", "kept")
        .header("Accept", "*/*")
        .header("Cookie", "a=b");
    pair().same(&request).expect(200).holding("kept");
}

#[test]
fn the_request_time_is_now() {
    let response = pair().same(&Request::get("/request_time.php")).expect(200);
    assert!(!response.text().contains("false"), "{}", response.text());
}

#[test]
fn argv_follows_register_argc_argv() {
    pair().same(&Request::get("/arguments.php?one+two+three=3")).expect(200).holding("null");
}

#[test]
fn filter_input_sees_the_request() {
    let request = Request::form("/filter_input.php?number=42", &[("mail", "a@example.org")])
        .header("Cookie", "c=crumb");
    pair().same(&request).expect(200).holding("[42,\"a@example.org\",\"crumb\"");
}

#[test]
fn the_global_scope_holds_the_usual_names() {
    pair().same(&Request::get("/globals.php")).expect(200);
}
