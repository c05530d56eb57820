//! Which file or script a URL leads to: hosts, prefixes, indexes, front controllers, rules.

#![forbid(unsafe_code)]

use outboard_e2e::{Configured, Docroot, Request, Response};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::LazyLock;

const TEXT: &str = r#"
[[listen]]
address = "127.0.0.1:0"
[[listen]]
address = "unix:site.sock"
mode = "0666"

[app.main]
root = "www"
deny = ["/private/", "*.sql"]

[app.main.error_pages]
404 = "errors/404.html"
5xx = "errors/5xx.html"

[[app.main.headers]]
set = { X-Frame-Options = "DENY" }
remove = ["X-Powered-By"]
[[app.main.headers]]
path = "/assets/"
set = { Cache-Control = "public, max-age=60" }
add = { X-Asset = "yes" }

[[app.main.rewrite]]
match = '^/product/(?<id>[^/]+)$'
to = "/page.php?product=${id}"
[[app.main.rewrite]]
match = '^/old/(.*)$'
to = "https://example.org/new/$1"
status = 301
[[app.main.rewrite]]
match = '^/dropped/(.*)$'
to = "/elsewhere/$1?"
status = 302
[[app.main.rewrite]]
match = '^/internal/'
status = 404
[[app.main.rewrite]]
match = '^/gone$'
status = 410
[[app.main.rewrite]]
match = '^/(existing|missing)\.txt$'
to = "/page.php?instead=$1"
when = "missing"
[[app.main.rewrite]]
match = '^/folder/$'
to = "/page.php?exists"
when = "exists"
[[app.main.rewrite]]
match = '^/first$'
to = "/second"
last = false
[[app.main.rewrite]]
match = '^/second$'
to = "/page.php?second"

[app.blog]
path = "/blog"
root = "www/blog"

[app.shop]
hosts = ["shop.example", "*.shop.example"]
root = "www/shop"

[[redirect]]
hosts = ["www.old.example", "*.example.net"]
to = "https://shop.example"
[[redirect]]
hosts = "repeat.example"
to = "http://shop.example:8080"
status = 308

[app.files]
hosts = ["files.example"]
root = "www"
front_controller = "none"
index = ["index.html"]
"#;

fn site() -> &'static Configured {
    static SITE: LazyLock<Configured> =
        LazyLock::new(|| Configured::start(Docroot::of("routing"), TEXT));
    &SITE
}

fn get(target: &str) -> Response {
    site().client().send(&Request::get(target))
}

fn of_host(host: &str, target: &str) -> Response {
    site().client().send(&Request::get(target).header("Host", host))
}

/// A script was reached in this way.
#[track_caller]
fn reaches(target: &str, script: &str, path_info: &str, query: &str) {
    get(target).expect(200).saying(&format!(
        "SCRIPT_NAME={script}\nPATH_INFO={path_info}\nREQUEST_URI={target}\n\
         QUERY_STRING={query}\nPHP_SELF={script}{path_info}\n"
    ));
}

#[test]
fn a_folder_is_answered_by_its_index() {
    reaches("/?a=1", "/index.php", "", "a=1");
}

#[test]
fn paths_without_a_file_reach_the_front_controller() {
    reaches("/no/such/page?a=1", "/index.php", "", "a=1");
    reaches("/no/such/file.txt", "/index.php", "", "");
}

#[test]
fn path_info_is_the_path_behind_the_script() {
    reaches("/page.php/more/path?a=1", "/page.php", "/more/path", "a=1");
    reaches("/page.php/", "/page.php", "/", "");
    reaches("/page.php/x.php", "/page.php", "/x.php", "");
}

#[test]
fn without_a_front_controller_there_is_a_404() {
    let response = of_host("files.example", "/no/such/page").expect(404);
    assert_eq!(response.header("x-outboard-reason"), Some("not_found"));
    of_host("files.example", "/folder/").expect(403);
}

#[test]
fn bytes_that_are_not_ascii_pass_in_path_and_query() {
    let mut wire = site().wire();
    let line = b"GET /page.php/\xc3\xa9?q=\xc3\xa9\xff HTTP/1.1\r\nHost: a\r\n".to_vec();
    wire.send([line, b"Connection: close\r\n\r\n".to_vec()].concat());
    let transcript = wire.to_end();
    assert!(transcript.starts_with("HTTP/1.1 200 OK\r\n"), "{transcript}");
    assert!(transcript.contains("PATH_INFO=/\u{e9}\n"), "{transcript}");
    assert!(transcript.contains("QUERY_STRING=q=\u{e9}"), "{transcript}");
}

#[test]
fn an_app_is_found_by_its_host() {
    for host in ["shop.example", "SHOP.example:8080", "www.shop.example", "a.b.shop.example"] {
        of_host(host, "/").expect(200).saying("shop index\n");
    }
    for host in ["notshop.example", "example", "shop.example.evil"] {
        of_host(host, "/page.php").expect(200).holding("SCRIPT_NAME=/page.php");
    }
}

