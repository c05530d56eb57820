//! Advisories of other servers: `docs/reference/advisories.md`, with the pages of other trees, is complete in form
//! and names tests that exist; the modules are for what no other program covers.

#![forbid(unsafe_code)]

#[path = "advisories/idle.rs"]
mod idle;
#[path = "advisories/quic.rs"]
mod quic;
#[path = "advisories/requests.rs"]
mod requests;
#[path = "advisories/tls.rs"]
mod tls;
#[path = "advisories/upstreams.rs"]
mod upstreams;
#[path = "advisories/workers.rs"]
mod workers;

use outboard_e2e::page::trees;
use regex::Regex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PAGE: &str = include_str!("../../docs/reference/advisories.md");

/// Every Rust file of a folder and below it.
fn sources_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => sources_below(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// The files in which a test that the page names has to be.
fn sources_of(program: &str) -> Vec<PathBuf> {
    if program.contains('/') {
        return sources_below(&Path::new(ROOT).join(program));
    }
    let folder = Path::new(ROOT).join("tests/tests");
    let mut files = sources_below(&folder.join(program));
    let file = folder.join(format!("{program}.rs"));
    files.extend(file.is_file().then_some(file));
    files
}

/// Whether a text has `fn NAME` directly below an attribute of a test.
fn has_test(text: &str, name: &str) -> bool {
    let attributes = r"#\[(?:[a-z_]+::)*test[^\]]*\]\s*(?:#\[[^\]]*\]\s*)*";
    let function = format!(r"{attributes}(?:async )?fn {}\(", regex::escape(name));
    Regex::new(&function).expect("the expression is valid").is_match(text)
}

/// What is wrong with the name of a test.
fn mistake_of(test: &str) -> Option<String> {
    let Some((program, name)) = test.split_once("::") else {
        return Some(format!("{test} is not PROGRAM::TEST"));
    };
    let exists = sources_of(program).iter().any(|file| {
        let text = std::fs::read_to_string(file).expect("a source file can be read");
        has_test(&text, name)
    });
    (!exists).then(|| format!("there is no test {test}"))
}

/// The cells of each row; each table begins with its head and a line.
fn rows_of(page: &str) -> Vec<Vec<&str>> {
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| id |");
    let lines = page.lines().filter(is_row);
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// What is wrong with a row, apart from its id being there twice.
fn mistakes_of(row: &[&str], id: &Regex) -> Vec<String> {
    let &[name, product, wrong, holds] = row else {
        return vec![format!("{row:?} does not have four cells")];
    };
    let mut mistakes = Vec::new();
    if !id.is_match(name) {
        mistakes.push(format!("{name} is not the id of an advisory"));
    }
    if product.is_empty() || !wrong.ends_with('.') {
        mistakes.push(format!("{name} has no product, or no sentence about what went wrong"));
    }
    let tests: Vec<&str> = holds.split('`').filter(|part| part.contains("::")).collect();
    if tests.is_empty() && (!holds.ends_with('.') || holds.split(' ').count() < 4) {
        mistakes.push(format!("{name} has neither a test nor a sentence"));
    }
    mistakes.extend(tests.into_iter().filter_map(mistake_of));
    mistakes
}

fn mistakes_in(page: &str) -> Vec<String> {
    let id =
        Regex::new(r"^(CVE-20\d\d-\d{4,}|VSV\d{5}|GHSA(-[23456789cfghjmpqrvwx]{4}){3})$").unwrap();
    let mut seen = BTreeSet::new();
    let mut mistakes = Vec::new();
    for row in rows_of(page) {
        if !seen.insert(row[0].to_owned()) {
            mistakes.push(format!("{} is there twice", row[0]));
        }
        mistakes.extend(mistakes_of(&row, &id));
    }
    mistakes
}

#[test]
fn every_advisory_has_a_test_or_a_reason() {
    let pages = trees().into_iter().map(|tree| tree.join("docs/advisories.md"));
    let others = pages.filter_map(|page| std::fs::read_to_string(page).ok());
    let all: String = std::iter::once(PAGE.to_owned()).chain(others).collect();
    assert!(rows_of(&all).len() > 100, "there are {} rows", rows_of(&all).len());
    let mistakes = mistakes_in(&all);
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

#[test]
fn a_malformed_table_is_noticed() {
    let good = "| CVE-2023-44487 | all | Resets. | `server/protocols/http2::rapid_resets_end_the_connection` |";
    let reason = "| GHSA-2222-cfgh-jmpq | one | A case. | There is no such module here. |";
    let page =
        |rows: &[&str]| format!("| id | p | w | h |\n|---|---|---|---|\n{}", rows.join("\n"));
    assert_eq!(mistakes_in(&page(&[good, reason])), Vec::<String>::new());
    for (rows, mistake) in [
        (&[good, good][..], "CVE-2023-44487 is there twice"),
        (
            &["| CVE-23-1 | one | A case. | There is none of it. |"],
            "CVE-23-1 is not the id of an advisory",
        ),
        (&["| VSV00011 | one | A case. |  |"], "VSV00011 has neither a test nor a sentence"),
        (&["| VSV00011 | one | A case. | `limits::none` |"], "there is no test limits::none"),
        (&["| VSV00011 | one | A case. | `limits::site` |"], "there is no test limits::site"),
    ] {
        assert_eq!(mistakes_in(&page(rows)), [mistake]);
    }
}
