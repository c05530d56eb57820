//! [`globs`]: a regular expression as texts in which `*` stands for any characters, as conditions have them.
//!
//! Invariants: the texts match what the expression matches, no more and no less; their number is bounded.

/// More alternatives are not a list that someone has written.
const MAX: usize = 64;

/// The ends of the text, while alternatives are combined.
const START: char = '\u{2}';
const END: char = '\u{3}';

/// `None` if there are no such texts.
pub(crate) fn globs(pattern: &str) -> Option<Vec<String>> {
    let pattern = pattern.strip_prefix("(?i)").unwrap_or(pattern);
    let mut rest = pattern.chars().peekable();
    let all = alternatives(&mut rest, 0)?;
    if rest.next().is_some() {
        return None;
    }
    all.into_iter().map(|one| anchored(&one)).collect()
}

fn anchored(text: &str) -> Option<String> {
    let (start, text) = text.strip_prefix(START).map_or(("*", text), |rest| ("", rest));
    let (end, text) = text.strip_suffix(END).map_or(("*", text), |rest| ("", rest));
    if text.contains([START, END]) {
        return None;
    }
    let mut whole = format!("{start}{text}{end}");
    while whole.contains("**") {
        whole = whole.replace("**", "*");
    }
    Some(whole)
}

type Rest<'t> = std::iter::Peekable<std::str::Chars<'t>>;

fn alternatives(rest: &mut Rest<'_>, depth: usize) -> Option<Vec<String>> {
    if depth > 8 {
        return None;
    }
    let mut all = Vec::new();
    loop {
        all.extend(sequence(rest, depth)?);
        if all.len() > MAX {
            return None;
        }
        if rest.next_if_eq(&'|').is_none() {
            return Some(all);
        }
    }
}

fn sequence(rest: &mut Rest<'_>, depth: usize) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    while let Some(next) = rest.next_if(|c| !matches!(c, '|' | ')')) {
        let mut pieces = atom(next, rest, depth)?;
        match rest.peek() {
            Some('?') => {
                rest.next();
                pieces.push(String::new());
            }
            Some('*' | '+' | '{') => return None,
            _ => {}
        }
        let combined =
            all.iter().flat_map(|one| pieces.iter().map(move |piece| format!("{one}{piece}")));
        all = combined.collect();
        if all.len() > MAX {
            return None;
        }
    }
    Some(all)
}

fn atom(first: char, rest: &mut Rest<'_>, depth: usize) -> Option<Vec<String>> {
    let one = |text: String| Some(vec![text]);
    match first {
        '^' => one(START.to_string()),
        '$' => one(END.to_string()),
        '.' => rest.next_if_eq(&'*').and_then(|_| one("*".to_owned())),
        '\\' => one(rest.next().filter(|c| !c.is_alphanumeric() && *c != '*')?.to_string()),
        '(' => {
            if rest.next_if_eq(&'?').is_some() {
                rest.next_if_eq(&':')?;
            }
            let inner = alternatives(rest, depth + 1)?;
            rest.next_if_eq(&')').map(|_| inner)
        }
        '[' => {
            let mut class = Vec::new();
            loop {
                match rest.next()? {
                    ']' if !class.is_empty() => return Some(class),
                    c if c.is_alphanumeric() => class.push(c.to_string()),
                    _ => return None,
                }
            }
        }
        ')' | ']' | '{' | '}' | '*' | '+' | '?' => None,
        c if c.is_control() => None,
        c => one(c.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_and_anchors_become_texts() {
        for (pattern, expected) in [
            ("bot", &["*bot*"][..]),
            ("^bot$", &["bot"]),
            ("^bot", &["bot*"]),
            ("(?i)a|b", &["*a*", "*b*"]),
            ("^https?://a\\.test/", &["http://a.test/*", "https://a.test/*"]),
            ("^(?:a|b.*)c$", &["ac", "b*c"]),
            ("(^|; )beta=1", &["beta=1*", "*; beta=1*"]),
            ("TRAC[EK]", &["*TRACE*", "*TRACK*"]),
            ("", &["*"]),
            (".*", &["*"]),
        ] {
            let mut found = globs(pattern).unwrap_or_else(|| panic!("{pattern}"));
            let mut expected: Vec<&str> = expected.to_vec();
            found.sort();
            expected.sort_unstable();
            assert_eq!(found, expected, "{pattern}");
        }
    }

    #[test]
    fn what_no_text_matches_alone_is_none() {
        for pattern in [
            "a.b",
            "a+",
            "a*",
            "[0-9]",
            "[^a]",
            "\\d",
            "a{2}",
            "(a",
            "a)",
            "\\*",
            "a\\",
            "a^b",
            "(?!a)",
            "[",
            "[]",
            &"(a|b)".repeat(7),
        ] {
            assert_eq!(globs(pattern), None, "{pattern}");
        }
    }
}
