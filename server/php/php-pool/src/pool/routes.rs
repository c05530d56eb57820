//! The memory of an app's requests, by route.
//!
//! The pool records each finished request, and the growth of each worker between measurements. A route
//! is a script in classic mode and the first two segments of the path in worker mode. Invariant: the
//! table stays small however many paths are requested; further routes count as "other".

use outboard_admin_api::status::Route;
use outboard_ring::request::{Field, peek};
use std::collections::HashMap;

/// Routes in addition to "other".
const MAX_ROUTES: usize = 64;
const OTHER: usize = 0;

#[derive(Debug, Default)]
struct Row {
    requests: u64,
    sum_peak_bytes: u64,
    max_peak_bytes: u64,
    growth_bytes: i64,
}

/// Requests of one worker by route, since its memory was last measured.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts(Vec<(usize, u32)>);

impl RequestCounts {
    fn count(&mut self, route: usize) {
        match self.0.iter_mut().find(|(other, _)| *other == route) {
            Some((_, count)) => *count += 1,
            None => self.0.push((route, 1)),
        }
    }
}

/// The table of one pool.
#[derive(Debug)]
pub(crate) struct Routes {
    by_path: bool,
    numbers: HashMap<Box<[u8]>, usize>,
    labels: Vec<Box<[u8]>>,
    rows: Vec<Row>,
    /// The route of the last request, which often repeats.
    last: usize,
}

impl Routes {
    /// A table by path, or else by script.
    pub(crate) fn new(by_path: bool) -> Self {
        let labels = vec![b"other"[..].into()];
        Self { by_path, numbers: HashMap::new(), labels, rows: vec![Row::default()], last: OTHER }
    }

    /// The number of the route of a target, of a script that handles them all.
    pub(crate) fn number_of_target(&mut self, target: &[u8]) -> usize {
        let label = path_prefix(target);
        if *self.labels[self.last] != *label || self.last == OTHER {
            self.last = self.look_up(label);
        }
        self.last
    }

    /// The number of the route of a request frame.
    pub(crate) fn number(&mut self, frame: &[u8]) -> usize {
        let label = match self.by_path {
            true => peek(frame, Field::Uri).map(path_prefix),
            false => peek(frame, Field::ScriptName),
        };
        let Some(label) = label else { return OTHER };
        if *self.labels[self.last] != *label || self.last == OTHER {
            self.last = self.look_up(label);
        }
        self.last
    }

    fn look_up(&mut self, label: &[u8]) -> usize {
        if let Some(number) = self.numbers.get(label) {
            return *number;
        }
        if self.labels.len() > MAX_ROUTES {
            return OTHER;
        }
        let number = self.labels.len();
        self.labels.push(label.into());
        self.rows.push(Row::default());
        self.numbers.insert(label.into(), number);
        debug_assert!(self.rows.len() == self.labels.len() && number == self.numbers.len());
        debug_assert!(self.numbers.len() <= MAX_ROUTES, "{number}");
        number
    }

    /// Records a request that PHP has finished.
    pub(crate) fn record_request(
        &mut self,
        route: usize,
        peak_bytes: u64,
        counts: &mut RequestCounts,
    ) {
        let row = &mut self.rows[route];
        row.requests += 1;
        row.sum_peak_bytes = row.sum_peak_bytes.saturating_add(peak_bytes);
        row.max_peak_bytes = row.max_peak_bytes.max(peak_bytes);
        counts.count(route);
    }

    /// Records by how much a worker has grown while it processed the counted requests.
    pub(crate) fn record_growth(&mut self, bytes: i64, counts: &mut RequestCounts) {
        let total: i128 = counts.0.iter().map(|(_, count)| i128::from(*count)).sum();
        for (route, count) in counts.0.drain(..) {
            // The part is no larger than `bytes`.
            self.rows[route].growth_bytes += (i128::from(bytes) * i128::from(count) / total) as i64;
        }
    }

