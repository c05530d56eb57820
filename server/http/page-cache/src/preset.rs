//! Presets for common applications: the meaning of their cookies, and paths that are never cached.
//!
//! Called when an app is opened. A preset is a file `presets/*.preset` with one fact per line, and a
//! line here.

use crate::pattern::NamePattern;
use crate::request_facts::BypassRules;

/// A known application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name in the configuration.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),+) => {
        [$(Preset { name: $name, text: include_str!(concat!("../presets/", $name, ".preset")) }),+]
    };
}

/// All presets; the first applies to every application.
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

    /// The presets whose marker files all exist, according to `exists` for paths relative to the
    /// document root. The generic preset is always among them.
    pub fn recognised(exists: impl Fn(&str) -> bool) -> impl Iterator<Item = &'static Self> {
        const ALL: &[Preset] = &PRESETS;
        ALL.iter().filter(move |preset| preset.of("marker").all(&exists))
    }

    /// Adds the preset to the rules.
    pub fn extend(&self, rules: &mut BypassRules) {
        let patterns = |word| self.of(word).map(NamePattern::new);
        rules.cookies.login.extend(patterns("login"));
        rules.cookies.ignored.extend(patterns("ignored"));
        rules.bypass_paths.extend(patterns("bypass"));
    }

    /// The facts of the lines that start with `word`.
    fn of(&self, word: &str) -> impl Iterator<Item = &'static str> {
        facts(self.text).filter(move |(theirs, _)| *theirs == word).map(|(_, fact)| fact)
    }
}

impl BypassRules {
    /// The rules of these presets together.
    pub fn of<'p>(presets: impl IntoIterator<Item = &'p Preset>) -> Self {
        let mut rules = Self::default();
        presets.into_iter().for_each(|preset| preset.extend(&mut rules));
        rules
    }
}

/// The lines as pairs of word and fact, without comments.
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
                assert!(["marker", "login", "ignored", "bypass"].contains(&word), "{line}");
                assert!(!fact.is_empty() && !fact.contains(' '), "{line}");
                assert!(word != "bypass" || fact.starts_with('/'), "{line}");
            }
            assert_eq!(preset.of("marker").count() == 0, preset.name == "generic");
        }
    }

    #[test]
    fn nothing_is_both_harmless_and_a_login() {
        for preset in &PRESETS {
            let guard = BypassRules::of(&PRESETS);
            for ignored in preset.of("ignored") {
                let name = ignored.replace('*', "x");
                let is_login =
                    guard.cookies.login.iter().any(|known| known.matches(name.as_bytes()));
                assert!(!is_login, "{ignored}");
            }
        }
    }
}
