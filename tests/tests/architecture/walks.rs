//! The ways of requests through the source: `walks.txt` lists their steps, the tests here check each of them, and count.
//!
//! Invariant: a step of the list is a function of that file, and the step above it calls its name; so the list fails
//! when a way changes.

use super::repository;
use super::source::{Crate, bare, body_len};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const LIST: &str = include_str!("walks.txt");

/// A step, and the one that calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    /// CRATE/FILE.
    file: String,
    function: String,
    caller: Option<usize>,
    /// It only passes a call on.
    is_via: bool,
}

/// A line with its indentation.
#[derive(Debug, Clone)]
struct Line<'a> {
    depth: usize,
    text: &'a str,
}

/// The sections of the list: their heads, and their lines.
fn sections(list: &str) -> Vec<(&str, Vec<Line<'_>>)> {
    let mut sections: Vec<(&str, Vec<Line<'_>>)> = Vec::new();
    for line in list.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let text = line.trim_start();
        match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            Some(head) => sections.push((head, Vec::new())),
            None => {
                let lines = &mut sections.last_mut().expect("a section comes first").1;
                lines.push(Line { depth: (line.len() - text.len()) / 2, text });
            }
        }
    }
    sections
}

/// The lines with those of the parts in their places.
fn expanded<'a>(lines: &[Line<'a>], parts: &BTreeMap<&str, Vec<Line<'a>>>) -> Vec<Line<'a>> {
    let mut all = Vec::new();
    let mut rest = lines;
    while let Some((line, after)) = rest.split_first() {
        let below = after.iter().take_while(|next| next.depth > line.depth).count();
        let Some(part) = line.text.strip_prefix("-> ") else {
            all.push(line.clone());
            rest = after;
            continue;
        };
        let part = parts.get(part).unwrap_or_else(|| panic!("there is no part {part}"));
        let inner = expanded(&after[..below], parts);
        for step in expanded(part, parts) {
            let depth = line.depth + step.depth;
            match step.text {
                // The lines below the reference are one deeper than it.
                "*" => all.extend(inner.iter().map(|step| Line {
                    depth: depth + step.depth - line.depth - 1,
                    text: step.text,
                })),
                text => all.push(Line { depth, text }),
            }
        }
        rest = &after[below..];
    }
    all
}

fn steps(lines: &[Line<'_>]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for line in lines {
        let (mark, text) = line.text.rsplit_once(' ').unwrap_or(("", line.text));
        let (file, function) = text.split_once("::").unwrap_or_else(|| panic!("no step: {text}"));
        open.retain(|(depth, _)| *depth < line.depth);
        let caller = open.last().map(|(_, step)| *step).filter(|_| mark != "resumed");
        open.push((line.depth, steps.len()));
        steps.push(Step {
            file: file.to_owned(),
            function: function.to_owned(),
            caller,
            is_via: mark == "via",
        });
    }
    steps
}

/// How many files, and those that are entered again after control had left them.
fn count(steps: &[Step]) -> (usize, Vec<&str>) {
    let mut seen = BTreeSet::new();
    let mut entered_again = Vec::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| !step.is_via) {
        let file_of = |other: usize| &*steps[other].file;
        let is_call_within = step.caller.is_some_and(|caller| file_of(caller) == step.file);
        // The step before it by the same caller.
        let before = steps[..at].iter().rposition(|before| before.caller == step.caller);
        let before = before.filter(|_| step.caller.is_some());
        let is_in_a_row = before.is_some_and(|before| file_of(before) == step.file);
        if !seen.insert(&step.file) && !is_call_within && !is_in_a_row {
            entered_again.push(&*step.file);
        }
    }
    (seen.len(), entered_again)
}

/// The text of each file of the list, Rust and C.
struct Source {
    crates: BTreeMap<String, Crate>,
    folders: BTreeMap<String, std::path::PathBuf>,
}

impl Source {
    fn read() -> Self {
        let folders = super::crates()
            .into_iter()
            .map(|folder| (folder.file_name().unwrap().to_str().unwrap().to_owned(), folder));
        let folders: BTreeMap<_, _> = folders.collect();
        let crates = folders.iter().map(|(name, folder)| (name.clone(), Crate::read(folder)));
        Self { crates: crates.collect(), folders }
    }

    fn text(&self, file: &str) -> Option<String> {
        let (name, path) = file.split_once('/')?;
        if file.ends_with(".c") {
            return fs::read_to_string(self.folders.get(name)?.join(path))
                .ok()
                .map(|text| bare(&text));
        }
        let module: Vec<String> = path.split('/').map(str::to_owned).collect();
        self.crates.get(name)?.files.get(&module).cloned()
    }
}

