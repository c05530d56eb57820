//! Types by the number of their fields, of their methods, and of the files with inherent `impl`s of them; and the
//! lengths of functions.

use crate::source::{Crate, Module, body_len};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(crate) struct Type {
    pub(crate) fields: usize,
    pub(crate) methods: usize,
    /// With inherent `impl`s.
    pub(crate) files: BTreeSet<Module>,
}

/// The types of a crate, by the module that declares them and their name.
pub(crate) fn types(source: &Crate) -> BTreeMap<(Module, String), Type> {
    let declaration = Regex::new(r"\b(?:struct|enum|union)\s+(\w+)").unwrap();
    let field = Regex::new(r"(?m)^\s+(?:pub(?:\([^)]*\))?\s+)?\w+:\s").unwrap();
    let mut types: BTreeMap<(Module, String), Type> = BTreeMap::new();
    for (module, text) in &source.files {
        for found in declaration.captures_iter(text) {
            let rest = &text[found.get(0).unwrap().end()..];
            let body = body(rest).map_or("", |(_, body)| body);
            let is_struct = found[0].starts_with("struct");
            let fields = if is_struct { field.find_iter(body).count() } else { 0 };
            let key = (module.clone(), found[1].to_owned());
            types.insert(key, Type { fields, ..Type::default() });
        }
    }
    add_methods(source, &mut types);
    types
}

fn add_methods(source: &Crate, types: &mut BTreeMap<(Module, String), Type>) {
    let block = Regex::new(r"(?m)^impl\b([^{;]*)\{").unwrap();
    let generics = Regex::new(r"<[^<>]*>").unwrap();
    let method =
        Regex::new(r"(?m)^    (?:pub(?:\([^)]*\))?\s+)?(?:const\s+|async\s+|unsafe\s+)*fn\s")
            .unwrap();
    for (module, text) in &source.files {
        for found in block.captures_iter(text) {
            let mut head = found[1].replace("->", "");
            while generics.is_match(&head) {
                head = generics.replace_all(&head, "").into_owned();
            }
            let head = head.split(" where").next().unwrap().trim();
            if head.contains(" for ") {
                continue;
            }
            let name = head.rsplit("::").next().unwrap().trim().to_owned();
            let Some(declared) = declaring(source, types, module, &name) else { continue };
            let start = found.get(0).unwrap().end() - 1;
            let body = &text[start..start + body_len(&text[start..])];
            let found = types.get_mut(&(declared, name)).unwrap();
            found.methods += method.find_iter(body).count();
            found.files.insert(module.clone());
        }
    }
}

/// The module that declares a type which an `impl` names: this one, one that it imports the type from, or an outer
/// one.
fn declaring(
    source: &Crate,
    types: &BTreeMap<(Module, String), Type>,
    module: &Module,
    name: &str,
) -> Option<Module> {
    let has = |module: &[String]| types.contains_key(&(module.to_vec(), name.to_owned()));
    let outer = (0..=module.len()).rev().map(|len| &module[..len]);
    outer.clone().find(|outer| has(outer)).map(<[String]>::to_vec).or_else(|| {
        let mut others = source.files.keys().filter(|other| has(other));
        others.next().filter(|_| others.next().is_none()).cloned()
    })
}

/// Where the body of an item begins, and the body, if it has one in braces.
fn body(item: &str) -> Option<(usize, &str)> {
    let mut depth = 0;
    for (at, byte) in item.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some((at, &item[at..at + body_len(&item[at..])])),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The functions of a crate that are longer than so many lines, with their lengths.
pub(crate) fn long_functions(source: &Crate, max_lines: usize) -> Vec<(String, usize)> {
    let function = Regex::new(r"\bfn\s+(\w+)").unwrap();
    let mut long = Vec::new();
    for (module, text) in &source.files {
        for found in function.captures_iter(text) {
            let rest = &text[found.get(0).unwrap().start()..];
            let Some((open, body)) = body(rest) else { continue };
            let lines = rest[..open + body.len()].matches('\n').count() + 1;
            if lines > max_lines {
                long.push((format!("{}::{}", module.join("::"), &found[1]), lines));
            }
        }
    }
    long
}

#[test]
fn fields_methods_and_files_are_counted_per_type() {
    let file = |path: &str, text: &str| {
        (path.split('/').map(str::to_owned).collect::<Module>(), text.to_owned())
    };
    let source = Crate {
        name: "one".to_owned(),
        files: [
            file("a", "pub struct A<T: Fn(u8)> {\n    pub(crate) b: u8,\n    c: Vec<T>,\n}\nimpl<T> A<T> {\n    fn d() {\n    }\n}"),
            file("a/e", "impl super::A<u8> {\n    pub async fn f(&self) {}\n}\nimpl Clone for A<u8> {\n    fn g() {}\n}"),
            file("h", "struct A;\nimpl A {\n    const fn i() {\n\n\n    }\n}"),
        ]
        .into(),
    };
    let types = types(&source);
    let counts = |module: &str| {
        let found = &types[&(vec![module.to_owned()], "A".to_owned())];
        (found.fields, found.methods, found.files.len())
    };
    assert_eq!((counts("a"), counts("h")), ((2, 2, 2), (0, 1, 1)));
    assert_eq!(long_functions(&source, 3), [("h::i".to_owned(), 4)]);
}
