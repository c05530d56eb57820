//! Converts regular expressions as used in `.htaccess` files to path patterns.
//!
//! Only expressions with an exact or slightly wider equivalent are converted: literals, `.*`,
//! groups of alternatives, `?` and anchors.

/// More alternatives than real files have.
const PATTERNS_MAX: usize = 64;

/// The patterns that mean what the expression matches, below a directory (without a slash at its end);
/// `None` if there is no equivalent.
pub(super) fn patterns(expression: &str, directory: &str) -> Option<Vec<String>> {
    let expression = expression.strip_prefix("(?i)").unwrap_or(expression);
    let (alternatives, rest) = alternatives(expression)?;
    if !rest.is_empty() {
        return None;
    }
    alternatives.iter().map(|text| pattern(text, directory)).collect()
}

/// An alternative with `*`, `?` and anchors (`^`, `$`) in it.
fn pattern(text: &str, directory: &str) -> Option<String> {
    let (is_begun, text) = match text.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (is_ended, text) = match text.strip_suffix('$') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // In the middle an anchor matches nothing.
    if text.contains(['^', '$']) {
        return None;
    }
    let text = text.trim_start_matches('/');
    let end = if is_ended || text.ends_with('/') || text.ends_with("**") { "" } else { "*" };
    let text = format!("{text}{end}");
    Some(match (is_begun, directory) {
        (true, _) => format!("{directory}/{text}"),
        (false, "") if text.starts_with('*') => text,
        (false, "") => format!("*{text}"),
        (false, _) => format!("{directory}/**{}", text.trim_start_matches('*')),
    })
}

/// The alternatives up to the end or a closing parenthesis, expanded, and the rest of the text.
fn alternatives(mut rest: &str) -> Option<(Vec<String>, &str)> {
    let mut all = Vec::new();
    let mut present = vec![String::new()];
    while let Some(c) = rest.chars().next() {
        let mut after = &rest[c.len_utf8()..];
        let piece = match c {
            ')' => break,
            '|' => {
                all.append(&mut present);
                present.push(String::new());
                rest = after;
                continue;
            }
            '(' => {
                let (inner, closing) = alternatives(after.strip_prefix("?:").unwrap_or(after))?;
                after = closing.strip_prefix(')')?;
                inner
            }
            '.' if after.starts_with('*') || after.starts_with('+') => {
                after = &after[1..];
                vec!["**".to_owned()]
            }
            '.' => vec!["?".to_owned()],
            '\\' => {
                let escaped = after.chars().next().filter(|c| !c.is_alphanumeric())?;
                after = &after[escaped.len_utf8()..];
                vec![escaped.to_string()]
            }
            '[' | ']' | '{' | '}' | '*' | '+' | '?' => return None,
            _ => vec![c.to_string()],
        };
        let is_optional = after.starts_with('?');
        after = after.strip_prefix('?').unwrap_or(after);
        if after.starts_with(['*', '+', '?', '{']) {
            return None;
        }
        let mut next = Vec::new();
        for before in &present {
            next.extend(piece.iter().map(|piece| format!("{before}{piece}")));
            next.extend(is_optional.then(|| before.clone()));
        }
        if next.len() + all.len() > PATTERNS_MAX {
            return None;
        }
        present = next;
        rest = after;
    }
    all.append(&mut present);
    Some((all, rest))
}