    /// The routes with requests, those with the most memory first.
    pub(crate) fn status(&self) -> Vec<Route> {
        let rows = self.labels.iter().zip(&self.rows).filter(|(_, row)| row.requests > 0);
        let mut all: Vec<Route> = rows
            .map(|(label, row)| Route {
                route: String::from_utf8_lossy(label).into_owned(),
                requests: row.requests,
                mean_peak_bytes: row.sum_peak_bytes / row.requests,
                max_peak_bytes: row.max_peak_bytes,
                growth_bytes: row.growth_bytes,
            })
            .collect();
        all.sort_by_key(|route| std::cmp::Reverse((route.max_peak_bytes, route.requests)));
        all
    }
}

/// The first two segments of a target's path.
fn path_prefix(target: &[u8]) -> &[u8] {
    // An absolute target has its path after scheme and host.
    let path = match memchr::memmem::find(target, b"://") {
        Some(at) if !target.starts_with(b"/") => {
            let host = &target[at + 3..];
            memchr::memchr(b'/', host).map_or(&b"/"[..], |slash| &host[slash..])
        }
        _ => target,
    };
    let end = memchr::memchr2(b'?', b'#', path).unwrap_or(path.len());
    let third = memchr::memchr_iter(b'/', &path[..end]).nth(2).unwrap_or(end);
    &path[..third]
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_ring::request::{FIELD_COUNT, Fixed, RequestParts, encode};

    fn frame(uri: &str, script: &str) -> Vec<u8> {
        let mut fields: [&[u8]; FIELD_COUNT] = [b""; FIELD_COUNT];
        fields[Field::Method as usize] = b"GET";
        fields[Field::Uri as usize] = uri.as_bytes();
        fields[Field::ScriptName as usize] = script.as_bytes();
        let none = std::iter::empty;
        let parts =
            RequestParts { fixed: Fixed::default(), fields, headers: none(), params: none() };
        let mut frame = Vec::new();
        encode(parts, &mut frame);
        frame
    }

    #[test]
    fn a_route_is_a_script_or_the_beginning_of_a_path() {
        for (target, label) in [
            ("/", "/"),
            ("/a?b/c/d", "/a"),
            ("/a/b/c/d?e", "/a/b"),
            ("/a/b/", "/a/b"),
            ("http://host/a/b/c", "/a/b"),
            ("http://host", "/"),
            ("/go?to=http://host/x/y", "/go"),
            ("*", "*"),
        ] {
            assert_eq!(path_prefix(target.as_bytes()), label.as_bytes(), "{target}");
        }
        let mut by_script = Routes::new(false);
        let one = by_script.number(&frame("/x/1", "/index.php"));
        assert_eq!(by_script.number(&frame("/y", "/index.php")), one);
        assert_ne!(by_script.number(&frame("/y", "/other.php")), one);
    }

    #[test]
    fn paths_beyond_the_table_count_as_other() {
        let (mut routes, mut counts) = (Routes::new(true), RequestCounts::default());
        for number in 0..200 {
            let route = routes.number(&frame(&format!("/page/{number}"), ""));
            routes.record_request(route, number, &mut counts);
        }
        let status = routes.status();
        assert_eq!(status.len(), MAX_ROUTES + 1);
        let other = status.iter().find(|route| route.route == "other").unwrap();
        assert_eq!((other.requests, other.max_peak_bytes), (200 - 64, 199));
    }

    #[test]
    fn growth_is_distributed_by_requests() {
        let (mut routes, mut counts) = (Routes::new(true), RequestCounts::default());
        let (lean, fat) = (routes.number(&frame("/lean", "")), routes.number(&frame("/fat", "")));
        for route in [lean, fat, fat, fat] {
            routes.record_request(route, 10, &mut counts);
        }
        routes.record_growth(400, &mut counts);
        routes.record_growth(1 << 40, &mut counts);
        let growth = |label: &str| {
            routes.status().iter().find(|route| route.route == label).unwrap().growth_bytes
        };
        assert_eq!((growth("/lean"), growth("/fat")), (100, 300));
    }
}
