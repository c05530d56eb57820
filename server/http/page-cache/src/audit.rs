//! The audit: whether stored pages are the same for all visitors that get them.
//!
//! Some hits are remembered with their request. Such a request is sent to the origin again, as it was
//! and without all fields that the stored page does not vary by; if the two pages differ for certain,
//! the cookie or header that causes the difference is searched for. With `audit` configured this
//! happens automatically, and the page is then no longer cached; on demand it results in a report.
//!
//! Each shard samples its own hits, whose requests only it can repeat; what it removes is removed for
//! all. Invariant: only requests are repeated that the cache would have sent by itself.

mod removed_paths;

use crate::cookies::{name_of, pairs_of};
use crate::difference::Difference;
use crate::entry::Entry;
use crate::known_fields::{OVERRIDES, RARE_IMPLICIT_VARY};
use crate::storage::Audience;
use outboard_admin_api::cache::{AuditStats, Finding};
use outboard_reactor::now_ms;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use removed_paths::RemovedHere;
pub(crate) use removed_paths::RemovedPaths;

/// Hits that are remembered for an audit on demand.
const SAMPLES_MAX: usize = 64;
/// After the first hits, one is remembered in each such interval: that costs more than the hit itself.
const SAMPLE_INTERVAL_MS: u64 = 1_000;
/// The value of cookies in an altered request.
const ALTERED: &[u8] = b"outboard-audit";
/// Fields that every request needs.
const REQUIRED: [&str; 3] = ["host", "x-forwarded-for", "via"];

/// The fields of a request, owned.
pub type OwnFields = Vec<(Vec<u8>, Vec<u8>)>;

/// A request that the origin can get again.
pub trait Replay: Debug {
    /// Its path below the app's prefix.
    fn path(&self) -> &[u8];
    /// Its fields.
    fn fields(&self) -> OwnFields;
    /// Sends it with other fields; `None` if there is no complete response.
    fn send(&self, fields: &OwnFields) -> Pin<Box<dyn Future<Output = Option<Replayed>>>>;
}

/// The response to a repeated request.
#[derive(Debug)]
pub struct Replayed {
    /// Its status.
    pub status: u16,
    /// Why it is not for all visitors, if it says so.
    pub personal_because: Option<&'static str>,
    /// Its body.
    pub body: Vec<u8>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Audit {
    app: Box<str>,
    /// The share of hits that are examined automatically, in millionths.
    share_ppm: u32,
    samples: RefCell<VecDeque<Sample>>,
    hits: Cell<u64>,
    next_sample_ms: Cell<u64>,
    due_ppm: Cell<u64>,
    is_running: Cell<bool>,
    removed: RemovedHere,
}

/// A hit whose request can be repeated.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    replay: Rc<dyn Replay>,
    url: Vec<u8>,
    /// The fields that the stored page varies by.
    varies_by: Vec<String>,
}

impl Audit {
    /// A shard's audit that examines this share of its hits automatically.
    pub(crate) fn new(app: &str, share_ppm: u32, removed: &Arc<RemovedPaths>) -> Self {
        Self { app: app.into(), share_ppm, removed: RemovedHere::of(removed), ..Self::default() }
    }

    /// Whether an audit has removed the pages of this path.
    pub fn has_removed(&self, path: &[u8]) -> bool {
        self.removed.has(path)
    }

    /// For `outboard cache stats`.
    pub(crate) fn stats(&self) -> AuditStats {
        let all = self.removed.all();
        let paths = all.paths();
        let removed = paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        AuditStats { examined: all.examined.load(Ordering::Relaxed), removed }
    }

    /// Counts a hit: whether it is to be remembered, and whether it is to be examined.
    fn choose(&self, now_ms: u64) -> (bool, bool) {
        let hits = self.hits.get();
        self.hits.set(hits + 1);
        let due_ppm = self.due_ppm.get() + u64::from(self.share_ppm);
        self.due_ppm.set(due_ppm % 1_000_000);
        let is_sampled = hits < SAMPLES_MAX as u64 || now_ms >= self.next_sample_ms.get();
        if is_sampled {
            self.next_sample_ms.set(now_ms.saturating_add(SAMPLE_INTERVAL_MS));
        }
        (is_sampled, due_ppm >= 1_000_000)
    }

    /// Remembers a hit if it is its turn; returns the one to [`Self::run`] now.
    pub(crate) fn sample(
        &self,
        entry: &Entry,
        prepare: impl FnOnce() -> Option<Rc<dyn Replay>>,
    ) -> Option<Sample> {
        let (is_sampled, is_due) = self.choose(now_ms());
        if !is_sampled && !is_due {
            return None;
        }
        let url = entry.key().bytes().to_vec();
        let sample = Sample { replay: prepare()?, url, varies_by: varies_by(entry) };
        if is_sampled {
            let mut samples = self.samples.borrow_mut();
            samples.retain(|known| known.url != sample.url);
            if samples.len() == SAMPLES_MAX {
                samples.pop_front();
            }
            samples.push_back(sample.clone());
        }
        (is_due && !self.is_running.replace(true)).then_some(sample)
    }

    /// Examines a hit automatically, one at a time; the path of a finding counts as removed.
    pub(crate) async fn run(&self, sample: &Sample) -> Option<Finding> {
        let finding = self.examine(sample).await;
        if finding.is_some() {
            self.removed.all().add(sample.replay.path());
        }
        self.is_running.set(false);
        finding
    }

