//! What is known of common applications: whose cookies mean what, and which paths are never kept.
//!
//! Called when an app is opened. The knowledge is in `presets/*.preset`, one fact a line; a test
//! reads them all. Adding an application is adding a file there and a line here.

use crate::pattern::NamePattern;
use crate::request_facts::Guard;

/// An application that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name in the configuration.
    pub name: &'static str,
    /// The file, as it is.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),+) => {
        [$(Preset { name: $name, text: include_str!(concat!("../presets/", $name, ".preset")) }),+]
    };
}

/// All of them; the first holds for every application.
pub const PRESETS: [Preset; 9] = presets![
    "generic",
    "wordpress",
    "woocommerce",
    "drupal",
    "mediawiki",
    "joomla",
    "laravel",
    "symfony",
    "phpbb"
];

impl Preset {
    /// The preset called `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        const ALL: &[Preset] = &PRESETS;
        ALL.iter().find(|preset| preset.name == name)
    }

    /// Those whose marker files are all there, as `exists` says of paths relative to the document
    /// root. The generic one is always among them.
    pub fn recognised(exists: impl Fn(&str) -> bool) -> impl Iterator<Item = &'static Self> {
        const ALL: &[Preset] = &PRESETS;
        ALL.iter().filter(move |preset| preset.of("marker").all(&exists))
    }

    /// Adds what it says to a guard.
    pub fn extend(&self, guard: &mut Guard) {
        let patterns = |word| self.of(word).map(NamePattern::new);
        guard.cookies.login.extend(patterns("login"));
        guard.cookies.harmless.extend(patterns("harmless"));
        guard.admin_paths.extend(patterns("admin"));
    }

    /// What its lines say that start with `word`.
    fn of(&self, word: &str) -> impl Iterator<Item = &'static str> {
        facts(self.text).filter(move |(theirs, _)| *theirs == word).map(|(_, fact)| fact)
    }
}

impl Guard {
    /// What these presets say together.
    pub fn of<'p>(presets: impl IntoIterator<Item = &'p Preset>) -> Self {
        let mut guard = Self::default();
        presets.into_iter().for_each(|preset| preset.extend(&mut guard));
        guard
    }
}

/// The lines as word and fact, without comments.
fn facts(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).map(|(word, fact)| (word, fact.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_preset_is_a_fact() {
        for preset in &PRESETS {
            for line in preset.text.lines().filter(|line| !line.starts_with('#')) {
                let (word, fact) = line.split_once("  ").expect(line);
                assert!(["marker", "login", "harmless", "admin"].contains(&word), "{line}");
                assert!(!fact.is_empty() && !fact.contains(' '), "{line}");
                assert!(word != "admin" || fact.starts_with('/'), "{line}");
            }
            assert_eq!(preset.of("marker").count() == 0, preset.name == "generic");
        }
    }

    #[test]
    fn nothing_is_both_harmless_and_a_login() {
        for preset in &PRESETS {
            let guard = Guard::of(&PRESETS);
            for harmless in preset.of("harmless") {
                let name = harmless.replace('*', "x");
                let is_login =
                    guard.cookies.login.iter().any(|known| known.matches(name.as_bytes()));
                assert!(!is_login, "{harmless}");
            }
        }
    }
}
