//! The audit: whether pages that are kept are really the same for everybody who gets them.
//!
//! Some hits are remembered with the request that they answered. Such a request is made again, as it
//! was and without anything that the kept page does not vary by; if the two pages differ for certain,
//! the cookie or header that makes the difference is searched for. On demand that is a report; with
//! `audit` configured it goes on by itself, and what is found to be unsafe is taken out of the cache.
//!
//! Invariants: one page is examined at a time; only requests are made again that the cache would have
//! made by itself.

use super::PageCache;
use crate::app::App;
use crate::gateway::Gateway;
use crate::origin::{Origin, Prepared};
use crate::php_head::PhpHead;
use crate::request::RequestContext;
use outboard_admin_api::cache::{Audit as AuditRequest, AuditStats, Audited, Finding};
use outboard_http_server::Connection;
use outboard_log::{Event, Level};
use outboard_page_cache::{
    Audience, Difference, Entry, Field, Fields, OVERRIDES, Purge, RARE_IMPLICIT_VARY, Response,
    Selector, may_be_stored,
};
use outboard_reactor::spawn;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Hits that are remembered for an audit on demand.
const SAMPLES_MAX: usize = 64;
/// One of so many hits is remembered once there are enough.
const SAMPLED: u64 = 61;
/// Paths that are taken out at the most; one more turns the app's cache off.
const UNSAFE_MAX: usize = 1000;
/// What cookies say in a request that is made up.
const ALTERED: &[u8] = b"outboard-audit";
/// What a request is nothing without.
const NEEDED: [&str; 3] = ["host", "x-forwarded-for", "via"];

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Audit {
    /// How many of a million hits are examined by themselves.
    share_ppm: u32,
    samples: RefCell<VecDeque<Sample>>,
    hits: Cell<u64>,
    due_ppm: Cell<u64>,
    works: Cell<bool>,
    examined: Cell<u64>,
    unsafe_paths: RefCell<Vec<Vec<u8>>>,
}

/// A hit, as it can be asked again.
#[derive(Debug, Clone)]
struct Sample {
    request_id: u64,
    /// Below the app's prefix.
    path: Vec<u8>,
    raw_path: Vec<u8>,
    url: Vec<u8>,
    prepared: Prepared,
    /// What the kept page varies by.
    varies_by: Vec<String>,
}

type Made = (PhpHead, Vec<u8>);

impl Audit {
    /// One that examines so many of a million hits by itself.
    pub(super) fn of(share_ppm: u32) -> Self {
        Self { share_ppm, ..Self::default() }
    }

    /// Whether an audit found this path to be unsafe.
    pub(super) fn has_taken_out(&self, path: &[u8]) -> bool {
        let paths = self.unsafe_paths.borrow();
        paths.len() > UNSAFE_MAX || paths.iter().any(|unsafe_path| unsafe_path == path)
    }

    pub(super) fn stats(&self) -> AuditStats {
        let paths = self.unsafe_paths.borrow();
        let removed = paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        AuditStats { examined: self.examined.get(), removed }
    }

    /// What the next hit is for.
    fn choose(&self) -> (bool, bool) {
        let hits = self.hits.get();
        self.hits.set(hits + 1);
        let due_ppm = self.due_ppm.get() + u64::from(self.share_ppm);
        self.due_ppm.set(due_ppm % 1_000_000);
        let is_wanted = hits.is_multiple_of(SAMPLED) || self.samples.borrow().len() < SAMPLES_MAX;
        (is_wanted, due_ppm >= 1_000_000)
    }

    fn remember(&self, sample: &Sample) {
        let mut samples = self.samples.borrow_mut();
        samples.retain(|known| known.url != sample.url);
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample.clone());
    }
}