#[test]
fn a_redirected_host_keeps_path_and_query() {
    for (host, start) in [
        ("www.old.example", "https://shop.example"),
        ("WWW.OLD.example:8080", "https://shop.example"),
        ("a.b.example.net", "https://shop.example"),
    ] {
        for target in ["/", "/a%2Fb/?c=%0d&d", "//evil.test/%2e", "/%2f%2fevil.test?//evil.test"] {
            let response = of_host(host, target).expect(301);
            let expected = format!("{start}{target}");
            assert_eq!(response.header("location"), Some(&*expected), "{host}{target}");
        }
    }
    let response = of_host("repeat.example", "/a").expect(308);
    assert_eq!(response.header("location"), Some("http://shop.example:8080/a"));
    for host in ["old.example", "example.net", "www.old.example.evil"] {
        of_host(host, "/page.php").expect(200).holding("SCRIPT_NAME=/page.php");
    }
}

#[test]
fn an_app_is_found_by_its_prefix() {
    get("/blog/").expect(200).saying("blog index /blog/index.php /blog/\n");
    get("/blog/a/page").expect(200).saying("blog index /blog/index.php /blog/a/page\n");
    get("/blog/post.txt").expect(200).saying("a file of the blog\n");
    get("/blogger").expect(200).holding("SCRIPT_NAME=/index.php");
}

#[test]
fn the_bare_prefix_of_an_app_gets_its_slash() {
    let response = get("/blog");
    if response.status != 200 {
        let response = response.expect(301);
        assert_eq!(response.header("location"), Some("/blog/"));
    } else {
        response.holding("blog index");
    }
}

#[test]
fn an_unknown_host_and_path_are_404() {
    let text = "listen = \"127.0.0.1:0\"\n[app.site]\nroot = \"www\"\nhosts = [\"a.example\"]\npath = \"/a\"\n";
    let site = Configured::start(Docroot::of("routing"), text);
    for (host, target) in [("b.example", "/a/"), ("a.example", "/"), ("a.example", "/ab")] {
        let request = Request::get(target).header("Host", host);
        let response = site.client().send(&request).expect(404);
        assert_eq!(response.header("x-outboard-reason"), Some("no_app"), "{host} {target}");
    }
}

#[test]
fn a_rule_leads_elsewhere_inside() {
    reaches("/product/42", "/page.php", "", "product=42");
    // What was matched cannot add to the query.
    reaches("/product/4%262=x%23", "/page.php", "", "product=4%262%3Dx%23");
}

#[test]
fn rules_that_are_not_last_go_on() {
    reaches("/first", "/page.php", "", "second");
}

#[test]
fn a_rule_redirects_and_keeps_the_query() {
    let response = get("/old/a/b?c=d").expect(301);
    assert_eq!(response.header("location"), Some("https://example.org/new/a/b?c=d"));
    let response = get("/dropped/x?c=d").expect(302);
    assert_eq!(response.header("location"), Some("/elsewhere/x"));
}

#[test]
fn a_redirect_cannot_be_made_to_say_a_header() {
    let mut wire = site().wire();
    wire.send("GET /old/%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let transcript = wire.to_end();
    assert!(!transcript.to_lowercase().contains("\r\nset-cookie"), "{transcript}");
}

#[test]
fn a_rule_answers_with_a_status() {
    get("/internal/anything").expect(404).saying("<h1>Gone fishing</h1>\n");
    get("/gone").expect(410);
}

#[test]
fn a_rule_may_ask_whether_the_file_is_there() {
    get("/existing.txt").expect(200).saying("exists\n");
    reaches("/missing.txt", "/page.php", "", "instead=missing");
    reaches("/folder/", "/page.php", "", "exists");
}

#[test]
fn denied_paths_do_not_exist() {
    for target in [
        "/private/notes.txt",
        "/dump.sql",
        "/private/",
        "/%70rivate/notes.txt",
        "/a/../private/notes.txt",
        "//private/notes.txt",
    ] {
        let response = get(target).expect(404);
        assert_eq!(response.header("x-outboard-reason"), Some("denied"), "{target}");
    }
}

#[test]
fn header_rules_hold_for_files_scripts_and_refusals() {
    for target in ["/existing.txt", "/page.php", "/private/notes.txt"] {
        let response = get(target);
        assert_eq!(response.header("x-frame-options"), Some("DENY"), "{target}");
        assert_eq!(response.header("x-powered-by"), None, "{target}");
        assert_eq!(response.header("x-asset"), None, "{target}");
    }
    let response = get("/assets/site.css").expect(200);
    assert_eq!(response.header("cache-control"), Some("public, max-age=60"));
    assert_eq!(response.header("x-asset"), Some("yes"));
}

#[test]
fn errors_of_the_server_have_the_pages_of_the_app() {
    get("/private/notes.txt").expect(404).saying("<h1>Gone fishing</h1>\n");
    get("/crash.php").expect(502).saying("<h1>Sorry</h1>\n");
}

#[test]
fn a_unix_socket_serves_the_same() {
    let path = site().docroot().beside().path().join("site.sock");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
    assert!(site().listeners()[1].contains("site.sock"), "{:?}", site().listeners());
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(b"GET /page.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("SCRIPT_NAME=/page.php\n"), "{answer}");
}

#[test]
fn a_unix_socket_that_a_dead_server_left_behind_is_taken_over() {
    let docroot = Docroot::of("routing");
    let left = docroot.beside().path().join("site.sock");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    let text = "listen = \"unix:site.sock\"\n[app.site]\nroot = \"www\"\n";
    let site = Configured::start(docroot, text);
    let mut stream = UnixStream::connect(left).unwrap();
    stream.write_all(b"GET /existing.txt HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nexists\n"), "{answer} {}", site.child().output());
}
