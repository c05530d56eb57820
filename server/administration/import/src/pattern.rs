//! What both servers write as regular expressions, as Outboard's patterns.

use outboard_static_files::without_look_around;
use regex::Regex;

/// Whether Outboard's regular expressions can express it (no look-around, no back-references).
pub(crate) fn is_expressible(pattern: &str) -> bool {
    Regex::new(pattern).is_ok()
}

/// An expression of Outboard that matches at least the same paths; `None` if there is none.
pub(crate) fn wider(pattern: &str) -> Option<String> {
    let written = is_expressible(pattern).then(|| pattern.to_owned());
    written.or_else(|| without_look_around(pattern).filter(|wider| is_expressible(wider)))
}

/// Whether it matches the script that a site runs for its pages, which must not be denied.
pub(crate) fn matches_front_controller(pattern: &str) -> bool {
    let Ok(regex) = Regex::new(pattern) else { return false };
    regex.is_match("/index.php") || regex.is_match("index.php")
}

/// `\.(css|jpe?g)$` as file extensions.
pub(crate) fn extensions(pattern: &str) -> Option<Vec<String>> {
    let body = pattern.strip_prefix("(?i)").unwrap_or(pattern);
    let body = body.trim_start_matches('^').trim_start_matches(".+").trim_start_matches(".*");
    let body = body.strip_prefix("\\.")?.strip_suffix('$')?;
    let inner = match body.strip_prefix('(') {
        Some(group) => group.strip_suffix(')')?.trim_start_matches("?:"),
        None => body,
    };
    let mut all = Vec::new();
    for one in inner.split('|') {
        // One optional letter: `jpe?g`, `woff2?`.
        let both = match one.split_once('?') {
            Some((before, after)) if !before.is_empty() && before.is_ascii() => {
                vec![format!("{before}{after}"), format!("{}{after}", &before[..before.len() - 1])]
            }
            _ => vec![one.to_owned()],
        };
        if !both.iter().all(|one| !one.is_empty() && one.bytes().all(|b| b.is_ascii_alphanumeric()))
        {
            return None;
        }
        all.extend(both);
    }
    Some(all)
}

/// A duration in seconds: `30`, `10m`, `1y`.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: i64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        "M" => 2_592_000,
        "y" => 31_536_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// A size as Outboard writes it.
pub(crate) fn size(text: &str) -> Option<String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].to_ascii_lowercase().as_str() {
        "" => "B",
        "k" => "KiB",
        "m" => "MiB",
        "g" => "GiB",
        _ => return None,
    };
    Some(format!("{number} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_extensions_are_recognised() {
        assert_eq!(extensions(r"(?i)\.(?:css|jpe?g)$").unwrap(), ["css", "jpeg", "jpg"]);
        assert_eq!(extensions(r"\.js$").unwrap(), ["js"]);
        for other in [r"^/a\.(css)$", r"\.(a|b.*)$", r"\.css", r"\.$", r"\.(?|a)$"] {
            assert!(extensions(other).is_none(), "{other}");
        }
    }

    #[test]
    fn sizes_and_durations_have_units() {
        assert_eq!(size("64m").unwrap(), "64 MiB");
        assert_eq!(size("512").unwrap(), "512 B");
        assert!(size("1t").is_none() && size("m").is_none());
        assert_eq!(seconds("1y"), Some(31_536_000));
        assert_eq!(seconds("99999999999999999y"), None);
    }
}