impl PageCache {
    /// Remembers a hit, or has it examined, if it is its turn.
    pub(super) fn note_hit(
        self: &Rc<Self>,
        connection: &mut Connection,
        ctx: &RequestContext,
        app: &Rc<App>,
        origin: &Origin,
        entry: &Entry,
    ) {
        let (is_wanted, is_due) = self.audit.choose();
        if !is_wanted && !is_due {
            return;
        }
        let wish = self.wish(None);
        let Some(prepared) = origin.prepare(connection, ctx, app, &wish) else { return };
        let raw_path = connection.buffers().path.clone();
        let sample = Sample {
            request_id: ctx.request_id,
            path: app.below_prefix(&raw_path).to_vec(),
            raw_path,
            url: entry.key().bytes().to_vec(),
            prepared,
            varies_by: varies_by(entry),
        };
        if is_wanted {
            self.audit.remember(&sample);
        }
        if is_due && !self.audit.works.replace(true) {
            let (cache, app) = (self.clone(), app.clone());
            spawn(async move {
                if let Some(finding) = cache.examine(&app, &sample).await {
                    cache.take_out(&app, &sample, &finding);
                }
                cache.audit.works.set(false);
            });
        }
    }

    fn take_out(&self, app: &App, sample: &Sample, finding: &Finding) {
        self.audit.unsafe_paths.borrow_mut().push(sample.path.clone());
        let path = path_of(&sample.url);
        self.purge(Selector::prefix(path), Purge::Hard);
        let text = format!(
            "{} is not the same for everybody and is not kept any more: {} makes a difference at \
             \"{}\"; have it say so (Vary, Cache-Control: private), or see page_cache.login_cookies",
            finding.url, finding.by, finding.excerpt
        );
        let event = Event { app: Some(&app.config.name), text: &text, ..Event::default() };
        app.logs.error.write(Level::Error, event);
    }

    /// Makes the page of a hit again, as it was asked for and without all that it must not depend on.
    async fn examine(&self, app: &Rc<App>, sample: &Sample) -> Option<Finding> {
        self.audit.examined.set(self.audit.examined.get() + 1);
        let finding = |by: String, excerpt: String| {
            let url = String::from_utf8_lossy(&sample.url).into_owned();
            Some(Finding { app: app.config.name.clone(), url, by, excerpt })
        };
        let plain = sample.prepared.changed(|name, value| sample.kept(name).then(|| value.into()));
        let altered = sample.prepared.changed(|name, value| {
            Some(if name.eq_ignore_ascii_case(b"cookie") {
                with_values(value)
            } else {
                value.into()
            })
        });
        let has_cookies = sample.suspects().iter().any(|(is_cookie, _)| *is_cookie);
        let asked = [&sample.prepared, &altered];
        for asked in &asked[..if has_cookies { 2 } else { 1 }] {
            let own = self.make(app, sample, asked).await?;
            let anybodys = self.make(app, sample, &plain).await?;
            let own_again = self.make(app, sample, asked).await?;
            let anybodys_again = self.make(app, sample, &plain).await?;
            if own.0.used_session || !is_for_all(&own.0) {
                let by = if own.0.used_session { "a session" } else { "what it says of itself" };
                return finding(by.to_owned(), String::new());
            }
            if own.0.status != anybodys.0.status {
                let excerpt = format!("status {} or {}", own.0.status, anybodys.0.status);
                return finding("something in the request".to_owned(), excerpt);
            }
            let found =
                Difference::between([&own.1[..], &own_again.1], [&anybodys.1, &anybodys_again.1]);
            if let Some(difference) = found {
                let by = self.culprit(app, sample, asked, &difference).await;
                return finding(by, difference.excerpt());
            }
        }
        None
    }

    /// The cookie or header without which the page is as anybody's.
    async fn culprit(
        &self,
        app: &Rc<App>,
        sample: &Sample,
        asked: &Prepared,
        difference: &Difference<'_>,
    ) -> String {
        for (is_cookie, name) in sample.suspects() {
            let without = asked.changed(|header, value| {
                let is_it = !is_cookie && header.eq_ignore_ascii_case(&name);
                match is_cookie && header.eq_ignore_ascii_case(b"cookie") {
                    true => Some(without_cookie(value, &name)).filter(|left| !left.is_empty()),
                    false => (!is_it).then(|| value.into()),
                }
            });
            let Some((_, body)) = self.make(app, sample, &without).await else { continue };
            if !difference.is_in(&body) {
                let kind = if is_cookie { "cookie" } else { "header" };
                return format!("the {kind} {}", String::from_utf8_lossy(&name));
            }
        }
        "several cookies or headers together".to_owned()
    }

