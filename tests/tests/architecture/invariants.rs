//! Headers that state an invariant: something in the file notices when it is broken.
//!
//! Invariant: there are no exceptions. What a type enforces has nothing to check, and its header says so.

use super::repository;
use super::source::{Crate, module_of, sources};
use regex::Regex;
use std::fs;
use std::sync::LazyLock;

/// Crates whose invariants are checked.
const CRATES: [&str; 3] = ["server/php/ring", "server/php/php-pool", "server/process/reactor"];

static ASSERTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(?:debug_)?assert(?:_eq|_ne)?!").unwrap());

/// The comment at the beginning of a file, in one line.
fn header(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Whether a file checks what its header promises. `production` is its text without comments and tests; one without
/// functions only declares the files that do.
fn is_checked(header: &str, production: &str) -> bool {
    !header.contains("Invariant")
        || header.contains("by its type")
        || ASSERTION.is_match(production)
        || !production.contains("fn ")
}

#[test]
fn an_invariant_of_a_header_is_checked_in_its_file() {
    let mut unchecked = Vec::new();
    for path in CRATES {
        let folder = repository().join(path);
        let code = Crate::read(&folder);
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let module = module_of(file.strip_prefix(folder.join("src")).unwrap());
            let Some(production) = code.files.get(&module) else { continue };
            if !is_checked(&header(&fs::read_to_string(&file).unwrap()), production) {
                unchecked.push(file.strip_prefix(repository()).unwrap().display().to_string());
            }
        }
    }
    assert!(unchecked.is_empty(), "an assertion, or \"by its type\": {unchecked:#?}");
}

#[test]
fn an_assertion_a_type_or_a_declaration_is_a_check() {
    let header = header("//! A queue.\n//!\n//! Invariant: it is\n//! bounded.\nfn push() {}\n");
    assert_eq!(header, "A queue.  Invariant: it is bounded.");
    assert!(!is_checked(&header, "fn push() { is_assert(); }"));
    assert!(is_checked(&header, "fn push() { debug_assert_eq!(1, 1); }"));
    assert!(is_checked(&header, "mod queue; pub use queue::Queue;"));
    assert!(is_checked("Invariant: it is bounded (by its type).", "fn push() {}"));
    assert!(is_checked("A queue.", "fn push() {}"));
}
