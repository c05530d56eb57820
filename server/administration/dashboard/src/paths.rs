//! [`Paths`]: the most requested paths, counted while a dashboard is open.
//!
//! One per thread, to which each request is added while it is watched. Invariants: an unwatched one costs a
//! comparison; there are at most [`PATHS_MAX`] counters per period, of at most [`PATH_MAX_BYTES`] each. Of
//! more paths the least requested ones are replaced (Metwally et al., Space-Saving): the counts of others are
//! exact.

use outboard_admin_api::dashboard::Path;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// The time for which paths are counted after a request of the dashboard.
const WATCHED_MS: u64 = 30_000;
/// The time after which counting starts again; the previous period is shown too.
const PERIOD_MS: u64 = 60_000;
const PATHS_MAX: usize = 256;
const PATH_MAX_BYTES: usize = 256;
const SHOWN: usize = 12;

type Counts = HashMap<Box<[u8]>, Path>;

/// What is counted of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    /// Its duration.
    pub us: u64,
    /// Whether the page cache has responded.
    pub is_hit: bool,
    /// Whether it has status 500 or higher, or no response.
    pub has_failed: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Paths {
    watched_until_ms: Cell<u64>,
    periods: RefCell<Periods>,
}

#[derive(Debug, Default)]
struct Periods {
    now: Counts,
    before: Counts,
    since_ms: u64,
}

impl Paths {
    /// Whether requests are counted.
    pub fn is_watched(&self, now_ms: u64) -> bool {
        now_ms < self.watched_until_ms.get()
    }

    /// Counts a request; only while [`Paths::is_watched`]. `path` has no query.
    pub fn record(&self, app: &str, path: &[u8], request: Counted) {
        self.change(app, path, |count| {
            count.requests += 1;
            count.hits += u64::from(request.is_hit);
            count.failed += u64::from(request.has_failed);
            count.total_us += request.us;
        });
    }

    /// Adds the time that PHP has worked for a request, whose end is recorded as well.
    pub fn record_php(&self, app: &str, path: &[u8], us: u64) {
        self.change(app, path, |count| count.php_us += us);
    }

    fn change(&self, app: &str, path: &[u8], change: impl FnMut(&mut Path)) {
        let path = &path[..path.len().min(PATH_MAX_BYTES)];
        let counts = &mut self.periods.borrow_mut().now;
        let key = [app.as_bytes(), b"\0", path].concat();
        if !counts.contains_key(&key[..]) {
            let requests = if counts.len() < PATHS_MAX { 0 } else { remove_least(counts) };
            let (app, path) = (app.to_owned(), String::from_utf8_lossy(path).into_owned());
            counts.insert(key.as_slice().into(), Path { app, path, requests, ..Path::default() });
        }
        counts.get_mut(&key[..]).into_iter().for_each(change);
    }

    /// A dashboard is open: counts requests from now on, and returns the most requested paths so far.
    pub fn watch(&self, now_ms: u64) -> Vec<Path> {
        let mut periods = self.periods.borrow_mut();
        if !self.is_watched(now_ms) {
            *periods = Periods { since_ms: now_ms, ..Periods::default() };
        } else if now_ms >= periods.since_ms + PERIOD_MS {
            periods.before = std::mem::take(&mut periods.now);
            periods.since_ms = now_ms;
        }
        self.watched_until_ms.set(now_ms + WATCHED_MS);
        let both = periods.before.values().chain(periods.now.values());
        Self::sum(both.cloned())
    }

