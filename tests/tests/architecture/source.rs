//! The source of a crate without comments, texts and tests, as the tests of the structure read it.
//!
//! This is no parser: it knows as much of Rust as formatted source needs. Invariant: lines stay where they are.

use regex::Regex;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Comments, texts and characters.
static LITERAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r##"(?xs) //[^\n]* | /\*.*?\*/
            | \bb?r\#\#".*?"\#\# | \bb?r\#".*?"\# | \b[bc]?r"[^"]*" | "(?:[^"\\]|\\.)*"
            | '(?:[^'\\\n]|\\[^\n]+?)'"##,
    )
    .unwrap()
});
static TEST: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"#\[cfg\([^\]]*\btest\b[^\]]*\)\]").unwrap());
/// The declaration of a module in a file of its own, after an attribute.
static MODULE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:\s*#\[[^\]]*\])*\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;").unwrap()
});

/// A module by its path in the crate; the root has none.
pub(crate) type Module = Vec<String>;

/// The files of a crate that are not tests, with their text.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) files: BTreeMap<Module, String>,
}

impl Crate {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut paths = Vec::new();
        sources(&folder.join("src"), &mut paths);
        let mut files = BTreeMap::new();
        let mut tests = Vec::new();
        for path in paths {
            let module = module_of(path.strip_prefix(folder.join("src")).unwrap());
            let (text, test_modules) = without_tests(&bare(&fs::read_to_string(&path).unwrap()));
            tests.extend(test_modules.into_iter().map(|name| [&module[..], &[name]].concat()));
            files.insert(module, text);
        }
        files.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Self { name: name_of(folder), files }
    }
}

/// The name of a crate, which is that of its folder.
pub(crate) fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

/// All files below a folder.
pub(crate) fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|kind| kind == "rs") => found.push(path),
            false => {}
        }
    }
}

/// The module of a file below `src`.
pub(crate) fn module_of(file: &Path) -> Module {
    let file = file.with_extension("");
    let mut module: Module = file.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if module.last().is_some_and(|last| last == "mod") || ["lib", "main"].contains(&&*module[0]) {
        module.pop();
    }
    module
}

/// The text without comments, and with empty strings and characters.
pub(crate) fn bare(text: &str) -> String {
    let replaced = LITERAL.replace_all(text, |found: &regex::Captures<'_>| {
        let lines = "\n".repeat(found[0].matches('\n').count());
        if found[0].starts_with('/') { lines } else { format!("\"{lines}\"") }
    });
    replaced.into_owned()
}

/// The text without what only tests compile, and the names of the modules that are in files of their own.
pub(crate) fn without_tests(text: &str) -> (String, Vec<String>) {
    let (mut rest, mut kept, mut modules) = (text, String::new(), Vec::new());
    while let Some(found) = TEST.find(rest) {
        let (before, after) = (&rest[..found.start()], &rest[found.end()..]);
        kept.push_str(before);
        if found.as_str().contains("not(test") {
            rest = after;
            continue;
        }
        modules.extend(MODULE.captures(after).map(|name| name[1].to_owned()));
        let end = end_of_item(after);
        kept.push_str(&"\n".repeat(after[..end].matches('\n').count()));
        rest = &after[end..];
    }
    kept.push_str(rest);
    (kept, modules)
}

/// Where an item ends, with its body; a field ends at its comma.
fn end_of_item(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return at + body_len(&text[at..]),
            b';' | b',' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a body in braces at the beginning of the text.
pub(crate) fn body_len(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

#[test]
fn comments_texts_and_tests_are_left_out() {
    let text = "fn a() { let b = \"}\"; let c = '{'; } // {\n#[cfg(test)]\nmod tests;\n\
                #[cfg(test)]\nmod inner {\n    fn d() {}\n}\n/* } */ struct E<'a> { f: &'a str }\n";
    let (kept, modules) = without_tests(&bare(text));
    assert_eq!(kept.lines().count(), text.lines().count());
    assert!(kept.contains("struct E<'a> { f: &'a str }") && !kept.contains("fn d"), "{kept}");
    assert_eq!(kept.matches(['{', '}']).count(), 4, "{kept}");
    assert_eq!(modules, ["tests"]);
}
