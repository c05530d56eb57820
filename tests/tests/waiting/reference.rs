//! The tables of `docs/reference/waiting.md` are made of the rows, so what the page says is tested.
//!
//! `OUTBOARD_REGENERATE=1 cargo test -p outboard-e2e --test waiting reference` writes them; without
//! it the test compares.

use crate::ROWS;
use crate::rows::Row;
use crate::stage::Service;
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/waiting.md");
const BEGIN: &str = "<!-- rows -->";
const END: &str = "<!-- end rows -->";

/// The columns: what each promises, by the tests that hold it to that. A test that ends with
/// the column's word, as `long_others`, counts as well.
const COLUMNS: &[(&str, &[(&str, &str)])] = &[
    ("result as when blocking", &[("answers", "yes"), ("turns", "in turns")]),
    ("others are served", &[("others", "yes"), ("turns", "yes")]),
    ("time-out", &[("server_time_out", "the server's"), ("time_out", "yes")]),
    (
        "errors",
        &[("refused", "refused"), ("bad_name", "bad name"), ("bad_credentials", "bad credentials")],
    ),
    ("peer closes", &[("closing", "yes")]),
    ("`cancel()`", &[("cancelled", "yes")]),
    ("deadline", &[("deadline", "yes")]),
    ("a second user", &[("shared", "is refused"), ("by_two", "is served too")]),
];

#[test]
fn the_page_is_what_the_tests_say() {
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the rows");
    let (_, after) = rest.split_once(END).expect("the place has an end");
    let made = format!("{before}{BEGIN}\n{}\n{END}{after}", table());
    if std::env::var_os("OUTBOARD_REGENERATE").is_some() {
        std::fs::write(PAGE, &made).expect("the page can be written");
    }
    assert!(
        std::fs::read_to_string(PAGE).expect("it was there") == made,
        "docs/reference/waiting.md is not what the tests say; run \
         OUTBOARD_REGENERATE=1 cargo test -p outboard-e2e --test waiting reference"
    );
}

#[test]
fn every_test_of_a_row_is_in_a_column() {
    for row in ROWS {
        for check in row.checks {
            let is_known = |(word, _): &(&str, &str)| is_named(check, word);
            let found = COLUMNS.iter().any(|(_, words)| words.iter().any(is_known));
            assert!(found, "{} has a test {check} that no column shows", row.title);
        }
    }
}

fn table() -> String {
    let mut text = String::from("| what | of |");
    let mut line = String::from("|---|---|");
    for (title, _) in COLUMNS {
        write!(text, " {title} |").expect("a string takes it");
        line.push_str("---|");
    }
    write!(text, "\n{line}").expect("a string takes it");
    for row in ROWS {
        write!(text, "\n| {} | {} |", row.title, service(row.service)).expect("a string takes it");
        for (_, words) in COLUMNS {
            write!(text, " {} |", cell(row, words)).expect("a string takes it");
        }
    }
    text
}

fn cell(row: &Row, words: &[(&str, &str)]) -> String {
    let mut said: Vec<&str> = Vec::new();
    for check in row.checks {
        let shown = words.iter().find(|(word, _)| is_named(check, word));
        said.extend(shown.map(|(_, shown)| *shown));
    }
    said.join(", ")
}

/// `time_out` is not what `server_time_out` is called: the longer names stand first.
fn is_named(check: &str, word: &str) -> bool {
    check == word || check.ends_with(&format!("_{word}"))
}

fn service(service: Service) -> &'static str {
    match service {
        Service::Http => "HTTP, TCP",
        Service::Https => "HTTPS, TLS",
        Service::MariaDb => "MariaDB",
        Service::Postgres => "PostgreSQL",
        Service::Redis => "Redis",
        Service::Memcached => "memcached",
        Service::Nobody => "the machine",
    }
}
