//! The page about a PHP error in development: PHP's message, and the source around each place that
//! it names.
//!
//! Called for an error response of PHP without a page of its own, and for code that does not start.
//! Invariants: all text of PHP and of files is escaped; only files with a suffix of PHP sources are
//! opened.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Lines before and after the named one.
const AROUND: usize = 6;
/// Longer lines are truncated, and a place beyond this line of a file is not shown.
const LINE_BYTES: usize = 400;
const LINES_MAX: usize = 100_000;
/// Frames of a backtrace whose source is shown.
const FRAMES_MAX: usize = 12;
/// Suffixes of PHP source files.
const SOURCES: [&str; 5] = [".php", ".inc", ".phtml", ".phpt", ".module"];

/// A parsed error message.
#[derive(Debug, PartialEq, Eq)]
struct Failure<'a> {
    /// "Fatal error", "Parse error".
    kind: &'a str,
    message: &'a str,
    place: Option<Place<'a>>,
    frames: Vec<Frame<'a>>,
}

/// A line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place<'a> {
    file: &'a str,
    line: usize,
}

/// A call of the backtrace.
#[derive(Debug, PartialEq, Eq)]
struct Frame<'a> {
    text: &'a str,
    place: Option<Place<'a>>,
}

/// The page for a browser.
pub fn html(message: &str, request: &str) -> String {
    let failure = parse(message);
    let mut page = String::with_capacity(8 * 1024);
    // Writing to a String does not fail.
    let _ = put_html(&mut page, &failure, message, request);
    page
}

/// The same as text.
pub fn plain(message: &str) -> String {
    let failure = parse(message);
    let mut page = format!("{}\n", message.trim_end());
    if let Some(place) = failure.place {
        let _ = put_plain_excerpt(&mut page, place);
    }
    page
}

fn put_plain_excerpt(page: &mut String, place: Place<'_>) -> std::fmt::Result {
    let lines = excerpt(place);
    if !lines.is_empty() {
        writeln!(page, "\n{}:{}", place.file, place.line)?;
    }
    for (number, text) in lines {
        let mark = if number == place.line { '>' } else { ' ' };
        writeln!(page, "{mark}{number:>6} | {text}")?;
    }
    Ok(())
}

fn put_html(
    page: &mut String,
    failure: &Failure<'_>,
    full_message: &str,
    request: &str,
) -> std::fmt::Result {
    let message = escape(failure.message);
    let title = message.lines().next().unwrap_or_default();
    write!(
        page,
        "<!doctype html><html lang=en><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width\"><title>{title}</title>\
         <style>{STYLE}</style><main><p class=kind>{} <span>{}</span></p><h1>{message}</h1>",
        escape(failure.kind),
        escape(request),
    )?;
    if let Some(place) = failure.place {
        put_excerpt(page, place, true)?;
    }
    if !failure.frames.is_empty() {
        page.push_str("<h2>Called from</h2>");
    }
    for frame in &failure.frames {
        put_frame(page, frame)?;
    }
    write!(
        page,
        "<details><summary>PHP’s message</summary><pre class=message>{}</pre></details></main></html>",
        escape(full_message.trim_end())
    )
}

fn put_frame(page: &mut String, frame: &Frame<'_>) -> std::fmt::Result {
    match frame.place {
        Some(place) if !excerpt(place).is_empty() => {
            write!(page, "<details><summary>{}</summary>", escape(frame.text))?;
            put_excerpt(page, place, false)?;
            page.push_str("</details>");
            Ok(())
        }
        _ => write!(page, "<p class=frame>{}</p>", escape(frame.text)),
    }
}

