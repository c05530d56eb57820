//! Diagnostics as text for people.

use super::{Diagnostic, Diagnostics, Position};
use std::fmt::Write;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const CYAN: &str = "\x1b[36m";
const RESET: &str = "\x1b[0m";

/// The longest piece of a line that is shown, in characters.
const WINDOW: usize = 120;

pub(super) fn all(diagnostics: &Diagnostics, color: bool) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        let file = printable(&diagnostics.file_of(diagnostic).to_string_lossy());
        one(&mut out, &file, diagnostic, Paint { on: color });
    }
    out
}

#[derive(Clone, Copy)]
struct Paint {
    on: bool,
}

impl Paint {
    fn wrap(self, color: &str, text: &str) -> String {
        if self.on { format!("{color}{text}{RESET}") } else { text.to_owned() }
    }
}

// Writing to a String cannot fail, so the results of `writeln!` are dropped.
fn one(out: &mut String, file: &str, diagnostic: &Diagnostic, paint: Paint) {
    let place = place(file, diagnostic);
    let message = printable(&diagnostic.message);
    let _ = writeln!(out, "{} {}", paint.wrap(BOLD, &place), paint.wrap(RED, &message));
    if let Some(position) = &diagnostic.position {
        excerpt(out, position, paint);
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(out, "  {} {}", paint.wrap(CYAN, "hint:"), printable(hint));
    }
}

/// All of it in a line, without the excerpt.
pub(super) fn line(file: &str, diagnostic: &Diagnostic) -> String {
    let hint = diagnostic.hint.as_ref().map_or(String::new(), |hint| format!("; {hint}"));
    printable(&format!("{} {}{hint}", place(file, diagnostic), diagnostic.message))
}

fn place(file: &str, diagnostic: &Diagnostic) -> String {
    match &diagnostic.position {
        Some(at) => format!("{file}:{}:{}:", at.line, at.column),
        None => format!("{file}:"),
    }
}

/// The line with the place underlined. A long line is cut to a window around the place.
fn excerpt(out: &mut String, at: &Position, paint: Paint) {
    let column = at.column - 1;
    let skipped = if column + at.length.min(WINDOW / 2) > WINDOW { column - WINDOW / 4 } else { 0 };
    let shown: String = at.text.chars().skip(skipped).take(WINDOW).collect();
    let number = at.line.to_string();
    let gutter = " ".repeat(number.len());
    let dots = if skipped > 0 { "…" } else { "" };
    let _ = writeln!(out, "  {number} | {dots}{}", printable(&shown));

    // Tabs stay tabs under the text, so that the underline is aligned.
    let indent: String = dots
        .chars()
        .chain(shown.chars().take(column - skipped))
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let room = shown.chars().count().saturating_sub(column - skipped).max(1);
    let carets = "^".repeat(at.length.min(room));
    let _ = writeln!(out, "  {gutter} | {indent}{}", paint.wrap(RED, &carets));
}

/// Control characters other than tab become U+FFFD, one for one so that columns are preserved.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '\u{FFFD}' } else { c }).collect()
}
