//! The pages of the documentation are complete, and agree with the programs.
//!
//! `docs/reference/php.md`, `cli.md` and `metrics.md` have generated parts between two comments:
//! `OUTBOARD_REGENERATE=1 cargo test -p outboard-e2e --test documentation` writes them; without it the
//! tests compare. Invariant: each function, command and metric is on exactly one place of its page.

#![forbid(unsafe_code)]

mod command_line;
mod links;
mod metrics;
mod php;

use outboard_e2e::page::repository;
use std::fs;
use std::path::PathBuf;

/// The text of a page with the generated parts renewed: `<!-- KIND: WORDS -->` is followed by what
/// `part` returns for the words, up to `<!-- end KIND -->`.
fn renewed(page: &str, kind: &str, mut part: impl FnMut(&str) -> String) -> String {
    let (begin, end) = (format!("<!-- {kind}: "), format!("<!-- end {kind} -->"));
    let mut out = String::new();
    let mut rest = page;
    while let Some(at) = rest.find(&begin) {
        let marked = &rest[at + begin.len()..];
        let (words, inner) = marked.split_once(" -->\n").expect("the comment ends with its line");
        let (_, after) = inner.split_once(&end).expect("a generated part has an end");
        out.push_str(&rest[..at]);
        out.push_str(&format!("{begin}{words} -->\n{}\n{end}", part(words).trim_end()));
        rest = after;
    }
    out + rest
}

fn reference(name: &str) -> PathBuf {
    repository().join("docs/reference").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(reference(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
fn assert_generated(name: &str, generated: &str) {
    if std::env::var_os("OUTBOARD_REGENERATE").is_some() {
        fs::write(reference(name), generated).expect("the page can be written");
        return;
    }
    assert!(
        read(name) == generated,
        "docs/reference/{name} is out of date; run \
         OUTBOARD_REGENERATE=1 cargo test -p outboard-e2e --test documentation"
    );
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
