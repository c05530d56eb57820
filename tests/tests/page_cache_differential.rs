//! Random visitors of pages that show everything that they can see: what the cache answers is what
//! the script would have made for that visitor.
//!
//! A second server without a cache says what that is. The sequence follows from a seed;
//! `OUTBOARD_SEED` tries another one.

#![forbid(unsafe_code)]

use outboard_e2e::{Client, Configured, Docroot, Request, Response};
use std::fmt::Write as _;

const VISITS: usize = 1_500;

/// What pages say of themselves, by the kind of page.
const SILENT: [(&str, &[&str]); 5] = [
    ("silent", &[]),
    ("silent-vary", &["Vary: X-Tenant"]),
    ("moved", &[]),
    ("lost", &[]),
    ("coded", &[]),
];
/// These say what they vary by; `VARY` stands for all that is sent and shown.
const OUTSPOKEN: [(&str, &[&str]); 6] = [
    ("max-age", &["Cache-Control: max-age=60", "VARY"]),
    ("expires", &["Expires: Fri, 31 Dec 9999 23:59:59 GMT", "VARY"]),
    ("public", &["Cache-Control: public, max-age=60", "VARY", "Vary: Authorization"]),
    ("s-maxage", &["Cache-Control: s-maxage=60", "VARY", "Vary: Authorization"]),
    ("no-cache-etag", &["Cache-Control: no-cache", "VARY"]),
    ("max-age-0-etag", &["Cache-Control: max-age=0", "VARY"]),
];
/// These say that they are not to be kept.
const REFUSED: [(&str, &[&str]); 14] = [
    ("no-store", &["Cache-Control: no-store"]),
    ("private", &["Cache-Control: private, max-age=60"]),
    ("no-cache", &["Cache-Control: no-cache"]),
    ("max-age-0", &["Cache-Control: max-age=0"]),
    ("s-maxage-0", &["Cache-Control: s-maxage=0, max-age=60"]),
    ("must-revalidate", &["Cache-Control: max-age=0, must-revalidate"]),
    ("contradiction", &["Cache-Control: max-age=60", "Cache-Control: max-age=30"]),
    ("expires-0", &["Expires: 0"]),
    ("expires-past", &["Expires: Thursday, 19-Nov-81 08:52:00 GMT"]),
    ("expires-asctime", &["Expires: Thu Nov 19 08:52:00 1981"]),
    ("pragma", &["Pragma: no-cache"]),
    ("accel", &["X-Accel-Expires: 0"]),
    ("set-cookie", &["Set-Cookie: a=b", "Cache-Control: public, max-age=60"]),
    ("vary-star", &["Cache-Control: max-age=60", "Vary: *"]),
];

/// Fields that visitors send or not.
const FIELDS: [(&str, &[&str]); 33] = [
    // A visitor.
    ("Authorization", &["Basic YTpi", "Bearer t"]),
    ("Cookie", &["_ga=1", "theme=dark", "theme=dark; _ga=2", "PHPSESSID=x", "a=1; b=2"]),
    ("Proxy-Authorization", &["Basic YTpi"]),
    ("X-Api-Key", &["alice", "bob"]),
    ("X-Auth-Token", &["alice"]),
    ("X-WP-Nonce", &["n1"]),
    ("X-Tenant", &["one", "two"]),
    ("X-Forwarded-Client-Cert", &["alice"]),
    ("X-CSRF-Token", &["n2"]),
    ("Api-Version", &["2"]),
    // Parts of the URL or of the page.
    ("Forwarded", &["host=evil.test"]),
    ("Front-End-Https", &["on"]),
    ("X-Forwarded-Host", &["evil.test"]),
    ("X-Forwarded-Ssl", &["on"]),
    ("X-Forwarded-Prefix", &["//evil.test"]),
    ("X_Forwarded_Prefix", &["//evil.test"]),
    ("X-Original-URL", &["/admin"]),
    ("X-HTTP-Method-Override", &["DELETE"]),
    ("CF-Visitor", &["{\"scheme\":\"https\"}"]),
    ("HX-Request", &["true"]),
    ("Turbo-Frame", &["part"]),
    ("X-Requested-With", &["XMLHttpRequest"]),
    // The fields by which pages without Vary are distinguished.
    ("Origin", &["https://other.test"]),
    ("Save-Data", &["on"]),
    ("CF-IPCountry", &["DE", "US"]),
    // About nobody.
    ("Cache-Control", &["no-cache", "max-age=0", "max-stale", "no-store"]),
    ("Pragma", &["no-cache"]),
    ("DNT", &["1"]),
    ("Referer", &["http://a.test/from"]),
    ("Traceparent", &["00-1-2-01"]),
    ("Via", &["1.1 x"]),
    ("X-Forwarded-For", &["192.0.2.1"]),
    ("X-Request-ID", &["7"]),
];
const AGENTS: [&str; 2] = ["Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (Android 14) Mobile"];
const ACCEPTED: [&str; 3] = ["text/html,*/*;q=0.8", "application/json", "text/html,image/webp"];
const LANGUAGES: [&str; 2] = ["de,en;q=0.5", "en"];
const CODINGS: [&str; 2] = ["gzip", "br"];
const HOSTS: [&str; 4] = ["a.test", "b.test", "A.test", "a.test:80"];
const QUERIES: [&str; 4] = ["", "?a=1", "?a=1&", "?%61=1"];

/// SplitMix64: the same numbers everywhere.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.next() % all.len() as u64) as usize]
    }

    /// True for one of so many.
    fn one_of(&mut self, many: u64) -> bool {
        self.next().is_multiple_of(many)
    }
}

