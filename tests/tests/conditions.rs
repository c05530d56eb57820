//! Conditions of rules: what clients send decides about routes, headers, access and proxied requests, and nothing of it is
//! stored for others.

#![forbid(unsafe_code)]

use outboard_e2e::{Backend, Configured, Docroot, Request, Response};
use std::fs;
use std::sync::LazyLock;

/// 192.0.2.0/24 is in DE, 198.51.100.0/24 in FR, 2001:db8::/32 in AT.
const COUNTRIES: &[u8] = include_bytes!("../fixtures/countries/countries.mmdb");

const TEXT: &str = r#"
listen = "127.0.0.1:0"
trusted_proxies = ["private"]
country_database = "countries.mmdb"
[networks]
office = ["203.0.113.0/28", "office.txt"]

[app.site]
root = "www"
page_cache = "on"

[app.site.condition.beta]
cookie = { beta = "1" }
[app.site.condition.preview]
query = { "preview mode" = "*" }
[app.site.condition.bot]
header = { User-Agent = ["*bot*", "curl/*"] }
[app.site.condition.hotlink]
header = { Referer = "*" }
if = "!own_page"
[app.site.condition.own_page]
header = { Referer = "http://127.0.0.1:*" }
[app.site.condition.mobile]
host = ["m.site.test", "*.m.site.test"]
[app.site.condition.writes]
method = ["POST", "PUT"]
[app.site.condition.neighbour]
country = ["DE", "AT"]
[app.site.condition.friend]
any = ["neighbour", "!stranger"]
[app.site.condition.stranger]
client = ["0.0.0.0/0", "::/0"]
if = "!office"
[app.site.condition.office]
client = "office"

[[app.site.rewrite]]
match = '^/images/'
status = 403
if = "hotlink"
[[app.site.rewrite]]
match = '^(.*)$'
to = "https://site.test$1"
status = 302
if = ["mobile", "!writes"]
[[app.site.rewrite]]
match = '^/health$'
status = 200
body = "fine\n"
if = "bot"
[[app.site.rewrite]]
match = '^/$'
to = "/beta.php"
if = "beta"
[[app.site.rewrite]]
match = '^/friends$'
status = 200
body = "a friend\n"
if = "friend"

[[app.site.headers]]
set = { X-Robots-Tag = "noindex" }
if = "preview"

[[app.site.access]]
path = "/closed/"
allow = ["office"]
if = "!beta"

[[app.site.proxy]]
path = "/text/**"
upstream = "http://BACKEND"
if = "writes"
"#;

/// The server, and what it forwards to.
struct Site {
    server: Configured,
    _backend: Backend,
}

fn site() -> &'static Configured {
    static SITE: LazyLock<Site> = LazyLock::new(|| {
        let backend = Backend::start();
        let docroot = Docroot::of("conditions");
        fs::write(docroot.beside().path().join("countries.mmdb"), COUNTRIES).unwrap();
        docroot.beside().file("office.txt", "# the office\n2001:db8:0f::/48 # upstairs\n\n");
        let text = TEXT.replace("BACKEND", &backend.address().to_string());
        Site { server: Configured::start(docroot, &text), _backend: backend }
    });
    &SITE.server
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

#[test]
fn a_referer_of_another_site_gets_no_picture() {
    let picture = |referer: &str| get("/images/a.gif", &[("Referer", referer)]);
    get("/images/a.gif", &[]).expect(200);
    picture("http://127.0.0.1:80/page").expect(200);
    picture("HTTP://127.0.0.1:80/page").expect(200);
    picture("https://thief.test/").expect(403);
    picture("").expect(403);
    get("/images/../images/%61.gif", &[("referer", "https://thief.test/")]).expect(403);
    get("/", &[("Referer", "https://thief.test/")]).expect(200);
}

#[test]
fn all_conditions_of_a_list_have_to_hold() {
    for host in ["m.site.test", "M.SITE.TEST", "a.m.site.test:80"] {
        let response = get("/a?b=c", &[("Host", host)]).expect(302);
        assert_eq!(response.header("location"), Some("https://site.test/a?b=c"));
    }
    let post = Request::post("/a", "text/plain", "x").header("Host", "m.site.test");
    send(post).expect(200);
    get("/a", &[("Host", "xm.site.test")]).expect(200);
}

#[test]
fn a_rule_responds_with_a_text() {
    for agent in ["GoogleBot/2.1", "curl/8.0"] {
        let response = get("/health", &[("User-Agent", agent)]).expect(200).saying("fine\n");
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
    }
    get("/health", &[("User-Agent", "Mozilla/5.0")]).expect(200).holding("/index.php");
}

#[test]
fn a_page_of_a_condition_is_not_stored_for_others() {
    let plain = get("/", &[]).expect(200).holding("/index.php");
    assert_eq!(get("/", &[]).text(), plain.text(), "it is stored");
    for cookie in ["beta=1", "a=b; beta=1", "beta=0; beta=1; c", "beta=\"1\""] {
        let response = get("/", &[("Cookie", cookie)]).expect(200).holding("/beta.php");
        let status = response.header("cache-status").unwrap_or_default();
        assert!(status.contains("detail=condition"), "{status}");
    }
    for cookie in ["beta=0", "Beta=1", "xbeta=1", "beta", "beta=11"] {
        get("/", &[("Cookie", cookie)]).expect(200).holding("/index.php");
    }
    assert_eq!(get("/", &[]).text(), plain.text());
}

#[test]
fn a_header_of_a_condition_is_not_stored_for_others() {
    // The query is read as PHP reads it.
    for query in ["preview+mode", "preview%20mode=1", "a=b&preview%20mod%65="] {
        let first = get(&format!("/p?{query}"), &[]).expect(200);
        assert_eq!(first.header("x-robots-tag"), Some("noindex"), "{query}");
        assert_ne!(first.text(), get(&format!("/p?{query}"), &[]).text(), "it is not stored");
    }
    assert_eq!(get("/p?preview", &[]).expect(200).header("x-robots-tag"), None);
}

#[test]
fn countries_and_networks_are_those_of_the_client() {
    let from = |client: &str| get("/friends", &[("X-Forwarded-For", client)]).expect(200);
    for friend in ["192.0.2.9", "::ffff:192.0.2.9", "2001:db8::1", "203.0.113.15", "2001:db8:f::1"]
    {
        from(friend).saying("a friend\n");
    }
    for stranger in ["198.51.100.1", "203.0.113.16", "2001:dead::1"] {
        from(stranger).holding("/index.php");
    }
}

#[test]
fn an_access_rule_applies_if_its_condition_holds() {
    let closed = |client: &str, cookie: &str| {
        get("/closed/", &[("X-Forwarded-For", client), ("Cookie", cookie)])
    };
    closed("198.51.100.1", "a=b").expect(403);
    closed("198.51.100.1", "beta=1").expect(200);
    closed("203.0.113.1", "a=b").expect(200);
}

#[test]
fn a_route_is_proxied_if_its_condition_holds() {
    send(Request::post("/text/api", "text/plain", "x")).expect(200).saying("api");
    get("/text/api", &[]).expect(200).holding("/index.php");
}
