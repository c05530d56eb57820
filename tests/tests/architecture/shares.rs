//! The share of a crate's lines that are tests: modules and items that only tests compile, and its `tests/`.

use crate::source::{Module, bare, module_of, sources, without_tests};
use std::fs;
use std::path::Path;

/// Lines of tests, and all lines, of the Rust files of a crate.
pub(crate) fn test_lines(folder: &Path) -> (usize, usize) {
    let mut paths = Vec::new();
    sources(folder, &mut paths);
    let mut files: Vec<(Option<Module>, usize, usize)> = Vec::new();
    let mut tests: Vec<Module> = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        let file = path.strip_prefix(folder).unwrap();
        let Ok(file) = file.strip_prefix("src") else {
            files.push((None, lines, if file.starts_with("tests") { lines } else { 0 }));
            continue;
        };
        let module = module_of(file);
        let bare = bare(&text);
        let (without, modules) = without_tests(&bare);
        tests.extend(modules.into_iter().map(|name| [&module[..], &[name]].concat()));
        files.push((Some(module), lines, lines_that_differ(&bare, &without)));
    }
    let is_test = |module: &Module| tests.iter().any(|test| module.starts_with(test));
    let of_tests = files.iter().map(|(module, lines, own)| match module {
        Some(module) if is_test(module) => lines,
        _ => own,
    });
    (of_tests.sum(), files.iter().map(|(_, lines, _)| lines).sum())
}

/// Lines of tests are empty without them.
fn lines_that_differ(with: &str, without: &str) -> usize {
    with.lines().zip(without.lines()).filter(|(with, without)| with != without).count()
}

#[test]
fn lines_of_tests_are_counted_without_those_beside_them() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
    let (without, _) = without_tests(text);
    assert_eq!(lines_that_differ(text, &without), 4);
}