    async fn make(&self, app: &Rc<App>, sample: &Sample, asked: &Prepared) -> Option<Made> {
        let most_bytes = self.policy.body_max_bytes;
        let prepared = asked.clone();
        prepared.make(app, sample.request_id, &sample.raw_path, most_bytes).await.ok().flatten()
    }
}

impl Sample {
    /// Whether a field may make a difference.
    fn kept(&self, name: &[u8]) -> bool {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        NEEDED.iter().chain(&OVERRIDES).any(|known| is(known))
            || self.varies_by.iter().any(|known| is(known))
    }

    /// Cookies, and fields that must make none.
    fn suspects(&self) -> Vec<(bool, Vec<u8>)> {
        let mut suspects = Vec::new();
        self.prepared.each_field(|name, value| {
            if name.eq_ignore_ascii_case(b"cookie") {
                let names = cookies(value).map(|cookie| (true, cookie_name(cookie).to_vec()));
                suspects.extend(names);
            } else if !self.kept(name) {
                suspects.push((false, name.to_ascii_lowercase()));
            }
        });
        suspects
    }
}

/// The fields that a page is told apart by beside [`OVERRIDES`].
fn varies_by(entry: &Entry) -> Vec<String> {
    let marks: &[&str] = match entry.audience() {
        Audience::Anonymous => &RARE_IMPLICIT_VARY,
        _ => &[],
    };
    entry.variant().names().chain(marks.iter().copied()).map(str::to_owned).collect()
}

/// A URL without its query.
fn path_of(url: &[u8]) -> &[u8] {
    url.split(|&byte| byte == b'?').next().unwrap_or_default()
}

fn is_for_all(head: &PhpHead) -> bool {
    let fields: Vec<Field<'_>> = head.headers.lines().collect();
    may_be_stored(Response { status: head.status, fields: Fields(&fields) })
}

fn cookies(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b';').map(<[u8]>::trim_ascii).filter(|cookie| !cookie.is_empty())
}

fn cookie_name(cookie: &[u8]) -> &[u8] {
    cookie.split(|&byte| byte == b'=').next().unwrap_or_default()
}

/// The same cookies with values that mean nothing.
fn with_values(value: &[u8]) -> Vec<u8> {
    let altered = cookies(value).map(|cookie| [cookie_name(cookie), b"=", ALTERED].concat());
    altered.collect::<Vec<_>>().join(&b"; "[..])
}

fn without_cookie(value: &[u8], name: &[u8]) -> Vec<u8> {
    cookies(value).filter(|cookie| cookie_name(cookie) != name).collect::<Vec<_>>().join(&b"; "[..])
}

/// Examines remembered hits, the latest first.
pub(crate) async fn audit(gateway: &Gateway, audit: &AuditRequest) -> Audited {
    let generation = gateway.generation();
    let (mut examined, mut unsafe_pages) = (0, Vec::new());
    for app in &generation.apps {
        let is_selected = audit.app.as_ref().is_none_or(|name| *name == app.config.name);
        let Some(cache) = app.page_cache.as_ref().filter(|_| is_selected) else { continue };
        let samples: Vec<Sample> = cache.audit.samples.borrow().iter().rev().cloned().collect();
        for sample in samples.iter().take(audit.sample.unwrap_or(SAMPLES_MAX)) {
            examined += 1;
            unsafe_pages.extend(cache.examine(app, sample).await);
        }
    }
    Audited { examined, unsafe_pages }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_altered_and_left_out_by_name() {
        let cookies = b"a=1; b=two=2;c";
        assert_eq!(with_values(cookies), b"a=outboard-audit; b=outboard-audit; c=outboard-audit");
        assert_eq!(without_cookie(cookies, b"b"), b"a=1; c");
        assert_eq!(without_cookie(b"a=1", b"a"), b"");
    }

    #[test]
    fn as_many_hits_are_examined_as_configured() {
        let audit = Audit::of(250_000);
        let due = (0..100).filter(|_| audit.choose().1).count();
        assert_eq!(due, 25);
        let off = Audit::of(0);
        assert!((0..100).all(|_| !off.choose().1));
    }
}
