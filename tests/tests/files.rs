//! Static files: what is sent of them, to whom again, and what is never sent.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Framing, Request, Response, Scratch};
use std::fs::File;
use std::os::unix::fs::symlink;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

fn site() -> &'static Configured {
    static SITE: LazyLock<Configured> = LazyLock::new(|| {
        let docroot = Docroot::of("files");
        docroot.put(".env", "PASSWORD=secret\n");
        docroot.put(".git/config", "[secret]\n");
        docroot.put(".well-known/security.txt", "Contact: nobody\n");
        docroot.put("odd name é.txt", "odd\n");
        docroot.put("long.txt", long());
        // Siblings that are older than their file are out of date.
        docroot.put("style.css.br", "not really brotli\n");
        docroot.put("style.css.gz", "not really gzip\n");
        docroot.put("stale.css.gz", "of the day before\n");
        let yesterday = SystemTime::now() - Duration::from_secs(86_400);
        let stale = File::options().append(true).open(docroot.path().join("stale.css.gz")).unwrap();
        stale.set_modified(yesterday).unwrap();
        docroot.put("stale.css", "of today\n");
        docroot.put("image.jpg", "<?php echo 'ran'; // A secret of the source.\n");
        docroot.beside().file("outside.txt", "secret of the folder beside\n");
        docroot.beside().file("www-evil/outside.txt", "secret of a similar name\n");
        symlink("../outside.txt", docroot.path().join("escape.txt")).unwrap();
        symlink("..", docroot.path().join("up")).unwrap();
        symlink("letters.txt", docroot.path().join("inside.txt")).unwrap();
        symlink("loop.txt", docroot.path().join("loop.txt")).unwrap();
        symlink("source.php", docroot.path().join("source.txt")).unwrap();
        Configured::start(docroot, &Configured::text(""))
    });
    &SITE
}

/// 10,000 bytes, of which each ten tell their place.
fn long() -> String {
    (0..1000).map(|number| format!("{number:09}\n")).collect()
}

fn send(request: Request) -> Response {
    site().client().send(&request)
}

fn get(target: &str, fields: &[(&str, &str)]) -> Response {
    send(
        fields
            .iter()
            .fold(Request::get(target), |request, (name, value)| request.header(name, value)),
    )
}

/// The value of a field that must be there.
#[track_caller]
fn field(response: &Response, name: &str) -> String {
    let value = response.header(name).unwrap_or_else(|| panic!("no {name}: {response:?}"));
    value.to_owned()
}

#[test]
fn a_file_has_its_type_length_and_validators() {
    let response = get("/letters.txt", &[]).expect(200).saying("abcdefghijklmnopqrstuvwxyz");
    assert_eq!(response.framing, Framing::Length);
    assert!(field(&response, "content-type").starts_with("text/plain"), "{response:?}");
    assert_eq!(field(&response, "accept-ranges"), "bytes");
    let etag = field(&response, "etag");
    assert!(etag.starts_with('"') && etag.ends_with('"'), "a strong one: {etag}");
    assert!(field(&response, "last-modified").ends_with(" GMT"));
}

#[test]
fn head_tells_the_length_and_sends_nothing() {
    let response = send(Request::new("HEAD", "/letters.txt")).expect(200).saying("");
    assert_eq!(field(&response, "content-length"), "26");
}

#[test]
fn a_range_is_the_bytes_that_were_asked_for() {
    for (range, content_range, body) in [
        ("bytes=0-0", "bytes 0-0/26", "a"),
        ("bytes=2-4", "bytes 2-4/26", "cde"),
        ("bytes=24-", "bytes 24-25/26", "yz"),
        ("bytes=-3", "bytes 23-25/26", "xyz"),
        ("bytes=-100", "bytes 0-25/26", "abcdefghijklmnopqrstuvwxyz"),
        ("bytes=20-100", "bytes 20-25/26", "uvwxyz"),
    ] {
        let response = get("/letters.txt", &[("Range", range)]).expect(206).saying(body);
        assert_eq!(field(&response, "content-range"), content_range);
        assert_eq!(field(&response, "content-length"), body.len().to_string());
    }
}

#[test]
fn a_range_beyond_the_end_is_416_with_the_length() {
    for range in ["bytes=26-", "bytes=100-200", "bytes=-0"] {
        let response = get("/letters.txt", &[("Range", range)]).expect(416);
        assert_eq!(field(&response, "content-range"), "bytes */26");
    }
}

