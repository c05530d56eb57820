//! What unit tests share: entries, directories, waiting for an event.

use crate::cookies::CookieRules;
use crate::entry::Entry;
use crate::freshness::Policy;
use crate::key::Key;
use crate::message::{ExchangeTimes, Field, Fields, Request, Response};
use crate::purge::tags_of;
use crate::request_facts::{BypassRules, RequestFacts};
use crate::storage::storable;
use outboard_log::{ErrorLog, Level, Opener, Sink, Target};
use outboard_reactor::{now_ms, sleep};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The key of a path.
pub(crate) fn key(path: &str) -> Key {
    Key::new(false, b"a.test", path.as_bytes())
}

/// An entry of 2000 bytes that was received at `received_s`, is fresh for 1000 seconds and has its path
/// as its tag.
pub(crate) fn entry(path: &str, received_s: u64) -> Entry {
    entry_with(path, received_s, &[])
}

/// The same with further response fields.
pub(crate) fn entry_with(path: &str, received_s: u64, more: &[Field<'_>]) -> Entry {
    let own = [(&b"Cache-Control"[..], &b"max-age=1000"[..]), (b"Cache-Tag", path.as_bytes())];
    let fields: Vec<Field<'_>> = own.iter().chain(more).copied().collect();
    let (policy, rules, none) = (Policy::STANDARD, CookieRules::default(), Fields(&[]));
    let request = Request { method: outboard_http1::Method::Get, path: b"/", fields: none };
    let facts = RequestFacts::read(request, &BypassRules::default(), &policy)
        .expect("a plain GET may be cached");
    let response = Response { status: 200, fields: Fields(&fields) };
    let times = ExchangeTimes { request_s: received_s, response_s: received_s };
    let storable = storable(&policy, &rules, &facts, none, response, times)
        .expect("the response has a lifetime");
    let tags = tags_of(Fields(&fields));
    Entry::new(key(path), 200, Fields(&fields), vec![b'x'; 2000].into(), storable, tags)
}

/// Waits until `condition` holds.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let until_ms = now_ms() + 30_000;
    while !condition() {
        assert!(now_ms() < until_ms, "the condition does not come true");
        sleep(1).await;
    }
}

/// A log that discards its lines.
pub(crate) fn error_log() -> Rc<ErrorLog> {
    let sink = Sink::open(Target::Off, Opener::default()).expect("it opens nothing");
    Rc::new(ErrorLog::new(Rc::new(sink), Level::Error))
}

/// The path of a temporary directory that is removed with the value.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outboard-page-cache-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