fn kinds() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    SILENT.into_iter().chain(OUTSPOKEN).chain(REFUSED)
}

/// What `echo.php` reads.
fn kinds_file() -> String {
    let shown = ["Accept", "Accept-Language", "User-Agent", "Cookie"].into_iter();
    // Those that may not be personal are distinguished without Vary.
    let shown = shown.chain(FIELDS.iter().map(|(name, _)| *name)).filter(|name| {
        !matches!(*name, "Authorization" | "Cache-Control" | "Pragma") && !name.contains('_')
    });
    let vary = format!("Vary: {}", shown.collect::<Vec<_>>().join(", "));
    let lines = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| line.replace("VARY", &vary)).collect()
    };
    let all: Vec<String> =
        kinds().map(|(kind, said)| format!("{kind:?}: {:?}", lines(said))).collect();
    format!("{{{}}}", all.join(",\n"))
}

fn site(mode: &str) -> Configured {
    let docroot = Docroot::of("page_cache");
    docroot.writable("state");
    docroot.put("kinds.json", kinds_file());
    Configured::start(
        docroot,
        &Configured::text(&format!("[app.site.page_cache]\nmode = {mode:?}")),
    )
}

fn visit(chance: &mut Chance, kind: &str) -> Request {
    let method = if chance.one_of(12) { "HEAD" } else { "GET" };
    // Few targets and hosts, so that visitors meet.
    let query = if chance.one_of(6) { chance.of(&QUERIES) } else { "" };
    let host = if chance.one_of(5) { chance.of(&HOSTS) } else { HOSTS[0] };
    let mut target = format!("/echo.php/{kind}{query}");
    let mut request = Request::new(method, "");
    if chance.one_of(16) {
        // The host of an absolute target replaces the field (RFC 9112 3.2.2).
        target = format!("http://{}{target}", chance.of(&HOSTS));
    }
    request.target = target;
    request = request.header("Host", host);
    let rarely = |chance: &mut Chance, all: &[&'static str]| {
        if chance.one_of(4) { chance.of(all) } else { all[0] }
    };
    request = request.header("User-Agent", rarely(chance, &AGENTS));
    request = request.header("Accept", rarely(chance, &ACCEPTED));
    request = request.header("Accept-Language", rarely(chance, &LANGUAGES));
    if chance.one_of(2) {
        request = request.header("Accept-Encoding", chance.of(&CODINGS));
    }
    while chance.one_of(2) {
        let (name, values) = chance.of(&FIELDS);
        if !request.has(name) {
            request = request.header(name, chance.of(values));
        }
    }
    request
}

/// What must be the same, whichever response it is.
fn substance(response: &Response) -> String {
    let mut text = format!("{}\n", response.status);
    for name in ["x-seen", "location", "content-type", "etag", "set-cookie"] {
        for value in response.all(name) {
            // A coded body's tag is weak.
            writeln!(text, "{name}: {}", value.trim_start_matches("W/")).unwrap();
        }
    }
    if response.header("content-encoding").is_none() {
        text += &response.text();
    }
    text
}

fn fresh(server: &Configured, request: &Request) -> Response {
    let mut plain = request.clone();
    // Coded or not, it is the same page.
    plain.headers.retain(|(name, _)| name != "Accept-Encoding");
    Client::new(server.address()).send(&plain)
}

#[track_caller]
fn what_is_kept_is_what_would_be_made(mode: &str) -> usize {
    let seed = std::env::var("OUTBOARD_SEED").map_or(14, |seed| seed.parse().unwrap());
    let (kept, made) = (site(mode), site("off"));
    let (mut chance, mut hits) = (Chance(seed), 0);
    let names: Vec<&str> = kinds().map(|(kind, _)| kind).collect();
    let mut visitor = kept.client();
    for number in 0..VISITS {
        let kind = chance.of(&names);
        let request = visit(&mut chance, kind);
        let answer = visitor.send(&request);
        if answer.header("set-cookie").is_some() {
            // The next one is another visitor, without it.
            visitor = kept.client();
        }
        let word = answer.header("x-cache").unwrap_or_default().to_owned();
        let context = || format!("visit {number} of seed {seed}: {word}\n{request:#?}");
        if !matches!(&*word, "HIT" | "STALE") {
            continue;
        }
        hits += 1;
        assert!(REFUSED.iter().all(|(refused, _)| kind != *refused), "{}", context());
        let coding = answer.header("content-encoding").unwrap_or("identity");
        let takes = request
            .headers
            .iter()
            .any(|(name, value)| name == "Accept-Encoding" && value == coding);
        assert!(coding == "identity" || takes, "{coding}: {}", context());
        let expected = fresh(&made, &request);
        let body = if coding == "identity" && request.method == "GET" { substance } else { head };
        assert_eq!(body(&answer), body(&expected), "{}", context());
    }
    hits
}

/// [`substance`] without the body.
fn head(response: &Response) -> String {
    substance(&Response { body: Vec::new(), ..response.clone() })
}

#[test]
fn a_default_ttl_of_a_minute_shares_no_private_page() {
    let hits = what_is_kept_is_what_would_be_made("on");
    assert!(hits > VISITS / 12, "{hits} hits prove nothing");
}

#[test]
fn a_default_ttl_of_a_second_shares_no_private_page() {
    let hits = what_is_kept_is_what_would_be_made("auto");
    assert!(hits > VISITS / 24, "{hits} hits prove nothing");
}