    /// The most requested of paths that were counted separately.
    pub fn sum(paths: impl IntoIterator<Item = Path>) -> Vec<Path> {
        let mut sums: HashMap<(String, String), Path> = HashMap::new();
        for path in paths {
            let sum = sums.entry((path.app.clone(), path.path.clone())).or_insert_with(|| Path {
                app: path.app,
                path: path.path,
                ..Path::default()
            });
            sum.requests += path.requests;
            sum.hits += path.hits;
            sum.failed += path.failed;
            sum.total_us += path.total_us;
            sum.php_us += path.php_us;
        }
        // Each order that the page offers has its own first ones.
        let mut sums: Vec<Path> = sums.into_values().collect();
        let mut chosen = Vec::new();
        let orders: [fn(&Path) -> u64; 3] =
            [|path| path.requests, |path| path.php_us, |path| path.total_us / path.requests.max(1)];
        for order in orders {
            sums.sort_by(|a, b| order(b).cmp(&order(a)).then_with(|| a.path.cmp(&b.path)));
            chosen.extend(sums.drain(..sums.len().min(SHOWN)));
        }
        chosen.sort_by(|a, b| b.requests.cmp(&a.requests).then_with(|| a.path.cmp(&b.path)));
        chosen
    }
}

/// Removes the path with the fewest requests, and returns their number: the new one may have had as many.
fn remove_least(counts: &mut Counts) -> u64 {
    let least = counts.iter().min_by_key(|(_, path)| path.requests);
    let Some((key, requests)) = least.map(|(key, path)| (key.clone(), path.requests)) else {
        return 0;
    };
    counts.remove(&key);
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(us: u64, is_hit: bool, has_failed: bool) -> Counted {
        Counted { us, is_hit, has_failed }
    }

    #[test]
    fn paths_are_counted_while_they_are_watched() {
        let paths = Paths::default();
        assert!(!paths.is_watched(0));
        assert!(paths.watch(1_000).is_empty());
        assert!(paths.is_watched(1_000) && !paths.is_watched(1_000 + WATCHED_MS));
        paths.record("site", b"/a", counted(10, true, false));
        paths.record("site", b"/a", counted(30, false, true));
        paths.record("other", b"/a", counted(5, false, false));
        paths.record_php("site", b"/a", 7);
        let found = paths.watch(2_000);
        assert_eq!((found[0].app.as_str(), found[0].requests, found[0].total_us), ("site", 2, 40));
        assert_eq!((found[0].hits, found[0].failed, found[1].requests), (1, 1, 1));
        assert_eq!((found[0].php_us, found[1].php_us), (7, 0));
        assert!(paths.watch(2_000 + WATCHED_MS).is_empty(), "it was not watched in between");
    }

    #[test]
    fn each_order_has_its_first_paths() {
        let path = |name: String, requests, php_us, total_us| Path {
            app: "a".to_owned(),
            path: name,
            requests,
            php_us,
            total_us,
            ..Path::default()
        };
        let many = (0..100).map(|n| path(format!("/{n}"), 1_000 + n, 10, 1_000));
        let rare = [path("/slow".into(), 1, 5, 9_000_000), path("/heavy".into(), 2, 8_000_000, 20)];
        let sums = Paths::sum(many.chain(rare));
        assert_eq!((&sums[0].path[..], sums.len()), ("/99", 3 * SHOWN));
        assert!(["/slow", "/heavy"].iter().all(|name| sums.iter().any(|one| one.path == *name)));
    }

    #[test]
    fn two_periods_are_shown() {
        let paths = Paths::default();
        paths.watch(0);
        paths.record("site", b"/a", counted(1, false, false));
        let requests = |now_ms| paths.watch(now_ms).first().map_or(0, |path| path.requests);
        let counts: Vec<_> = (0..7).map(|step| requests(step * 20_000)).collect();
        assert_eq!(counts, [1, 1, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn many_paths_take_bounded_memory_and_frequent_ones_remain() {
        let paths = Paths::default();
        paths.watch(0);
        for number in 0..20_000u32 {
            paths.record("site", format!("/{number}").as_bytes(), counted(1, false, false));
            paths.record("site", b"/frequent", counted(1, false, false));
        }
        paths.record("site", &[b'x'; 10_000], counted(1, false, false));
        let found = paths.watch(1);
        assert_eq!((found[0].path.as_str(), found[0].requests), ("/frequent", 20_000));
        assert_eq!((found.len(), paths.periods.borrow().now.len()), (3 * SHOWN, PATHS_MAX));
        let longest = paths.periods.borrow().now.values().map(|path| path.path.len()).max();
        assert_eq!(longest, Some(PATH_MAX_BYTES));
    }
}
