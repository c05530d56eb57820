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
