//! The shim's files in C do not depend on each other in circles, share few variables, and check what they promise.
//!
//! What a file uses is what it includes, and each function and variable of another file that it names. Functions of PHP
//! are named by `ZEND_FN`; those that replace the C library's (`EXPORTED` in `build.rs`) are called by everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that refer to each other in a circle, at most: a pair, and one between.
const CIRCLE_MAX: usize = 3;
/// Variables that several files can change or read.
const VARIABLES_MAX: usize = 12;
/// `OUTBOARD_ASSERT` and `OUTBOARD_ASSERT_SLOWLY`.
const ASSERTIONS_MIN: usize = 190;

/// A file of `sapi/`, the host's or a part's, without comments and the contents of strings.
struct Source {
    path: String,
    text: String,
}

fn find(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of the crate").flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "c" || extension == "h") {
            found.push(path);
        }
    }
}

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The names of the directories of the tree that are a part of the host (`build/parts.rs`).
fn parts() -> Vec<String> {
    let entries = fs::read_dir(tree()).expect("the tree").flatten();
    let parts = entries.filter(|entry| entry.path().join("sapi").is_dir());
    parts.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sapi");
    let mut paths = Vec::new();
    find(&root, &mut paths);
    parts().iter().for_each(|part| find(&tree().join(part).join("sapi"), &mut paths));
    paths.sort();
    let read = |path: PathBuf| Source {
        text: without_comments(&fs::read_to_string(&path).expect("a readable file")),
        path: path
            .strip_prefix(&root)
            .or_else(|_| path.strip_prefix(tree()))
            .expect("below sapi or in a part")
            .to_string_lossy()
            .into_owned(),
    };
    paths.into_iter().map(read).collect()
}

/// Comments become blanks, strings lose their contents, except for the names of included files.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, is_code) = if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |end| end + 2), false)
        } else if first == '"' || first == '\'' {
            let is_include = kept.lines().last().is_some_and(|line| line.starts_with("#include"));
            (quoted(rest, first), is_include)
        } else {
            (first.len_utf8(), true)
        };
        if is_code {
            kept.push_str(&rest[..token]);
        } else {
            kept.extend(rest[..token].chars().filter(|character| *character == '\n'));
            kept.push(' ');
        }
        rest = &rest[token..];
    }
    kept
}

/// The bytes of a string or a character with its quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '\\' if !is_escaped => is_escaped = true,
            _ if character == quote && !is_escaped => return at + 1,
            _ => is_escaped = false,
        }
    }
    text.len()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
}

/// The names of functions of PHP in `macro(name)`.
fn arguments<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(name).skip(1).filter_map(|behind| behind.strip_prefix('(')?.split([')', ',']).next())
}

/// What a file defines for others.
#[derive(Default)]
struct Definitions {
    functions: Vec<String>,
    variables: Vec<String>,
    tables: Vec<String>,
}

/// A line that begins a definition begins in the first column, and so does the brace of a function.
fn definitions(source: &Source) -> Definitions {
    let mut found = Definitions::default();
    let mut head = "";
    for line in source.text.lines() {
        if line == "{" {
            found.functions.extend(function(head));
        } else if line.starts_with(|character: char| character.is_alphabetic() || character == '_')
        {
            head = line;
            if let Some(name) = variable(line) {
                let is_table = line.starts_with("const zend_function_entry");
                if is_table { &mut found.tables } else { &mut found.variables }.push(name);
            }
        }
    }
    found
}

fn function(head: &str) -> Option<String> {
    let (before, arguments) = head.split_once('(')?;
    let name = words(before).last()?;
    if before.starts_with("static") {
        return None;
    }
    match name {
        "PHP_FUNCTION" | "ZEND_FUNCTION" => Some(format!("zif {}", words(arguments).next()?)),
        "ZEND_INI_MH" => Some(words(arguments).next()?.to_owned()),
        // Replacements for functions of the C library have its names.
        _ => name.starts_with("outboard_").then(|| name.to_owned()),
    }
}

fn variable(line: &str) -> Option<String> {
    let others =
        ["static", "extern", "typedef", "OUTBOARD_KEPT", "return", "ZEND_", "PHP_", "STD_"];
    if others.iter().any(|other| line.starts_with(other)) {
        return None;
    }
    let declared = line.split(['=', ';']).next()?;
    let is_whole = declared.len() < line.len() && !declared.contains(['(', '{', '}', ':']);
    let name = words(declared.split('[').next()?).last()?;
    (is_whole && words(declared).count() > 1).then(|| name.to_owned())
}

/// In a header, only what is executed where the header is included: bodies and macros.
fn used_text(source: &Source) -> String {
    if source.path.ends_with(".c") {
        return source.text.clone();
    }
    let mut used = String::new();
    let (mut in_body, mut in_macro) = (false, false);
    for line in source.text.lines() {
        in_body = (in_body || line == "{") && line != "}";
        let begins_macro =
            line.trim_start().trim_start_matches('#').trim_start().starts_with("define");
        if in_body || in_macro || begins_macro {
            used.push_str(line);
            used.push('\n');
        }
        in_macro = (in_macro || begins_macro) && line.trim_end().ends_with('\\');
    }
    used
}

