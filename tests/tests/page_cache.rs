//! The page cache in a running server: what is kept, for whom, and that nothing else is.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request, Response, eventually};

const ON: &str = "[app.site.page_cache]\nmode = \"on\"\npurge_from = [\"127.0.0.1\"]\n";

fn site(tables: &str) -> Configured {
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    Configured::start(docroot, &Configured::text(tables))
}

/// The target of a page that sends these headers.
fn page(headers: &[&str]) -> String {
    let encoded = |text: &str| -> String {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let query: Vec<String> =
        headers.iter().map(|header| format!("header[]={}", encoded(header))).collect();
    format!("/page.php?{}", query.join("&"))
}

fn ask(site: &Configured, target: &str, headers: &[(&str, &str)]) -> Response {
    let request = headers
        .iter()
        .fold(Request::get(target), |request, (name, value)| request.header(name, value));
    site.client().send(&request)
}

#[track_caller]
fn says(response: &Response, word: &str, run: u32) {
    assert_eq!(response.header("x-cache"), Some(word), "{:#?}", response.headers);
    assert_eq!(response.text(), format!("run {run} for visitor\n"));
}

#[track_caller]
fn detail(response: &Response) -> &str {
    let status = response.header("cache-status").expect("it says what the cache did");
    status.rsplit("detail=").next().unwrap_or_default()
}

#[test]
fn without_configuration_nothing_is_cached_or_reported() {
    let site = site("");
    for run in 1..3 {
        let response = ask(&site, &page(&["Cache-Control: max-age=60"]), &[]);
        assert_eq!(response.header("x-cache"), None);
        assert_eq!(response.text(), format!("run {run} for visitor\n"));
    }
}

#[test]
fn a_page_that_says_how_long_it_lives_is_made_once() {
    let text = "listen = \"127.0.0.1:0\"\n[log.access]\npath = \"off\"\n\
                [app.site]\nroot = \"www\"\npage_cache = \"auto\"\n";
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    let site = Configured::start(docroot, text);
    let target = page(&["Cache-Control: max-age=60"]);
    let first = ask(&site, &target, &[]);
    says(&first, "MISS", 1);
    assert_eq!(first.header("cache-status"), Some("Outboard; fwd=uri-miss; stored"));
    let second = ask(&site, &target, &[]);
    says(&second, "HIT", 1);
    let status = second.header("cache-status").unwrap();
    assert!(status.starts_with("Outboard; hit; ttl="), "{status}");
    assert!(second.header("age").is_some() && second.header("date").is_some());
    assert_eq!(second.header("content-length"), Some("18"));
    assert_eq!(second.header("cache-control"), Some("max-age=60"));
    let head = site.client().send(&Request::new("HEAD", &target));
    assert_eq!((head.status, head.header("x-cache")), (200, Some("HIT")));
    assert_eq!(head.header("content-length"), Some("18"));
}

#[test]
fn a_page_that_came_short_is_not_kept() {
    let site = site(ON);
    let target = page(&["Cache-Control: max-age=60", "Content-Length: 9999"]);
    for run in 1..3 {
        let response = ask(&site, &target, &[]);
        assert_eq!(detail(&response), "incomplete");
        says(&response, "BYPASS", run);
    }
}

#[test]
fn a_page_without_freshness_is_cached_for_anonymous_visitors() {
    let site = site(ON);
    says(&ask(&site, "/page.php", &[]), "MISS", 1);
    says(&ask(&site, "/page.php", &[]), "HIT", 1);
    says(&ask(&site, "/page.php", &[("Cookie", "_ga=1")]), "HIT", 1);
    let other = ask(&site, "/page.php", &[("Cookie", "who=Ann")]);
    assert_eq!(other.text(), "run 2 for Ann\n");
    assert_eq!((other.header("x-cache"), detail(&other)), (Some("BYPASS"), "unknown_cookie"));
    says(&ask(&site, "/page.php", &[]), "HIT", 1);
}

#[test]
fn personal_requests_bypass_the_cache_with_a_reason() {
    let site = site(&format!(
        "{ON}login_cookies = [\"member_*\"]\nbypass_paths = [\"/page.php/me\"]\nmax_body = \"4 KiB\"\n"
    ));
    let keep = page(&["Cache-Control: max-age=60"]);
    for (target, header, reason) in [
        (keep.clone(), ("Cookie", "PHPSESSID=x"), "login_cookie"),
        (keep.clone(), ("Cookie", "a=1; member_7=x"), "login_cookie"),
        (keep.clone(), ("Authorization", "Basic x"), "authorization"),
        (keep.clone(), ("If-Match", "\"a\""), "precondition"),
        (keep.clone(), ("Cache-Control", "no-store"), "request_no_store"),
        ("/page.php/me".into(), ("X", "1"), "admin_path"),
        (page(&["Set-Cookie: a=b", "Cache-Control: public, max-age=60"]), ("X", "1"), "set_cookie"),
        (page(&["Cache-Control: private, max-age=60"]), ("X", "1"), "private"),
        (page(&["Cache-Control: no-store"]), ("X", "1"), "no_store"),
        (page(&["Cache-Control: max-age=60", "Vary: *"]), ("X", "1"), "vary_star"),
        ("/page.php?status=500".into(), ("X", "1"), "status"),
        ("/page.php?session=1".into(), ("X", "1"), "session"),
        ("/page.php?more=5000".into(), ("X", "1"), "too_large"),
    ] {
        for _ in 0..2 {
            let response = ask(&site, &target, &[header]);
            assert_eq!(response.header("x-cache"), Some("BYPASS"), "{target} {header:?}");
            assert_eq!(detail(&response), reason, "{target} {header:?}");
        }
    }
}

#[test]
fn variants_are_kept_apart() {
    let site = site(ON);
    let target = page(&["Cache-Control: max-age=60", "Vary: X-Kind"]);
    says(&ask(&site, &target, &[("X-Kind", "a")]), "MISS", 1);
    says(&ask(&site, &target, &[("X-Kind", "b")]), "MISS", 2);
    says(&ask(&site, &target, &[("X-Kind", "a")]), "HIT", 1);
    says(&ask(&site, &target, &[("X-Kind", "b")]), "HIT", 2);
    says(&ask(&site, &target, &[]), "MISS", 3);
}

#[test]
fn a_host_of_the_clients_choice_is_never_in_the_page_of_another() {
    let site = site(ON);
    says(&ask(&site, "/page.php", &[("X-Forwarded-Host", "evil.test")]), "MISS", 1);
    says(&ask(&site, "/page.php", &[]), "MISS", 2);
    says(&ask(&site, "/page.php", &[("Host", "other.test")]), "MISS", 3);
}

#[test]
fn clients_that_have_the_page_hear_that_it_holds() {
    let site = site(ON);
    let target = page(&["Cache-Control: max-age=60", "ETag: \"a\""]);
    // Even the request that has it made may have it already.
    let first = ask(&site, &target, &[("If-None-Match", "\"a\"")]);
    assert_eq!((first.status, first.text().as_str()), (304, ""));
    let second = ask(&site, &target, &[("If-None-Match", "W/\"a\"")]);
    assert_eq!((second.status, second.header("x-cache")), (304, Some("HIT")));
    assert_eq!(second.header("etag"), Some("\"a\""));
    assert_eq!(second.header("content-type"), None);
    says(&ask(&site, &target, &[("If-None-Match", "\"b\"")]), "HIT", 1);
}

#[test]
fn a_stale_page_that_the_script_confirms_is_used_again() {
    let site = site(ON);
    let target = page(&["Cache-Control: max-age=60, must-revalidate", "ETag: \"current\""]);
    says(&ask(&site, &target, &[]), "MISS", 1);
    site.client().send(&Request::new("PURGE", &target).header("Soft-Purge", "1")).expect(200);
    let confirmed = ask(&site, &target, &[]).expect(200);
    says(&confirmed, "HIT", 1);
    let status = confirmed.header("cache-status").unwrap();
    assert!(status.starts_with("Outboard; fwd=stale; fwd-status=304; stored; ttl="), "{status}");
    // What is said in Vary for the codings is not the script's word.
    says(&ask(&site, &target, &[("Accept-Encoding", "gzip")]), "HIT", 1);
    let other = page(&["Cache-Control: max-age=60", "ETag: \"current\"", "X: 1"]);
    says(&ask(&site, &other, &[]), "MISS", 3);
}

#[test]
fn a_part_of_a_kept_page_is_sent() {
    let site = site(ON);
    let target = page(&["Cache-Control: max-age=60", "ETag: \"a\""]);
    let part = ask(&site, &target, &[("Range", "bytes=4-4")]).expect(206).saying("1");
    assert_eq!(part.header("content-range"), Some("bytes 4-4/18"));
    ask(&site, &target, &[("Range", "bytes=-8")]).expect(206).saying("visitor\n");
    let beyond = ask(&site, &target, &[("Range", "bytes=99-")]).expect(416);
    assert_eq!(beyond.header("content-range"), Some("bytes */18"));
    ask(&site, &target, &[("Range", "bytes=0-1"), ("If-Range", "\"b\"")]).expect(200);
}

#[test]
fn client_cache_control_is_honored_if_configured() {
    let target = page(&["Cache-Control: max-age=60"]);
    let site_that_heeds = site(ON);
    says(&ask(&site_that_heeds, &target, &[]), "MISS", 1);
    says(&ask(&site_that_heeds, &target, &[("Cache-Control", "no-cache")]), "MISS", 2);
    says(&ask(&site_that_heeds, &target, &[]), "HIT", 2);
    let missing = [("Cache-Control", "only-if-cached")];
    let nothing = ask(&site_that_heeds, "/page.php", &missing).expect(504);
    assert_eq!(nothing.header("x-outboard-reason"), Some("not_cached"));

    let site_that_does_not = site(&format!("{ON}honor_client_cache_control = false\n"));
    says(&ask(&site_that_does_not, &target, &[]), "MISS", 1);
    says(&ask(&site_that_does_not, &target, &[("Cache-Control", "no-cache")]), "HIT", 1);
}

#[test]
fn an_unsafe_request_invalidates_its_page() {
    let site = site(ON);
    let target = page(&["Cache-Control: max-age=60"]);
    says(&ask(&site, &target, &[]), "MISS", 1);
    let failed = format!("{target}&status=409");
    site.client().send(&Request::form(&failed, &[])).expect(409);
    says(&ask(&site, &target, &[]), "HIT", 1);
    let posted = site.client().send(&Request::form(&target, &[]));
    assert_eq!((posted.header("x-cache"), detail(&posted)), (Some("BYPASS"), "method"));
    says(&ask(&site, &target, &[]), "MISS", 4);
    // Where the answer to another URL points is forgotten too (RFC 9111 4.4).
    let target = page(&["Cache-Control: max-age=60"]);
    let elsewhere = page(&[&format!("Location: {target}")]);
    site.client().send(&Request::form(&format!("{elsewhere}&status=201"), &[])).expect(201);
    says(&ask(&site, &target, &[]), "MISS", 6);
}

#[test]
fn a_failing_script_is_stood_in_for_by_the_page_of_before() {
    let site = site(ON);
    let target = page(&["Cache-Control: max-age=60, stale-if-error=600"]);
    let broken = site.root().join("state/broken");
    says(&ask(&site, &target, &[]), "MISS", 1);
    std::fs::write(&broken, "").unwrap();
    site.client().send(&Request::new("PURGE", &target).header("Soft-Purge", "1")).expect(200);
    // Past the grace of a soft purge nothing but an error is left to hope for.
    let newer = [("Cache-Control", "max-age=0, min-fresh=1")];
    let response = ask(&site, &target, &newer);
    says(&response, "STALE", 1);
    assert!(response.header("cache-status").unwrap().ends_with("detail=stale-if-error"));
    let strict = page(&["Cache-Control: max-age=60, must-revalidate", "X: 1"]);
    ask(&site, &strict, &[]).expect(500);
    std::fs::remove_file(&broken).unwrap();
    says(&ask(&site, &target, &newer), "MISS", 4);
}

#[test]
fn hits_come_compressed_for_clients_that_take_it() {
    let site = site(ON);
    let target = format!("{}&more=20000", page(&["Cache-Control: max-age=60", "ETag: \"a\""]));
    let plain = ask(&site, &target, &[("Accept-Encoding", "gzip")]);
    assert_eq!((plain.header("x-cache"), plain.body.len()), (Some("MISS"), 20018));
    assert_eq!(plain.header("vary"), Some("Accept-Encoding"));
    for coding in ["gzip", "br", "zstd"] {
        // The codings are made beside the answers.
        let packed = eventually("a compressed variant", || {
            let response = ask(&site, &target, &[("Accept-Encoding", coding)]);
            assert_eq!(response.header("x-cache"), Some("HIT"));
            response.header("content-encoding").is_some().then_some(response)
        });
        assert_eq!(packed.header("content-encoding"), Some(coding));
        assert_eq!(packed.header("etag"), Some("W/\"a\""));
        assert!(packed.body.len() < 1000);
    }
    assert_eq!(ask(&site, &target, &[]).body, plain.body);
    let part = [("Accept-Encoding", "gzip"), ("Range", "bytes=0-2")];
    ask(&site, &target, &part).expect(206).saying("run");
}

#[test]
fn a_reload_begins_with_an_empty_cache() {
    let site = site(ON);
    let target = page(&["Cache-Control: max-age=60"]);
    says(&ask(&site, &target, &[]), "MISS", 1);
    says(&ask(&site, &target, &[]), "HIT", 1);
    assert!(site.command("reload", &[]).status.success());
    says(&ask(&site, &target, &[]), "MISS", 2);
}

#[test]
fn static_files_and_their_own_caching_are_as_before() {
    let site = site(ON);
    std::fs::write(site.root().join("file.txt"), "a file\n").unwrap();
    let file = ask(&site, "/file.txt", &[]).expect(200).saying("a file\n");
    assert_eq!(file.header("x-cache"), None);
}
