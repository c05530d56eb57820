//! Configurations of tests, on a disk on which every path exists.

use crate::disk::FullDisk;
use crate::*;
use std::path::Path;

pub(super) const APP: &str = "[app.site]\nroot = \"public\"\n";

pub(super) fn parse(text: &str) -> Result<Config, Diagnostics> {
    parse_on(&FullDisk, text, Path::new("/srv/www/outboard.toml"))
}

pub(super) fn valid(text: &str) -> Config {
    parse(text).unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"))
}

pub(super) fn site(text: &str) -> App {
    valid(&format!("{APP}{text}")).apps.remove(0)
}

pub(super) fn assert_error(text: &str, kind: Kind, line: usize, words: &str) {
    let all = parse(text).unwrap_err();
    let found = all.iter().any(|error| {
        let hint = error.hint.as_deref().unwrap_or_default();
        error.kind == kind
            && error.position.as_ref().is_some_and(|position| position.line == line)
            && format!("{} / {hint}", error.message).contains(words)
    });
    assert!(found, "no {kind:?} in line {line} with `{words}` in:\n{all}");
}