#[test]
fn a_range_that_is_none_is_passed_over() {
    for range in ["bytes=4-2", "lines=1-2", "bytes=a-b", "bytes", "bytes=1"] {
        get("/letters.txt", &[("Range", range)]).expect(200).saying("abcdefghijklmnopqrstuvwxyz");
    }
    send(Request::new("HEAD", "/letters.txt").header("Range", "bytes=0-1")).expect(200);
}

#[test]
fn several_ranges_are_parts_with_their_places() {
    let response = get("/long.txt", &[("Range", "bytes=0-9,5000-5009,-10")]).expect(206);
    let content_type = field(&response, "content-type");
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=");
    let boundary = boundary.unwrap_or_else(|| panic!("{content_type}")).trim_matches('"');
    assert_eq!(response.header("content-range"), None);
    let length = field(&response, "content-length");
    assert_eq!(length, response.body.len().to_string());
    let text = response.text();
    let parts: Vec<&str> = text.split(&format!("--{boundary}")).collect();
    let [before, first, second, third, after] = parts[..] else { panic!("{text}") };
    assert_eq!((before.trim(), after.trim()), ("", "--"));
    for (part, place, bytes) in [
        (first, "0-9", "000000000\n"),
        (second, "5000-5009", "000000500\n"),
        (third, "9990-9999", "000000999\n"),
    ] {
        assert!(part.contains(&format!("bytes {place}/10000\r\n")), "{text}");
        assert!(part.ends_with(&format!("\r\n\r\n{bytes}\r\n")), "{text}");
    }
}

#[test]
fn absurdly_many_ranges_are_not_multiplied() {
    let ranges = vec!["0-"; 2000].join(",");
    let response = get("/letters.txt", &[("Range", &format!("bytes={ranges}"))]);
    assert!(response.body.len() < 4096, "{} bytes", response.body.len());
}

