//! Takes out of a text what may differ between two servers without either being wrong.

use crate::Site;
use regex::Regex;
use std::borrow::Cow;
use std::path::Path;

/// Patterns and what stands in their place; every pattern is there for a stated reason.
#[derive(Clone, Debug, Default)]
pub struct Scrub {
    rules: Vec<(Regex, &'static str)>,
}

impl Scrub {
    /// Takes nothing out.
    pub fn new() -> Scrub {
        Scrub::default()
    }

    /// Takes out moments as HTTP, feeds, databases and Unix write them.
    pub fn times(self) -> Scrub {
        let date = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (?:GMT|[+-]\d{4})";
        self.replace(date, "TIME")
            .replace(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[+-]\d\d:?\d\d|Z)?", "TIME")
            .replace(r"\b1[0-9]{9}(?:[0-9]{3}|[0-9]{6})?(?:\.[0-9]+)?\b", "TIME")
    }

    /// Adds a pattern; the replacement may use its groups.
    pub fn replace(mut self, pattern: &str, replacement: &'static str) -> Scrub {
        let pattern = Regex::new(pattern).unwrap_or_else(|error| panic!("{error}"));
        self.rules.push((pattern, replacement));
        self
    }

    /// The text without them, and without the ports and the root of the site it came from.
    pub fn apply(&self, text: &str, site: &dyn Site, root: &Path) -> String {
        let root = root.to_string_lossy();
        let text = text.replace(&*root, "ROOT").replace(&root.replace('/', "\\/"), "ROOT");
        let ports: Vec<String> = site.ports().iter().map(u16::to_string).collect();
        let port = format!(r"(%3A|\b)(?:{})\b", ports.join("|"));
        let port = Regex::new(&port).expect("digits are a pattern");
        let mut text = port.replace_all(&text, "${1}PORT").into_owned();
        for (pattern, replacement) in &self.rules {
            if let Cow::Owned(changed) = pattern.replace_all(&text, *replacement) {
                text = changed;
            }
        }
        text
    }
}
