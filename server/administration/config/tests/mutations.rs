//! No input makes the crate panic, and every error points into the given text.
//!
//! Valid files are broken in every small way: deterministic, so a failure repeats.

use outboard_config::{Config, Kind};
use std::path::Path;

const REFERENCE: &str = include_str!("../../../../docs/reference/configuration.md");

/// Tokens that are hard to parse, inserted at random positions.
const PIECES: &[&str] = &[
    "\"",
    "'",
    "'''",
    "\"\"\"",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\n",
    "\r",
    "\t",
    "\0",
    "#",
    "-1",
    "0o777",
    "1e400",
    "nan",
    "true",
    "99999999999999999999",
    "\\u0000",
    "\\",
    "é",
    "\u{feff}",
    "\u{1b}",
    "$",
    "${",
    "(",
    "*",
    "auto",
    "unix:",
    "%",
    "1979-05-27",
    "[app.x]",
    "listen",
    "root",
    "a.b.c",
];

/// Examples of the reference: every section is in one of them.
fn corpus() -> Vec<&'static str> {
    let examples = REFERENCE.split("```toml\n").skip(1);
    examples.filter_map(|rest| rest.split("```").next()).collect()
}

/// xorshift64: enough to choose places.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

fn place(text: &str, dice: &mut Dice) -> usize {
    text.floor_char_boundary(dice.below(text.len() + 1))
}

fn mutate(text: &mut String, corpus: &[&str], dice: &mut Dice) {
    let (one, other) = (place(text, dice), place(text, dice));
    let (from, to) = (one.min(other), one.max(other));
    match dice.below(6) {
        0 => text.insert_str(from, PIECES[dice.below(PIECES.len())]),
        1 => text.truncate(from),
        2 => {
            let cut: usize = text[from..to].chars().take(4).map(char::len_utf8).sum();
            text.replace_range(from..from + cut, "");
        }
        3 => {
            let copy = text[from..to].to_owned();
            text.insert_str(from, &copy);
        }
        4 => text.push_str(corpus[dice.below(corpus.len())]),
        _ => {
            let lines: Vec<&str> = text.lines().collect();
            let mut swapped: Vec<&str> = lines.clone();
            if !lines.is_empty() {
                swapped.swap(dice.below(lines.len()), dice.below(lines.len()));
            }
            *text = swapped.join("\n");
        }
    }
    text.truncate(text.floor_char_boundary(4000));
}

fn check(text: &str) {
    let Err(errors) = Config::parse(text, Path::new("/nowhere/outboard.toml")) else { return };
    assert!(errors.iter().count() >= 1);
    let lines: Vec<&str> = text.split('\n').collect();
    for error in &errors {
        assert!(!error.message.is_empty());
        assert_ne!(error.kind, Kind::Unreadable, "schema and types differ: {errors}");
        let Some(position) = &error.position else { continue };
        let line = lines[position.line - 1].trim_end_matches('\r');
        assert_eq!(position.text, line, "{errors}\nin\n{text}");
        assert!(
            (1..=lines[position.line - 1].chars().count() + 2).contains(&position.column),
            "{errors}"
        );
    }
    assert!(!errors.render(true).is_empty());
    serde_json::to_string(&errors).unwrap();
}

#[test]
fn errors_in_broken_files_point_into_them() {
    let corpus = corpus();
    for seed in 1..=4000 {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut text = corpus[dice.below(corpus.len())].to_owned();
        for _ in 0..=dice.below(4) {
            mutate(&mut text, &corpus, &mut dice);
            check(&text);
        }
    }
}

#[test]
fn random_input_gets_an_error() {
    for seed in 1..=500 {
        let mut dice = Dice(0x2545_f491_4f6c_dd1d_u64.wrapping_mul(seed));
        let text: String = (0..dice.below(60)).map(|_| PIECES[dice.below(PIECES.len())]).collect();
        check(&text);
    }
}
