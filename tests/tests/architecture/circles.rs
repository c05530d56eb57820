//! Files of a crate that import each other in a circle, by the paths in them.
//!
//! A declaration `mod x;` is no import. A path leads to the last module in it.

use crate::source::{Crate, Module};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// Groups of files of which each one imports all others by way of them, largest first.
pub(crate) fn circles(source: &Crate) -> Vec<Vec<String>> {
    let mut circles = components(&imports(source));
    circles.retain(|circle| circle.len() > 1);
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    let name = |module: Module| if module.is_empty() { "lib".to_owned() } else { module.join("/") };
    circles.into_iter().map(|circle| circle.into_iter().map(name).collect()).collect()
}

fn imports(source: &Crate) -> Imports {
    let visibility = Regex::new(r"pub\(in [^)]*\)").unwrap();
    let import = Regex::new(r"\buse\s+([^;]+);").unwrap();
    let path = Regex::new(r"\b\w+(?:::\w+)+").unwrap();
    let mut imports = Imports::new();
    for (module, text) in &source.files {
        let text = visibility.replace_all(text, "");
        let mut paths = Vec::new();
        import.captures_iter(&text).for_each(|tree| expand("", &tree[1], &mut paths));
        paths.extend(path.find_iter(&text).map(|path| path.as_str().to_owned()));
        let found = paths.iter().filter_map(|path| resolve(source, module, path));
        let found = found.filter(|found| found != module);
        imports.insert(module.clone(), found.collect());
    }
    imports
}

/// The paths of a tree of imports.
fn expand(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        return paths.push(format!("{before}{}", tree.trim()));
    };
    let before = format!("{before}{}", tree[..open].trim());
    let (mut depth, mut start) = (0, open + 1);
    for (at, byte) in tree.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && byte == b',' {
            if !tree[start..at].trim().is_empty() {
                expand(&before, &tree[start..at], paths);
            }
            start = at + 1;
        }
    }
}

/// The module of this crate that a path leads to.
fn resolve(source: &Crate, from: &Module, path: &str) -> Option<Module> {
    let path = path.split(" as ").next()?;
    let mut names = path.split("::").map(str::trim).filter(|name| !name.is_empty()).peekable();
    let mut module = from.clone();
    match *names.peek()? {
        "crate" => module.clear(),
        "self" | "super" => {}
        child if source.files.contains_key(&[&from[..], &[child.to_owned()]].concat()) => {}
        _ => return None,
    }
    for name in names {
        match name {
            "crate" | "self" => continue,
            "super" => drop(module.pop()),
            name => {
                module.push(name.to_owned());
                if !source.files.contains_key(&module) {
                    module.pop();
                    break;
                }
            }
        }
    }
    source.files.contains_key(&module).then_some(module)
}

/// Strongly connected components: who reaches whom, in both directions.
fn components(imports: &Imports) -> Vec<Vec<Module>> {
    let reached = |from: &Module| {
        let (mut reached, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(next) = left.pop() {
            for to in imports.get(next).into_iter().flatten() {
                if reached.insert(to) {
                    left.push(to);
                }
            }
        }
        reached
    };
    let reach: BTreeMap<&Module, _> =
        imports.keys().map(|module| (module, reached(module))).collect();
    let mut done = BTreeSet::new();
    let mut found = Vec::new();
    for (module, theirs) in &reach {
        if done.contains(module) {
            continue;
        }
        let is_mutual =
            |other: &&&Module| theirs.contains(**other) && reach[**other].contains(*module);
        let circle: Vec<Module> =
            reach.keys().filter(is_mutual).map(|other| (*other).clone()).collect();
        done.extend(reach.keys().filter(is_mutual).copied());
        if !circle.is_empty() {
            found.push(circle);
        }
    }
    found
}

#[test]
fn a_circle_of_files_below_the_top_level_is_found() {
    let file = |path: &str, text: &str| {
        (path.split('/').map(str::to_owned).collect::<Module>(), text.to_owned())
    };
    let source = Crate {
        name: "one".to_owned(),
        files: [
            (Module::new(), "mod a;".to_owned()),
            file("a", "mod b;\nmod c;\nuse b::{B, inner::{X, Y}};\npub struct A;"),
            file("a/b", "use super::c::C;\npub(in crate::a) struct B;"),
            file("a/c", "fn f() -> crate::a::A {}\npub struct C;"),
            file("a/d", "use crate::a::{b::B, c};\nuse std::fmt;"),
        ]
        .into(),
    };
    assert_eq!(circles(&source), [["a", "a/b", "a/c"]]);
}
