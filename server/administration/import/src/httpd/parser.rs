//! The syntax of Apache httpd: lines, continuations, quotes, comments and sections.
//!
//! Invariant: the depth of sections is bounded.

use crate::directive::Directive;
use crate::includes::Includes;
use crate::read::{ImportError, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

const DEPTH_MAX: usize = 32;

/// Parses a file with the files that it includes, unless a pattern names them.
pub(crate) fn parse(
    file: &Path,
    text: &str,
    read: Read<'_>,
) -> Result<Vec<Directive>, ImportError> {
    let all = statements(file, text)?;
    let root = all.iter().find(|one| one.name == "serverroot");
    let root = root.map(|one| PathBuf::from(one.argument(0)));
    let base = root.as_deref().or(file.parent()).unwrap_or(Path::new(""));
    Ok(Includes::new(read, base, &["include", "includeoptional"], statements).resolve(all))
}

fn statements(file: &Path, text: &str) -> Result<Vec<Directive>, ImportError> {
    let file = Rc::new(file.to_owned());
    let error = |line: usize, message: String| ImportError::Syntax {
        file: file.as_ref().clone(),
        line,
        message,
    };
    // The open sections, the first of which is the file.
    let mut open: Vec<Directive> = vec![directive(&file, 0, "", "", Vec::new())];
    for (line, text) in logical_lines(text) {
        if let Some(name) = text.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim().to_ascii_lowercase();
            let closed = open.pop().filter(|one| one.name.strip_prefix('<') == Some(name.as_str()));
            let (Some(closed), Some(outer)) = (closed, open.last_mut()) else {
                return Err(error(line, format!("`</{name}>` closes no section")));
            };
            outer.children.push(closed);
            continue;
        }
        let is_section = text.starts_with('<');
        let inner = if is_section { text.strip_suffix('>').unwrap_or(&text) } else { &text };
        let mut words =
            words(inner).ok_or_else(|| error(line, "a quoted text has no end".to_owned()))?;
        if words.is_empty() {
            continue;
        }
        let word = words.remove(0);
        let statement = directive(&file, line, &word, &text, words);
        if is_section {
            if open.len() > DEPTH_MAX {
                return Err(error(line, "sections are nested too deep".to_owned()));
            }
            open.push(statement);
        } else if let Some(outer) = open.last_mut() {
            outer.children.push(statement);
        }
    }
    match open.as_slice() {
        [whole] => Ok(whole.children.clone()),
        [.., last] => Err(error(last.line, format!("`{}>` is not closed", last.name))),
        [] => Ok(Vec::new()),
    }
}

fn directive(
    file: &Rc<PathBuf>,
    line: usize,
    word: &str,
    text: &str,
    arguments: Vec<String>,
) -> Directive {
    Directive {
        name: word.to_ascii_lowercase(),
        word: word.to_owned(),
        line_text: Some(text.to_owned()),
        arguments,
        children: Vec::new(),
        file: file.clone(),
        line,
    }
}

/// Lines with their continuations, each with the number of its first line; no comments.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut all = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let mut whole = line.trim().to_owned();
        while whole.ends_with('\\') {
            whole.pop();
            match lines.next() {
                Some((more, _)) => whole.push_str(more.trim()),
                None => break,
            }
        }
        if !whole.is_empty() && !whole.starts_with('#') {
            all.push((number, whole));
        }
    }
    all
}

/// The words of a line; `None` if a quote is open at its end.
fn words(line: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut chars = line.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        let Some(first) = chars.next() else { return Some(all) };
        let mut word = String::new();
        if first == '"' || first == '\'' {
            loop {
                match chars.next()? {
                    c if c == first => break,
                    '\\' => match chars.next()? {
                        c if c == first => word.push(c),
                        c => word.extend(['\\', c]),
                    },
                    c => word.push(c),
                }
            }
        } else {
            word.push(first);
            while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
                word.push(c);
            }
        }
        all.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_quotes_and_continuations_are_parsed() {
        let text = "# c\n<VirtualHost *:80>\n Header set X \"a \\\"b\\\"\" \\\n  'c d'\n</virtualhost>\nA \\.x$\n";
        let all = statements(Path::new("x"), text).unwrap();
        assert_eq!((all[0].name.as_str(), all[0].arguments[0].as_str()), ("<virtualhost", "*:80"));
        assert_eq!(all[0].children[0].arguments, ["set", "X", "a \"b\"", "c d"]);
        assert_eq!((all[0].children[0].line, all[1].line), (3, 6));
        assert_eq!(all[1].arguments, ["\\.x$"]);
    }

    #[test]
    fn broken_files_are_errors() {
        for text in ["<A>", "</A>", "<A>\n</B>", "X \"a", &"<A>\n".repeat(100)] {
            assert!(statements(Path::new("x"), text).is_err(), "{text}");
        }
    }
}