#[test]
fn a_copy_that_is_up_to_date_is_not_sent_again() {
    let fresh = get("/letters.txt", &[]).expect(200);
    let (etag, date) = (field(&fresh, "etag"), field(&fresh, "last-modified"));
    for fields in [
        vec![("If-None-Match", etag.as_str())],
        vec![("If-None-Match", "*")],
        vec![("If-Modified-Since", date.as_str())],
        // RFC 9110, section 13.2.2: the tag goes before the date.
        vec![
            ("If-None-Match", etag.as_str()),
            ("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ],
    ] {
        let response = get("/letters.txt", &fields).expect(304);
        assert_eq!(field(&response, "etag"), etag);
        assert_eq!(response.header("content-length"), None);
    }
    let weak = format!("\"other\", W/{etag}");
    get("/letters.txt", &[("If-None-Match", &weak)]).expect(304);
}

#[test]
fn a_stale_copy_is_sent_again() {
    let date = field(&get("/letters.txt", &[]), "last-modified");
    for fields in [
        vec![("If-None-Match", "\"other\"")],
        vec![("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")],
        vec![("If-Modified-Since", "yesterday")],
        vec![("If-None-Match", "\"other\""), ("If-Modified-Since", date.as_str())],
    ] {
        get("/letters.txt", &fields).expect(200).saying("abcdefghijklmnopqrstuvwxyz");
    }
}

#[test]
fn a_condition_that_does_not_hold_is_412() {
    let etag = field(&get("/letters.txt", &[]), "etag");
    get("/letters.txt", &[("If-Match", &etag)]).expect(200);
    get("/letters.txt", &[("If-Match", "\"other\"")]).expect(412);
    get("/letters.txt", &[("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")]).expect(412);
}

#[test]
fn a_range_of_another_version_becomes_the_whole_file() {
    let fresh = get("/letters.txt", &[]);
    let (etag, date) = (field(&fresh, "etag"), field(&fresh, "last-modified"));
    let ranged =
        |if_range: &str| get("/letters.txt", &[("Range", "bytes=0-1"), ("If-Range", if_range)]);
    ranged(&etag).expect(206).saying("ab");
    ranged("\"other\"").expect(200);
    // Only a strong comparison will do (RFC 9110, section 13.1.5).
    ranged(&format!("W/{etag}")).expect(200);
    ranged("Thu, 01 Jan 1970 00:00:00 GMT").expect(200);
    let by_date = ranged(&date);
    assert!(matches!(by_date.status, 200 | 206), "{by_date:?}");
}

#[test]
fn a_compressed_sibling_is_sent_to_clients_that_take_it() {
    for (accepted, coding, body) in [
        ("br, gzip", Some("br"), "not really brotli\n"),
        ("gzip", Some("gzip"), "not really gzip\n"),
        ("br;q=0.1, gzip;q=0.9", Some("gzip"), "not really gzip\n"),
        ("br;q=0, gzip;q=0", None, "body { color: teal }\n"),
        ("identity", None, "body { color: teal }\n"),
        ("deflate", None, "body { color: teal }\n"),
    ] {
        let response = get("/style.css", &[("Accept-Encoding", accepted)]).expect(200).saying(body);
        assert_eq!(response.header("content-encoding"), coding, "{accepted}");
        assert!(field(&response, "content-type").starts_with("text/css"), "{accepted}");
        assert_eq!(field(&response, "vary").to_lowercase(), "accept-encoding", "{accepted}");
    }
    let plain = get("/style.css", &[]).expect(200).saying("body { color: teal }\n");
    let packed = get("/style.css", &[("Accept-Encoding", "br")]);
    assert_ne!(field(&plain, "etag"), field(&packed, "etag"), "different bytes, different tags");
}

#[test]
fn a_compressed_sibling_that_is_older_than_its_file_is_not_sent() {
    let response =
        get("/stale.css", &[("Accept-Encoding", "gzip")]).expect(200).saying("of today\n");
    assert_eq!(response.header("content-encoding"), None);
}

#[test]
fn a_file_answers_get_and_head_only() {
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let response = send(Request::new(method, "/letters.txt")).expect(405);
        assert_eq!(field(&response, "allow"), "GET, HEAD");
        assert_eq!(field(&response, "x-outboard-reason"), "method_not_allowed");
    }
    get("/letters.txt", &[]).expect(200).saying("abcdefghijklmnopqrstuvwxyz");
}

#[test]
fn dot_files_do_not_exist_for_visitors() {
    for target in
        ["/.env", "/.git/config", "/.git/", "/.git", "/folder/../.env", "/%2eenv", "/.nothing"]
    {
        let response = get(target, &[]).expect(404);
        assert!(!response.text().contains("secret"), "{target}");
    }
    get("/.well-known/security.txt", &[]).expect(200).saying("Contact: nobody\n");
}

#[test]
fn a_link_out_of_the_root_is_refused_with_a_hint_in_the_log() {
    for target in ["/escape.txt", "/up/outside.txt", "/up/www-evil/outside.txt"] {
        let response = get(target, &[]).expect(403);
        assert_eq!(field(&response, "x-outboard-reason"), "symlink_escape", "{target}");
        assert!(!response.text().contains("secret"), "{target}");
    }
    get("/loop.txt", &[]).expect(403);
    site().logs(&["reason=symlink_escape", "/escape.txt"]);
    let log = site().child().output();
    let hints: Vec<&str> = log.lines().filter(|line| line.contains("symlinks = ")).collect();
    assert!(!hints.is_empty(), "{log}");
    // The key is spelled as outboard.toml has it.
    assert!(hints.iter().all(|hint| hint.contains("`static.symlinks")), "{hints:?}");
}

#[test]
fn a_link_within_the_root_is_followed() {
    get("/inside.txt", &[]).expect(200).saying("abcdefghijklmnopqrstuvwxyz");
}

#[test]
fn a_link_that_may_lead_out_does() {
    let docroot = Docroot::of("files");
    let elsewhere = Scratch::new("elsewhere");
    elsewhere.file("shared.txt", "shared\n");
    symlink(elsewhere.path(), docroot.path().join("shared")).unwrap();
    let tables = format!("[static]\nsymlink_targets = [{:?}]", elsewhere.path());
    let site = Configured::start(docroot, &Configured::text(&tables));
    site.client().get("/shared/shared.txt").expect(200).saying("shared\n");
}

#[test]
fn the_source_of_a_script_is_never_sent() {
    for target in [
        "/source.php",
        "/source.php/",
        "/source.php/x",
        "/source.php%00.txt",
        "/source.php%20",
        "/source.php.",
        "/source.php::$DATA",
        "//source.php",
        "/./source.php",
        "/folder/%2e%2e/source.php",
        "/SOURCE.PHP",
        "/old.PHP",
        "/backup.phtml",
        "/source.txt",
    ] {
        for range in [None, Some("bytes=0-99")] {
            let fields: Vec<(&str, &str)> =
                range.map(|range| ("Range", range)).into_iter().collect();
            let response = get(target, &fields);
            assert!(!response.text().contains("secret"), "{target} {}", response.text());
        }
    }
    get("/source.php", &[]).expect(200).saying("ran\n");
}

#[test]
fn a_suffix_in_the_path_does_not_run_a_file() {
    for target in
        ["/image.jpg/x.php", "/image.jpg/.php", "/image.jpg%00.php", "/letters.txt/index.php"]
    {
        let response = get(target, &[]);
        assert!(response.status >= 400, "{target} {response:?}");
        assert!(!response.text().contains("ran"), "{target}");
    }
}

#[test]
fn no_spelling_of_a_path_leads_out_of_the_root() {
    for target in [
        "/../outside.txt",
        "/%2e%2e/outside.txt",
        "/%2E%2E/outside.txt",
        "/folder/../../outside.txt",
        "/folder/%2e%2e/%2e%2e/outside.txt",
        "/..%2foutside.txt",
        "/..%5coutside.txt",
        "/..\\outside.txt",
        "/%252e%252e/outside.txt",
        "/.%2e/outside.txt",
        "/....//outside.txt",
        "/..;/outside.txt",
        "/%c0%ae%c0%ae/outside.txt",
        "//etc/passwd",
        "/proc/self/environ",
        "/../www-evil/outside.txt",
    ] {
        let response = get(target, &[]);
        assert!((400..500).contains(&response.status), "{target} {response:?}");
        assert!(!response.text().contains("secret"), "{target}");
    }
}

#[test]
fn a_path_that_cannot_be_decoded_is_400() {
    for target in ["/%00", "/letters.txt%00", "/%zz", "/%", "/%4"] {
        let response = get(target, &[]).expect(400);
        assert_eq!(field(&response, "x-outboard-reason"), "bad_path", "{target}");
    }
}

#[test]
fn odd_names_are_found_by_their_escaped_spelling() {
    get("/odd%20name%20%C3%A9.txt", &[]).expect(200).saying("odd\n");
    get("/%6Cetters.txt?query", &[]).expect(200).saying("abcdefghijklmnopqrstuvwxyz");
}

#[test]
fn a_folder_without_its_slash_is_a_redirect() {
    let response = get("/folder?a=1", &[]).expect(301);
    assert_eq!(field(&response, "location"), "/folder/?a=1");
    get("/folder/", &[]).expect(200).saying("in the folder\n");
    // A redirect to another host would be a gift to phishers.
    let response = get("//folder", &[]);
    let location = response.header("location").unwrap_or_default();
    assert!(!location.starts_with("//"), "{location}");
}

#[test]
fn a_folder_without_an_index_is_not_listed() {
    let docroot = Docroot::of("files");
    docroot.put("bare/one.txt", "one\n");
    let site = Configured::start(docroot, &Configured::text(""));
    let response = site.client().get("/bare/").expect(403);
    assert!(!response.text().contains("one"), "{}", response.text());
}

/// Bytes that do not repeat at any power of two.
fn large() -> Vec<u8> {
    (0..50_000_000_u32).map(|number| (number % 1_000_003) as u8).collect()
}

#[test]
fn fifty_megabytes_arrive_as_they_are() {
    let docroot = Docroot::of("files");
    let large = large();
    docroot.put("large.bin", &large);
    let site = Configured::start(docroot, &Configured::text(""));
    let mut client = site.client();
    assert!(client.get("/large.bin").expect(200).body == large, "the bytes differ");
    let middle = Request::get("/large.bin").header("Range", "bytes=20000000-29999999");
    assert!(client.send(&middle).expect(206).body == large[20_000_000..30_000_000]);
}

#[test]
fn a_file_that_is_replaced_while_it_is_sent_arrives_as_it_was() {
    let docroot = Docroot::of("files");
    let large = large();
    docroot.put("large.bin", &large);
    let site = Configured::start(docroot, &Configured::text(""));
    let mut wire = site.wire();
    wire.send("GET /large.bin HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let head = wire.head();
    assert!(head.contains("Content-Length: 50000000\r\n"), "{head}");
    let beginning = wire.exactly(1_000_000);
    let successor = site.docroot().beside().file("successor.bin", "short\n");
    std::fs::rename(successor, site.root().join("large.bin")).unwrap();
    let rest = wire.exactly(49_000_000);
    assert!(beginning == large[..1_000_000] && rest == large[1_000_000..], "the bytes differ");
    assert_eq!(wire.to_end(), "");
}

/// A length that was promised cannot be kept: the client must not take the rest for the file.
#[test]
fn a_file_that_is_cut_while_it_is_sent_ends_the_connection() {
    let docroot = Docroot::of("files");
    docroot.put("large.bin", large());
    let site = Configured::start(docroot, &Configured::text(""));
    let mut wire = site.wire();
    wire.send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    wire.head();
    wire.exactly(1_000_000);
    let file = File::options().write(true).open(site.root().join("large.bin")).unwrap();
    file.set_len(2_000_000).unwrap();
    let rest = wire.to_any_end();
    assert!(rest.len() < 49_000_000, "{} bytes", rest.len());
    site.client().get("/letters.txt").expect(200).saying("abcdefghijklmnopqrstuvwxyz");
}
