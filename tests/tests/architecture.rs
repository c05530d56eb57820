//! The structure of the source: modules import each other in one direction, and files stay readable.
//!
//! Cargo itself refuses cycles between crates; between the modules of a crate the compiler allows
//! them, so they are found here, by the paths in the source. What exceeds a limit is in a list until it is mended; an
//! entry that is no longer needed fails as well, so that the lists only become shorter.

#[path = "architecture/circles.rs"]
mod circles;
#[path = "architecture/invariants.rs"]
mod invariants;
#[path = "architecture/shares.rs"]
mod shares;
#[path = "architecture/source.rs"]
mod source;
#[path = "architecture/types.rs"]
mod types;
#[path = "architecture/walks.rs"]
mod walks;

use regex::Regex;
use source::{Crate, name_of, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Crates whose files may not exceed [`MAX_LINES`].
const SHORT_FILES: [&str; 7] =
    ["buffer", "development", "gateway", "http-server", "operations", "page-cache", "php-pool"];
const MAX_LINES: usize = 350;

/// More files than these do not import each other in a circle: a module and its parts, at most.
const MAX_CIRCLE: usize = 3;
/// A type with more fields has no more methods than these.
const MAX_FIELDS: usize = 12;
const MAX_METHODS: usize = 60;
/// More files have no inherent `impl`s of one type.
const MAX_IMPL_FILES: usize = 5;
const MAX_FUNCTION_LINES: usize = 70;

/// Circles of more files, by the first one, with the size that they do not exceed.
const STILL_IN_CIRCLES: [(&str, usize); 0] = [];

/// Types beyond the limits.
const STILL_TOO_LARGE: [&str; 0] = [];
/// Functions beyond the limit.
const STILL_TOO_LONG: [&str; 3] = [
    "config: checked::listen::listener",
    "import: httpd::rewrite::rule",
    "import: nginx::location::translate",
];

/// At least so many of 100 lines of a crate of the server are tests of its own.
const MIN_TEST_PERCENT: usize = 25;
/// Crates with fewer, and how many they have at least.
const STILL_WITH_FEW_TESTS: [(&str, usize); 0] = [];

/// Read once for all tests.
static SOURCES: LazyLock<Vec<Crate>> =
    LazyLock::new(|| crates().iter().map(|path| Crate::read(path)).collect());

/// Imports between the top-level modules of a crate, with a file for each.
type Imports = BTreeMap<String, BTreeMap<String, PathBuf>>;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The folders of all crates of the trees, by name, but for tests.
fn crates() -> Vec<PathBuf> {
    let subfolders = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    let root = repository();
    let groups = subfolders(&root.join("server"));
    let folders =
        subfolders(&root).into_iter().chain(groups).flat_map(|folder| subfolders(&folder));
    let mut crates: Vec<PathBuf> = folders
        .filter(|path| path.join("Cargo.toml").is_file() && !path.ends_with("tests"))
        .collect();
    crates.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    crates
}

/// The top-level module that a file belongs to.
fn module(source: &Path, file: &Path) -> String {
    let first = file.strip_prefix(source).unwrap().components().next().unwrap();
    first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
}

fn imports(source: &Path) -> Imports {
    let comment = Regex::new(r"(?m)//.*$").unwrap();
    let path = Regex::new(r"\bcrate::(?:(\w+)|\{([^;]*?)\};)").unwrap();
    let nested = Regex::new(r"\{[^{}]*\}").unwrap();
    let mut files = Vec::new();
    sources(source, &mut files);
    let modules: BTreeSet<String> = files.iter().map(|file| module(source, file)).collect();
    let mut imports = Imports::new();
    for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = fs::read_to_string(file).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let text = comment.replace_all(text, "");
        let from = module(source, file);
        for found in path.captures_iter(&text) {
            let group = found.get(2).map_or_else(String::new, |group| group.as_str().to_owned());
            let group = nested.replace_all(&group, "");
            let names = found.get(1).map(|name| name.as_str()).into_iter();
            let names = names.chain(group.split(',').map(|name| name.trim()));
            for name in names.map(|name| name.split("::").next().unwrap().trim()) {
                if name != from && modules.contains(name) {
                    let to = imports.entry(from.clone()).or_default();
                    to.entry(name.to_owned()).or_insert_with(|| file.clone());
                }
            }
        }
    }
    imports
}

/// Modules of a cycle, the first one again at the end.
fn cycle(imports: &Imports) -> Option<Vec<String>> {
    fn visit(
        name: &str,
        imports: &Imports,
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(at) = path.iter().position(|earlier| earlier == name) {
            return Some(path[at..].iter().cloned().chain([name.to_owned()]).collect());
        }
        if !done.insert(name.to_owned()) {
            return None;
        }
        path.push(name.to_owned());
        let next = imports.get(name).into_iter().flat_map(BTreeMap::keys);
        let found = next.into_iter().find_map(|next| visit(next, imports, path, done));
        path.pop();
        found
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|name| visit(name, imports, &mut Vec::new(), &mut done))
}

#[test]
fn modules_import_each_other_in_one_direction() {
    for path in crates() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let imports = imports(&path.join("src"));
        if let Some(cycle) = cycle(&imports) {
            let edges = cycle.windows(2).map(|edge| {
                let file = imports[&edge[0]][&edge[1]].display();
                format!("{} uses {} in {file}", edge[0], edge[1])
            });
            panic!("crate {name}: {}", edges.collect::<Vec<_>>().join("; "));
        }
    }
}