fn put_excerpt(page: &mut String, place: Place<'_>, names_place: bool) -> std::fmt::Result {
    if names_place {
        write!(page, "<p class=place>{}:{}</p>", escape(place.file), place.line)?;
    }
    let lines = excerpt(place);
    if lines.is_empty() {
        return Ok(());
    }
    page.push_str("<pre>");
    for (number, text) in lines {
        let class = if number == place.line { " class=here" } else { "" };
        write!(page, "<span{class}><i>{number}</i>{}\n</span>", escape(&text))?;
    }
    page.push_str("</pre>");
    Ok(())
}

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f6f6f4;color:#223}\
main{max-width:64rem;margin:0 auto;padding:3rem 1.5rem}\
.kind{margin:0;color:#b3261e;font-weight:600}.kind span{color:#667;font-weight:400;margin-left:.6em}\
h1{font-size:1.5rem;line-height:1.3;margin:.3rem 0 1.5rem;white-space:pre-wrap;\
overflow-wrap:anywhere}h2{font-size:1rem;margin:2rem 0 .5rem}\
.place,.frame,summary{font:14px/1.6 ui-monospace,monospace;margin:.2rem 0;overflow-wrap:anywhere}\
summary{cursor:pointer}\
pre{font:14px/1.6 ui-monospace,monospace;background:#fff;border:1px solid #ddd;border-radius:6px;\
padding:.6rem 0;margin:.3rem 0 1rem;overflow:auto}pre span{display:block;padding:0 1rem}\
pre i{display:inline-block;width:4ch;margin-right:1.5ch;text-align:right;color:#99a;\
font-style:normal;user-select:none}.here{background:#fde7e5;box-shadow:inset 3px 0 #b3261e}\
.message{padding:.6rem 1rem;white-space:pre-wrap}details{margin:.2rem 0}\
@media(prefers-color-scheme:dark){body{background:#15181d;color:#dde}\
pre{background:#1c2027;border-color:#333a44}.here{background:#43201f}.kind{color:#ff8a80}}";

/// Parses a message of PHP. That of a start that failed has other text before it.
fn parse(text: &str) -> Failure<'_> {
    let (kind, rest) = ["Parse error: ", "Fatal error: ", "Recoverable fatal error: ", "Warning: "]
        .iter()
        .find_map(|kind| {
            let at = text.find(&format!("PHP {kind}"))?;
            let kind = kind.trim_end_matches(": ");
            Some((kind, text[at + "PHP ".len() + kind.len() + 1..].trim_start()))
        })
        .unwrap_or(("PHP failed", text.trim()));
    let (message, trace) = rest.split_once("\nStack trace:\n").unwrap_or((rest, ""));
    // Lines after an error without a trace belong to another message.
    let lines_of_message = match trace {
        "" => message.lines().next().unwrap_or_default(),
        _ => message,
    };
    let (message, place) = split_place(lines_of_message);
    let frames = trace.lines().filter(|line| line.starts_with('#')).take(FRAMES_MAX);
    Failure { kind, message, place, frames: frames.map(frame).collect() }
}

/// "message in /file.php:12", "message in /file.php on line 12".
fn split_place(text: &str) -> (&str, Option<Place<'_>>) {
    let Some((message, place)) = text.rsplit_once(" in /") else { return (text, None) };
    let start = text.len() - place.len() - 1;
    let place = &text[start..];
    let split = place.rsplit_once(" on line ").or_else(|| place.rsplit_once(':'));
    match split.and_then(|(file, line)| Some(Place { file, line: line.trim().parse().ok()? })) {
        Some(place) => (message, Some(place)),
        None => (text, None),
    }
}

/// "#0 /file.php(12): call()".
fn frame(line: &str) -> Frame<'_> {
    let text = line.split_once(' ').map_or(line, |(_, text)| text);
    let place = text.split_once("): ").and_then(|(place, _)| {
        let (file, line) = place.rsplit_once('(')?;
        file.starts_with('/').then_some(Place { file, line: line.parse().ok()? })
    });
    Frame { text, place }
}

/// The lines around a place with their numbers; none if the file is not a PHP source.
fn excerpt(place: Place<'_>) -> Vec<(usize, String)> {
    let is_source = SOURCES.iter().any(|ending| place.file.ends_with(ending));
    let first = place.line.saturating_sub(AROUND).max(1);
    if !is_source || place.line > LINES_MAX || !Path::new(place.file).is_file() {
        return Vec::new();
    }
    let Ok(file) = File::open(place.file) else { return Vec::new() };
    let lines = BufReader::new(file).split(b'\n').map_while(Result::ok).enumerate();
    let shown = lines.skip(first - 1).take(place.line + AROUND + 1 - first);
    shown.map(|(index, line)| (index + 1, truncated(&String::from_utf8_lossy(&line)))).collect()
}

fn truncated(line: &str) -> String {
    let line = line.trim_end_matches('\r');
    match line.char_indices().nth(LINE_BYTES) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Text as part of a page.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