/// The bodies of all functions of a file, by name; a name may stand for several.
fn functions(text: &str) -> BTreeMap<String, String> {
    let head =
        Regex::new(r"(?m)\bfn (\w+)|^\w[\w \*]*?\b(\w+)\((?:[^;{}()]|\([^()]*\))*\)\s*$").unwrap();
    let mut bodies = BTreeMap::<String, String>::new();
    for found in head.captures_iter(text) {
        let name = found.get(1).or(found.get(2)).expect("one of both").as_str();
        let after = &text[found.get(0).unwrap().end()..];
        let Some(start) = after.find(['{', ';']).filter(|at| after[*at..].starts_with('{')) else {
            continue;
        };
        let body = &after[start..];
        bodies.entry(name.to_owned()).or_default().push_str(&body[..body_len(body)]);
    }
    bodies
}

/// Whether a function, or one of its file that it calls, calls this name.
fn calls(functions: &BTreeMap<String, String>, function: &str, name: &str) -> bool {
    let call = Regex::new(r"\b(\w+)(?:::<[^>]*>)?\(").unwrap();
    let (mut open, mut seen) = (vec![function.to_owned()], BTreeSet::new());
    while let Some(function) = open.pop() {
        let Some(body) = functions.get(&function) else { continue };
        for called in call.captures_iter(body).map(|found| found[1].to_owned()) {
            if called == name {
                return true;
            }
            if seen.insert(called.clone()) {
                open.push(called);
            }
        }
    }
    false
}

#[test]
fn each_step_of_a_walk_is_called_by_the_one_above() {
    let source = Source::read();
    let sections = sections(LIST);
    let parts: BTreeMap<&str, Vec<Line<'_>>> = sections.iter().cloned().collect();
    let mut known = BTreeMap::new();
    let mut errors = BTreeSet::new();
    for (_, lines) in sections.iter().filter(|(head, _)| head.contains(": ")) {
        let steps = steps(&expanded(lines, &parts));
        for step in &steps {
            let functions = known.entry(step.file.clone()).or_insert_with(|| {
                source.text(&step.file).map(|text| functions(&text)).unwrap_or_default()
            });
            if !functions.contains_key(&step.function) {
                errors.insert(format!("{}::{} does not exist", step.file, step.function));
            }
        }
        for step in &steps {
            let Some(caller) = step.caller.map(|caller| &steps[caller]) else { continue };
            if !calls(&known[&caller.file], &caller.function, &step.function) {
                let Step { file, function, .. } = caller;
                errors.insert(format!("{file}::{function} does not call {}", step.function));
            }
        }
    }
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Prints the counts with `--nocapture`.
#[test]
fn walks_stay_within_their_limits() {
    let sections = sections(LIST);
    let parts: BTreeMap<&str, Vec<Line<'_>>> = sections.iter().cloned().collect();
    let mut beyond = Vec::new();
    for (head, lines) in &sections {
        let Some((name, limits)) = head.split_once(": ") else { continue };
        let (most_files, most_re_entries) = limits.split_once(", ").expect("two limits");
        let steps = steps(&expanded(lines, &parts));
        let (files, re_entries) = count(&steps);
        let row = format!(
            "{name}: {files} files of {most_files}, {} re-entries of {most_re_entries}: {}",
            re_entries.len(),
            re_entries.join(", ")
        );
        println!("{row}");
        if files > most_files.parse().unwrap()
            || re_entries.len() > most_re_entries.parse().unwrap()
        {
            beyond.push(row);
        }
    }
    assert!(beyond.is_empty(), "{beyond:#?}");
}

#[test]
fn files_and_re_entries_are_counted() {
    let list = "[w: 1, 1]\na/x::f\n  -> p\n    b/z::i\n  a/x::own\n  b/y::h\n[p]\nb/y::g\nb/y::h\n*\nresumed a/x::k\n";
    let sections = sections(list);
    let parts: BTreeMap<&str, Vec<Line<'_>>> = sections.iter().cloned().collect();
    let steps = steps(&expanded(&sections[0].1, &parts));
    let names: Vec<_> = steps.iter().map(|step| &*step.function).collect();
    assert_eq!(names, ["f", "g", "h", "i", "k", "own", "h"]);
    assert_eq!(steps[3].caller, Some(0));
    // `k` is an event in x, and the last `h` comes back to y.
    assert_eq!(count(&steps), (3, vec!["a/x", "b/y"]));
}

#[test]
fn calls_are_found_through_functions_of_the_file() {
    let text =
        "fn a() { b(1) }\nfn b(n: u8) { x::c::<u8>(n) }\nstatic void\nd(int n)\n{\n\te(n);\n}\n";
    let functions = functions(text);
    assert!(calls(&functions, "a", "c") && !calls(&functions, "b", "a"));
    assert!(Path::new(&repository()).is_dir());
}
