//! Links between pages resolve, and the index names every page.

use outboard_e2e::page::repository;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Pages that are no part of the documentation's directory, and have links of their own.
const ELSEWHERE: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "php/README.md",
];

/// Every page, relative to the repository, with its text outside of fenced blocks.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = repository();
    let mut paths: Vec<PathBuf> = ELSEWHERE.map(PathBuf::from).into();
    for folder in ["docs", "docs/guide", "docs/guide/answers", "docs/reference", "docs/decisions"] {
        paths.extend(markdown_of(folder));
    }
    for tree in trees() {
        for folder in ["docs", "docs/decisions"] {
            paths.extend(markdown_of(&format!("{tree}/{folder}")));
        }
    }
    let examples = trees().into_iter().map(|tree| format!("{tree}/examples"));
    for folder in examples.chain(["examples".to_owned()]) {
        paths.push(Path::new(&folder).join("README.md"));
        let examples = fs::read_dir(root.join(&folder)).into_iter().flatten();
        paths.extend(examples.map(|entry| {
            Path::new(&folder).join(entry.expect("an entry").file_name()).join("README.md")
        }));
    }
    paths.retain(|path| root.join(path).is_file());
    let text = |path: &PathBuf| fs::read_to_string(root.join(path)).expect("a page");
    paths.into_iter().map(|path| (path.clone(), without_blocks(&text(&path)))).collect()
}

/// The names of the trees with documentation of their own.
fn trees() -> Vec<String> {
    let name = |tree: PathBuf| Some(tree.file_name()?.to_str()?.to_owned());
    outboard_e2e::page::trees().into_iter().filter_map(name).collect()
}

fn markdown_of(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join(folder)).into_iter().flatten();
    let paths = entries.map(|entry| Path::new(folder).join(entry.expect("an entry").file_name()));
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

fn without_blocks(text: &str) -> String {
    let mut is_block = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    lines.map(|line| format!("{line}\n")).collect()
}

/// The anchors of a page's headings, as GitHub forms them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with('#')) {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|one| one.is_alphanumeric() || " -_".contains(*one));
        let anchor: String = kept.map(|one| if one == ' ' { '-' } else { one }).collect();
        let repeated = (1..).map(|number| format!("{anchor}-{number}"));
        let mut names = std::iter::once(anchor.clone()).chain(repeated);
        let free = names.find(|name| !found.contains(name));
        found.extend(free);
    }
    found
}

/// The path that a link of a page leads to, without `.` and `..`.
fn target(page: &Path, link: &str) -> PathBuf {
    let folder = page.parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

#[test]
fn every_link_between_pages_resolves() {
    let pages = pages();
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let mut wrong = Vec::new();
    let mut count = 0;
    for (page, text) in &pages {
        for found in link.captures_iter(text).map(|found| found[1].to_owned()) {
            if found.contains("://") || found.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (path, anchor) = found.split_once('#').unwrap_or((&found, ""));
            let path = if path.is_empty() { page.clone() } else { target(page, path) };
            let is_there = repository().join(&path).exists();
            let has_anchor = anchor.is_empty()
                || pages.get(&path).is_none_or(|text| anchors(text).contains(anchor));
            if !is_there || !has_anchor {
                wrong.push(format!("{}: {found}", page.display()));
            }
        }
    }
    assert!(count > 200, "{count} links were found");
    assert!(wrong.is_empty(), "links that do not resolve:\n{}", wrong.join("\n"));
}

#[test]
fn the_index_names_every_page() {
    let index = fs::read_to_string(repository().join("docs/README.md")).expect("the index");
    let folders = ["docs/guide", "docs/guide/answers", "docs/reference", "docs/decisions"];
    let own = trees()
        .into_iter()
        .flat_map(|tree| [format!("{tree}/docs"), format!("{tree}/docs/decisions")]);
    let folders = folders.into_iter().map(str::to_owned).chain(own);
    let missing: Vec<_> = folders
        .flat_map(|folder| markdown_of(&folder))
        .filter(|page| {
            let elsewhere = Path::new("..").join(page);
            let name = page.strip_prefix("docs").unwrap_or(&elsewhere);
            !index.contains(&format!("]({})", name.display()))
        })
        .collect();
    assert!(missing.is_empty(), "docs/README.md does not name {missing:?}");
}

#[test]
fn decision_records_are_complete() {
    let output = Command::new(repository().join("ci/decisions")).output().expect("a script");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
