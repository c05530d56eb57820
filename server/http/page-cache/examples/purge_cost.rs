//! Measures the cost of purges among a million stored pages, in microseconds.
//!
//! ```text
//! cargo run --release -p outboard-page-cache --example purge_cost
//! ```

use outboard_http1::Method;
use outboard_page_cache::{
    BypassRules, CookieRules, Entry, ExchangeTimes, Fields, Key, Policy, Purge, Request,
    RequestFacts, Response, Selector, Store, storable, tags_of,
};
use std::time::Instant;

const NOW_S: u64 = 1_700_000_000;
const PAGES: usize = 1_000_000;

fn main() {
    let mut store = Store::new(8 << 30);
    let began = Instant::now();
    for number in 0..PAGES {
        put(&mut store, number);
    }
    let each_us = began.elapsed().as_secs_f64() * 1e6 / PAGES as f64;
    println!("{} pages in {} MiB, {each_us:.2} us each", store.len(), store.used_bytes() >> 20);
    let tag = |name: &str| Selector::tags([name.as_bytes()]);
    let selectors = [
        ("url", Selector::url(b"http://site-2.test/section-1/page-10001")),
        ("path", Selector::url(b"/section-2/page-20002")),
        ("prefix of 111", Selector::prefix(b"/section-3/page-30")),
        ("prefix of nothing", Selector::prefix(b"/nowhere/")),
        ("tag of one", tag("post-400004")),
        ("tag of nothing", tag("nobody")),
        ("tag of 10,000", tag("section-5")),
    ];
    for (name, selector) in selectors {
        let began = Instant::now();
        let purged = store.purge(selector, Purge::Hard);
        let taken_us = began.elapsed().as_secs_f64() * 1e6;
        println!("{name:>20}: {purged:>6} purged in {taken_us:>10.1} us");
    }
}

fn put(store: &mut Store, number: usize) {
    let section = number % 100;
    let key = format!("/section-{section}/page-{number}");
    let host = format!("site-{}.test", number % 3);
    let key = Key::new(false, host.as_bytes(), key.as_bytes());
    let tags = format!("post-{number}, section-{section}, all");
    let fields = Fields(&[(b"Cache-Control", b"max-age=3600"), (b"Cache-Tag", tags.as_bytes())]);
    let (policy, cookies) = (Policy::STANDARD, CookieRules::default());
    let request = Request { method: Method::Get, path: b"/", fields: Fields(&[]) };
    let facts = RequestFacts::read(request, &BypassRules::default(), &policy).expect("a plain GET");
    let exchanged = ExchangeTimes { request_s: NOW_S, response_s: NOW_S };
    let response = Response { status: 200, fields };
    let storable = storable(&policy, &cookies, &facts, Fields(&[]), response, exchanged);
    let storable = storable.expect("it says how long it lives");
    let tags = tags_of(fields);
    let body = vec![b'x'; 64].into();
    let entry = Entry::new(key, 200, fields, body, storable, tags);
    store.insert(entry, store.purge_epoch(), NOW_S).expect("there is room");
}