type Graph = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn graph(sources: &[Source]) -> Graph {
    let mut owners = BTreeMap::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".c")) {
        let Definitions { functions, variables, tables } = definitions(source);
        for name in functions.into_iter().chain(variables).chain(tables) {
            owners.insert(name, source.path.clone());
        }
    }
    let mut graph: Graph =
        sources.iter().map(|source| (source.path.clone(), BTreeMap::new())).collect();
    for source in sources {
        let text = used_text(source);
        let included = source.text.lines().filter_map(|line| {
            line.strip_prefix("#include \"")?.strip_suffix('"').map(str::to_owned)
        });
        let included = included.filter(|path| sources.iter().any(|other| other.path == *path));
        let named = words(&text).filter_map(|word| owners.get(word).map(|owner| (owner, word)));
        let of_php = ["ZEND_FN", "PHP_FN"].map(|name| arguments(&text, name).collect::<Vec<_>>());
        let of_php = of_php.concat().into_iter().filter_map(|name| {
            owners.get(&format!("zif {}", name.trim())).map(|owner| (owner, name))
        });
        let edges = graph.get_mut(&source.path).expect("every source has a node");
        for path in included {
            edges.entry(path).or_default().insert("#include".to_owned());
        }
        for (owner, name) in named.chain(of_php).filter(|(owner, _)| **owner != source.path) {
            edges.entry(owner.clone()).or_default().insert(name.to_owned());
        }
    }
    graph
}

/// What one node reaches, itself only in a circle.
fn reached<'a>(graph: &'a Graph, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = graph[from].keys().map(String::as_str).collect();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(graph[next].keys().map(String::as_str));
        }
    }
    found
}

/// Sets of nodes each of which reaches all others.
fn circles(graph: &Graph) -> Vec<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|node| (node.as_str(), reached(graph, node))).collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for (node, others) in &reached {
        if others.contains(node) && !circles.iter().any(|circle| circle.contains(node)) {
            circles.push(
                others.iter().copied().filter(|other| reached[other].contains(node)).collect(),
            );
        }
    }
    circles
}

/// The circle, and by which names its members refer to each other.
fn described(graph: &Graph, circle: &BTreeSet<&str>) -> String {
    let mut text = String::new();
    for from in circle {
        for (to, names) in graph[*from].iter().filter(|(to, _)| circle.contains(to.as_str())) {
            writeln!(text, "  {from} -> {to}: {names:?}").expect("a string takes all");
        }
    }
    text
}

#[test]
fn no_circle_has_more_than_three_files() {
    let graph = graph(&sources());
    assert!(graph.len() > 100, "the files of sapi/ were found: {}", graph.len());
    for circle in circles(&graph) {
        assert!(
            circle.len() <= CIRCLE_MAX,
            "{} files:\n{}",
            circle.len(),
            described(&graph, &circle)
        );
    }
}

fn directory(path: &str) -> &str {
    path.split_once('/').map_or(".", |(directory, _)| directory)
}

#[test]
fn directories_do_not_depend_on_each_other_in_a_circle() {
    let mut directories = Graph::new();
    for (from, edges) in graph(&sources()) {
        let node = directories.entry(directory(&from).to_owned()).or_default();
        for (to, names) in edges.into_iter().filter(|(to, _)| directory(to) != directory(&from)) {
            let names = names.into_iter().map(|name| format!("{from} {name}"));
            node.entry(directory(&to).to_owned()).or_default().extend(names);
        }
    }
    let circles = circles(&directories);
    let all: Vec<String> = circles.iter().map(|circle| described(&directories, circle)).collect();
    assert!(circles.is_empty(), "{}", all.join("\n"));
}

/// The subjects are named by the table of hooks alone.
#[test]
fn the_core_names_no_subject() {
    let parts = parts();
    let subjects =
        ["api", "connections", "doctor", "fork", "opcache", "reset", "rewind", "snapshot"];
    let subjects: Vec<&str> =
        subjects.into_iter().chain(parts.iter().map(String::as_str)).collect();
    let core = [".", "coroutine", "process", "request", "state", "tracing", "waiting", "worker"];
    for (from, edges) in graph(&sources()) {
        for (to, names) in edges {
            let is_up = core.contains(&directory(&from)) && subjects.contains(&directory(&to));
            assert!(!is_up, "{from} names {to}: {names:?}");
        }
    }
}

#[test]
fn a_part_is_named_in_its_directory_alone() {
    let parts = parts();
    assert!(!parts.is_empty(), "parts were found");
    for (source, part) in
        sources().iter().flat_map(|source| parts.iter().map(move |part| (source, part)))
    {
        let is_own = directory(&source.path) == part;
        let named = source.text.lines().find(|line| line.to_ascii_lowercase().contains(part));
        assert!(is_own || named.is_none(), "{}: {}", source.path, named.unwrap_or_default());
    }
}

#[test]
fn files_share_few_variables() {
    let sources = sources();
    let variables: Vec<String> = sources
        .iter()
        .filter(|source| source.path.ends_with(".c"))
        .flat_map(|source| definitions(source).variables)
        .collect();
    assert!(variables.len() <= VARIABLES_MAX, "{}: {variables:?}", variables.len());
    assert!(variables.iter().any(|name| name == "outboard_host"), "variables were found");
}

#[test]
fn invariants_are_checked_when_the_program_runs() {
    let is_check = |word: &&str| ["OUTBOARD_ASSERT", "OUTBOARD_ASSERT_SLOWLY"].contains(word);
    let count: usize = sources()
        .iter()
        .filter(|source| source.path.ends_with(".c"))
        .map(|source| words(&source.text).filter(is_check).count())
        .sum();
    assert!(count >= ASSERTIONS_MIN, "{count} assertions");
}

#[test]
fn versions_of_php_are_told_apart_in_one_file() {
    for source in sources().iter().filter(|source| source.path != "compat.h") {
        assert!(!words(&source.text).any(|word| word == "PHP_VERSION_ID"), "{}", source.path);
    }
}