/// The crates of this workspace that a crate uses outside of its tests.
fn used_crates(folder: &Path) -> Vec<String> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let mut section = String::new();
    let mut used = BTreeSet::new();
    for line in manifest.lines() {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => section = name.to_owned(),
            None if section == "dependencies" => {
                let name = line.split(['.', ' ', '=']).next().unwrap();
                used.extend(name.strip_prefix("outboard-").map(str::to_owned));
            }
            None => {}
        }
    }
    used.into_iter().collect()
}

#[test]
fn the_tables_of_crates_are_complete() {
    let page = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let row = Regex::new(r"(?m)^\| \[`([\w-]+)`\]\(([^)]+)\) \| .+ \| (.*) \|$").unwrap();
    let documented: BTreeMap<String, (String, Vec<String>)> = row
        .captures_iter(&page)
        .map(|row| {
            let used = row[3].split(", ").map(|name| name.trim_matches('`').to_owned());
            let used = used.filter(|name| !name.is_empty()).collect();
            (row[1].to_owned(), (row[2].to_owned(), used))
        })
        .collect();
    let mut names = Vec::new();
    for path in crates() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let (link, used) = documented.get(&name).unwrap_or_else(|| panic!("no row for {name}"));
        assert_eq!(*used, used_crates(&path), "what {name} uses");
        let link = repository().join(link);
        assert!(link.starts_with(&path), "{} is not of {name}", link.display());
        assert!(link.exists(), "{} does not exist", link.display());
        names.push(name);
    }
    assert_eq!(documented.into_keys().collect::<Vec<_>>(), names);
}

#[test]
fn a_cycle_of_imports_is_found() {
    let edges = |list: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (from, to) in list {
            imports.entry((*from).into()).or_default().insert((*to).into(), PathBuf::new());
        }
        imports
    };
    assert_eq!(cycle(&edges(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let found = cycle(&edges(&[("a", "b"), ("b", "c"), ("c", "b")])).unwrap();
    assert_eq!(found, ["b", "c", "b"]);
}

#[test]
fn files_fit_the_eye() {
    let mut long = Vec::new();
    for path in crates() {
        if !SHORT_FILES.contains(&path.file_name().unwrap().to_str().unwrap()) {
            continue;
        }
        let mut files = Vec::new();
        sources(&path.join("src"), &mut files);
        for file in files {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            if lines > MAX_LINES {
                long.push(format!("{} has {lines} lines", file.display()));
            }
        }
    }
    assert!(long.is_empty(), "more than {MAX_LINES} lines: {}", long.join(", "));
}

/// Compares what was found with what is known.
fn compare(what: &str, found: &BTreeSet<String>, known: &[&str]) {
    let known = known.iter().map(|entry| (*entry).to_owned()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let mended: Vec<_> = known.difference(found).collect();
    assert!(new.is_empty(), "{what}: {new:#?}");
    assert!(mended.is_empty(), "{what}: no longer, to be removed from the list: {mended:#?}");
}

#[test]
fn few_files_import_each_other_in_a_circle() {
    let known: BTreeMap<&str, usize> = STILL_IN_CIRCLES.into();
    let mut found = BTreeSet::new();
    for source in SOURCES.iter() {
        let circles = circles::circles(source);
        for circle in circles.iter().filter(|circle| circle.len() > MAX_CIRCLE) {
            let name = format!("{}: {}", source.name, circle[0]);
            let most = known.get(&*name).copied().unwrap_or(MAX_CIRCLE);
            assert!(circle.len() <= most, "{}: a circle of {circle:#?}", source.name);
            found.insert(name);
        }
    }
    compare("circles of files", &found, &STILL_IN_CIRCLES.map(|(name, _)| name));
}

#[test]
fn a_type_is_one_thing() {
    let mut found = BTreeSet::new();
    for source in SOURCES.iter() {
        for ((module, name), one) in types::types(source) {
            let is_large = one.fields > MAX_FIELDS && one.methods > MAX_METHODS;
            if is_large || one.files.len() > MAX_IMPL_FILES {
                found.insert(format!("{}: {}::{name}", source.name, module.join("::")));
            }
        }
    }
    compare("large types", &found, &STILL_TOO_LARGE);
}

#[test]
fn functions_fit_the_eye() {
    let mut found = BTreeSet::new();
    for source in SOURCES.iter() {
        let long = types::long_functions(source, MAX_FUNCTION_LINES);
        found.extend(long.into_iter().map(|(name, _)| format!("{}: {name}", source.name)));
    }
    compare("long functions", &found, &STILL_TOO_LONG);
}

#[test]
fn the_crates_of_the_server_have_tests_of_their_own() {
    let known: BTreeMap<&str, usize> = STILL_WITH_FEW_TESTS.into();
    let server = repository().join("server");
    let (mut table, mut found, mut worse) = (String::new(), BTreeSet::new(), Vec::new());
    for folder in crates().iter().filter(|folder| folder.starts_with(&server)) {
        let name = name_of(folder);
        let (tests, all) = shares::test_lines(folder);
        let percent = tests * 100 / all;
        let _ = writeln!(table, "{percent:>4} % {name}: {tests} of {all} lines");
        if percent < MIN_TEST_PERCENT {
            if known.get(&*name).is_some_and(|least| percent < *least) {
                worse.push(name.clone());
            }
            found.insert(name);
        }
    }
    assert!(worse.is_empty(), "fewer tests than before: {worse:?}\n{table}");
    let what = format!("less than {MIN_TEST_PERCENT} % of the lines are tests\n{table}");
    compare(&what, &found, &STILL_WITH_FEW_TESTS.map(|(name, _)| name));
}
