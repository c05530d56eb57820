//! Positions of keys and values in the text.
//!
//! Filled by [`crate::structure`] while it walks the file; used by the later validation steps,
//! which identify a value by its path, such as `app.blog.pool.min`.

use crate::expansion::ValueSource;
use std::collections::BTreeMap;
use std::ops::Range;

/// A byte range in the text.
pub(crate) type Span = Range<usize>;

/// The spans of every key path that was written.
#[derive(Debug, Default)]
pub(crate) struct Places {
    spans: BTreeMap<Vec<String>, Place>,
    /// Where the parts of expanded values come from.
    sources: BTreeMap<Vec<String>, Vec<ValueSource>>,
}

#[derive(Clone, Debug)]
struct Place {
    key: Span,
    value: Span,
}

impl Places {
    pub(crate) fn record(&mut self, path: &[String], key: Span, value: Span) {
        self.spans.insert(path.to_vec(), Place { key, value });
    }

    pub(crate) fn record_sources(&mut self, path: &[String], sources: Vec<ValueSource>) {
        self.sources.insert(path.to_vec(), sources);
    }

    /// Where the parts of the value at exactly this path come from, beside the file.
    pub(crate) fn sources(&self, path: &[&str]) -> &[ValueSource] {
        lookup(&self.sources, path).map_or(&[], Vec::as_slice)
    }

    /// Everything that values were read from, beside the files of the configuration.
    pub(crate) fn all_sources(&self) -> impl Iterator<Item = &ValueSource> {
        self.sources.values().flatten()
    }

    /// Whether exactly this path was written, in the app or in the section it inherits from.
    pub(crate) fn wrote(&self, path: &[&str]) -> bool {
        self.exact(path).is_some()
    }

    /// Position of the value. An inherited value is where it was written; a value that was not
    /// written is at the nearest table around it. `None` if no part of the path was written.
    pub(crate) fn value(&self, path: &[&str]) -> Option<Span> {
        self.nearest(path)
            .map(|(place, exact)| if exact { place.value.clone() } else { place.key.clone() })
    }

    /// Position of the key, found the same way.
    pub(crate) fn key(&self, path: &[&str]) -> Option<Span> {
        self.nearest(path).map(|(place, _)| place.key.clone())
    }

    fn exact(&self, path: &[&str]) -> Option<&Place> {
        lookup(&self.spans, path)
    }

    fn nearest(&self, path: &[&str]) -> Option<(&Place, bool)> {
        (1..=path.len())
            .rev()
            .find_map(|len| self.exact(&path[..len]).map(|place| (place, len == path.len())))
    }
}

/// The entry of the path, or of the section that the app inherits from.
fn lookup<'m, T>(map: &'m BTreeMap<Vec<String>, T>, path: &[&str]) -> Option<&'m T> {
    let find = |path: &[&str]| {
        let owned: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        map.get(&owned)
    };
    find(path).or_else(|| match path {
        ["app", _, inherited @ ..] if !inherited.is_empty() => find(inherited),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    /// Places of `a`, of `pool.max` with its table, and of one app.
    fn places() -> Places {
        let mut places = Places::default();
        for (at, written) in (0..).zip(["pool", "pool.max", "app", "app.site", "app.site.root"]) {
            places.record(&path(written), at * 10..at * 10 + 1, at * 10 + 4..at * 10 + 6);
        }
        places
    }

    #[test]
    fn a_value_that_was_not_written_is_at_the_nearest_table() {
        let places = places();
        for (wanted, value, key) in [
            ("pool.max", Some(14..16), Some(10..11)),
            ("pool.min", Some(0..1), Some(0..1)),
            ("pool.max.deeper", Some(10..11), Some(10..11)),
            ("app.site.root", Some(44..46), Some(40..41)),
            ("app.site.hosts", Some(30..31), Some(30..31)),
            ("app.other", Some(20..21), Some(20..21)),
            ("listen", None, None),
        ] {
            let owned = path(wanted);
            let steps: Vec<&str> = owned.iter().map(String::as_str).collect();
            assert_eq!((places.value(&steps), places.key(&steps)), (value, key), "{wanted}");
        }
    }

    #[test]
    fn an_inherited_value_is_where_it_was_written() {
        let mut places = places();
        assert!(places.wrote(&["app", "site", "pool", "max"]), "the section has it");
        assert_eq!(places.value(&["app", "site", "pool", "max"]), Some(14..16));
        assert!(!places.wrote(&["app", "site", "pool", "min"]));
        places.record(&path("app.site.pool.max"), 90..91, 94..95);
        assert_eq!(places.value(&["app", "site", "pool", "max"]), Some(94..95));
        assert_eq!(places.value(&["app", "other", "pool", "max"]), Some(14..16));
        assert!(!places.wrote(&["app", "site"]) || places.wrote(&["app"]));
        assert!(!places.wrote(&[]));
    }
}
