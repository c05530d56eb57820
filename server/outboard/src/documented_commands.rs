//! The commands that the pages of the documentation name. Compiled into the tests of both programs: `outboard` and
//! `outboard-lab`.

use std::fs;
use std::path::{Path, PathBuf};

/// Each command with its page, split into words.
pub(crate) fn all() -> Vec<(PathBuf, Vec<String>)> {
    let mut all = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let commands = commands(&text);
        let commands = commands.iter().map(|line| words(line));
        // A pattern, and not a command.
        let is_whole = |words: &Vec<String>| {
            !words.iter().any(|word| word.contains('…') || word.contains('|'))
        };
        all.extend(commands.filter(is_whole).map(|words| (page.clone(), words)));
    }
    all
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    let examples = fs::read_dir(root.join("examples")).expect("a folder");
    pages.extend(examples.map(|entry| entry.expect("an entry").path().join("README.md")));
    for folder in ["docs/guide", "docs/reference"] {
        let entries = fs::read_dir(root.join(folder)).expect("a folder");
        pages.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md") && page.is_file());
    pages
}

/// Lines of fenced blocks that begin with the command, joined where they go on.
fn commands(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_shell = false;
    for line in text.replace("\\\n", " ").lines() {
        if let Some(language) = line.strip_prefix("```") {
            is_shell = ["sh", "console"].contains(&language.trim());
            continue;
        }
        let line = line.trim_start_matches("$ ").trim_start_matches("sudo ");
        let command = line.strip_prefix("target/release/").unwrap_or(line);
        if is_shell && command.starts_with("outboard ") {
            lines.push(command.to_owned());
        }
    }
    lines
}

/// As a shell splits it, as far as the pages need that: quotes, and an end at `#`, `;`, `>` or `&`.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            (None, '#' | ';' | '>' | '&') if words.last().is_some_and(String::is_empty) => break,
            (None, ' ') => words.push(String::new()),
            (_, character) => words.last_mut().expect("one is there").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