    /// Examines remembered hits, the latest first: how many, and the findings.
    pub async fn examine_samples(&self, count: Option<usize>) -> (u64, Vec<Finding>) {
        let samples: Vec<Sample> = self.samples.borrow().iter().rev().cloned().collect();
        let (mut examined, mut findings) = (0, Vec::new());
        for sample in samples.iter().take(count.unwrap_or(SAMPLES_MAX)) {
            examined += 1;
            findings.extend(self.examine(sample).await);
        }
        (examined, findings)
    }

    /// Renders the page of a hit again, as it was requested and without all fields that it must not
    /// depend on.
    async fn examine(&self, sample: &Sample) -> Option<Finding> {
        self.removed.all().examined.fetch_add(1, Ordering::Relaxed);
        let (by, excerpt) = sample.examine().await?;
        let url = String::from_utf8_lossy(&sample.url).into_owned();
        Some(Finding { app: self.app.to_string(), url, by, excerpt })
    }
}

impl Sample {
    /// The URL without its query.
    pub(crate) fn url_path(&self) -> &[u8] {
        self.url.split(|&byte| byte == b'?').next().unwrap_or_default()
    }

    /// The cause of a difference, and an excerpt.
    async fn examine(&self) -> Option<(String, String)> {
        let fields = self.replay.fields();
        let plain: OwnFields =
            fields.iter().filter(|(name, _)| self.may_matter(name)).cloned().collect();
        let altered: OwnFields = fields.iter().map(with_altered_cookies).collect();
        let has_cookies = fields
            .iter()
            .any(|(name, value)| is_cookie_field(name) && pairs_of(value).next().is_some());
        for personal in [Some(&fields), has_cookies.then_some(&altered)].into_iter().flatten() {
            let own = self.replay.send(personal).await?;
            let other = self.replay.send(&plain).await?;
            let own_again = self.replay.send(personal).await?;
            let other_again = self.replay.send(&plain).await?;
            if let Some(why) = own.personal_because {
                return Some((why.to_owned(), String::new()));
            }
            if own.status != other.status {
                let excerpt = format!("status {} or {}", own.status, other.status);
                return Some(("something in the request".to_owned(), excerpt));
            }
            let (own, other) =
                ([&own.body[..], &own_again.body], [&other.body[..], &other_again.body]);
            if let Some(difference) = Difference::between(own, other) {
                return Some((self.cause(personal, &difference).await, difference.excerpt()));
            }
        }
        None
    }

    /// The cookie or header without which the difference disappears.
    async fn cause(&self, fields: &OwnFields, difference: &Difference<'_>) -> String {
        for (is_cookie, suspect) in self.suspects(fields) {
            let without = |(name, value): &(Vec<u8>, Vec<u8>)| {
                let value = match is_cookie && is_cookie_field(name) {
                    true => Some(without_cookie(value, &suspect)).filter(|left| !left.is_empty()),
                    false => {
                        let is_suspect = !is_cookie && name.eq_ignore_ascii_case(&suspect);
                        (!is_suspect).then(|| value.clone())
                    }
                };
                Some((name.clone(), value?))
            };
            let without: OwnFields = fields.iter().filter_map(without).collect();
            let Some(replayed) = self.replay.send(&without).await else { continue };
            if !difference.is_in(&replayed.body) {
                let kind = if is_cookie { "cookie" } else { "header" };
                return format!("the {kind} {}", String::from_utf8_lossy(&suspect));
            }
        }
        "several cookies or headers together".to_owned()
    }

    /// Whether the page may depend on a field.
    fn may_matter(&self, name: &[u8]) -> bool {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        REQUIRED.iter().chain(&OVERRIDES).any(|known| is(known))
            || self.varies_by.iter().any(|known| is(known))
    }

    /// The names of cookies (true) and fields that the page must not depend on.
    fn suspects(&self, fields: &OwnFields) -> Vec<(bool, Vec<u8>)> {
        let mut suspects = Vec::new();
        for (name, value) in fields {
            if is_cookie_field(name) {
                suspects.extend(pairs_of(value).map(|cookie| (true, name_of(cookie).to_vec())));
            } else if !self.may_matter(name) {
                suspects.push((false, name.to_ascii_lowercase()));
            }
        }
        suspects
    }
}

/// The fields that distinguish stored pages, in addition to [`OVERRIDES`].
fn varies_by(entry: &Entry) -> Vec<String> {
    let implicit: &[&str] = match entry.audience() {
        Audience::Anonymous => &RARE_IMPLICIT_VARY,
        _ => &[],
    };
    entry.variant().names().chain(implicit.iter().copied()).map(str::to_owned).collect()
}

fn is_cookie_field(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"cookie")
}

/// A field; cookies get a value without meaning.
fn with_altered_cookies((name, value): &(Vec<u8>, Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    let altered = match is_cookie_field(name) {
        true => {
            let altered = pairs_of(value).map(|cookie| [name_of(cookie), b"=", ALTERED].concat());
            altered.collect::<Vec<_>>().join(&b"; "[..])
        }
        false => value.clone(),
    };
    (name.clone(), altered)
}

fn without_cookie(value: &[u8], name: &[u8]) -> Vec<u8> {
    pairs_of(value).filter(|cookie| name_of(cookie) != name).collect::<Vec<_>>().join(&b"; "[..])
}

#[cfg(test)]
mod tests;
