//! Hints for text that is not TOML: a file of another server, or habits of other formats.

use super::written::{assigned, quoted};
use crate::places::Span;

/// A file of another format: a hint for its first error.
pub(super) fn foreign(text: &str) -> Option<&'static str> {
    let lines = || {
        let lines = text.lines().map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
    };
    let word = |line: &str| line.split([' ', '\t', '{']).next().unwrap_or_default().to_owned();
    let any_word = |known: &str| {
        lines().any(|line| {
            let word = word(line);
            line.len() > word.len()
                && !line.contains('=')
                && known.split(' ').any(|one| one == word)
        })
    };
    let opens = |line: &str| line.ends_with('{') && !line.contains('=');
    if lines().any(|line| line.starts_with("<VirtualHost") || line.starts_with("<Directory"))
        || any_word(
            "RewriteEngine RewriteRule RewriteCond DocumentRoot ServerName DirectoryIndex AllowOverride",
        )
    {
        return Some("this is Apache's syntax: `outboard import httpd FILE` translates it");
    }
    let nginx = ["server", "http", "location", "upstream", "events", "map"];
    if lines().any(|line| opens(line) && nginx.contains(&word(line).as_str())) {
        return Some("this is nginx's syntax: `outboard import nginx FILE` translates it");
    }
    if text.trim_start().starts_with('{') && text.contains("\":") {
        return Some(
            "this is JSON: in TOML a section begins with [name], and a key is key = \"value\"",
        );
    }
    if any_word("php_fastcgi php_server reverse_proxy file_server encode") {
        return Some(
            "this is a Caddyfile, which is not imported: docs/reference/configuration.md has Caddy's words next to the keys",
        );
    }
    if lines().any(|line| line.starts_with("pm =") || line.starts_with("pm.max_children =")) {
        return Some(
            "this is a pool of php-fpm: docs/guide/from-nginx-php-fpm.md has a key for each of its settings",
        );
    }
    let first = lines().next().unwrap_or_default();
    if (first == "---" || first.ends_with(':')) && !lines().any(|line| line.contains('=')) {
        return Some(
            "this is YAML: in TOML a section begins with [name], and a key is key = \"value\"",
        );
    }
    None
}

/// A hint for the error that the parser reports at `at` of the text.
pub(super) fn hint(text: &str, at: &Span, message: &str) -> Option<String> {
    let start = text.floor_char_boundary(at.start.min(text.len()));
    let begin = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let whole = text[begin..].lines().next().unwrap_or_default();
    let (line, before) = (whole.trim(), &text[begin..start]);
    if line.contains(['“', '”', '„', '‘', '’']) {
        return Some("write straight quotes: \"…\"".to_owned());
    }
    if line.starts_with("//") || line.starts_with("/*") || line.starts_with(';') {
        return Some("a comment begins with `#`".to_owned());
    }
    if let Some(hint) = pool_setting(line) {
        return Some(hint);
    }
    if text[start..].starts_with(';') {
        return Some("remove the `;`: a line of TOML has none at its end".to_owned());
    }
    if message.contains("duplicate key") {
        return Some(duplicate(&text[..begin], line));
    }
    if message.contains("escape") {
        let opening = before.rfind('"')?;
        let inner = whole[opening + 1..].split('"').next()?;
        return Some(format!(
            "in double quotes a backslash begins an escape: write {}",
            if inner.contains('\'') { "it twice".to_owned() } else { format!("'{inner}'") }
        ));
    }
    if message.contains("missing comma") {
        return Some("put a comma between two values".to_owned());
    }
    if line.starts_with('[') && !line.contains('=') {
        return header(line);
    }
    match line.split_once('=') {
        Some((_, value)) => quotes(value.split(" #").next()?.trim()),
        None => assignment(line),
    }
}

/// `php_admin_value[memory_limit] = 256M`, as in a pool of php-fpm.
fn pool_setting(line: &str) -> Option<String> {
    let (word, rest) = line.split_once('[')?;
    let (name, rest) = rest.split_once(']')?;
    let value = bare(rest.trim_start().strip_prefix('=')?.trim());
    match word.trim() {
        "php_admin_value" | "php_value" | "php_flag" | "php_admin_flag" => {
            Some(format!("write php.ini = {{ {} }}", assigned(name, &value)))
        }
        "env" => Some(format!("write php.env = {{ {} }}", assigned(name, &value))),
        _ => None,
    }
}

fn header(line: &str) -> Option<String> {
    let name = line.trim_matches(['[', ']']).trim();
    if !line.ends_with(']') {
        return Some("`]` is missing at the end of the line".to_owned());
    }
    name.contains(' ').then(|| {
        format!("a name has letters, digits, - and _, but no spaces: [{}]", name.replace(' ', "-"))
    })
}

/// The line is in the text once more.
fn duplicate(earlier: &str, line: &str) -> String {
    let key = line.split('=').next().unwrap_or_default().trim();
    let is_same = |other: &str| match line.starts_with('[') {
        true => other.trim() == line,
        false => other.split('=').next().unwrap_or_default().trim() == key,
    };
    let number = earlier
        .lines()
        .zip(1..)
        .filter(|(other, _)| is_same(other))
        .map(|(_, number)| number)
        .last();
    let place = number.map_or(String::new(), |number: usize| format!(" in line {number}"));
    match line.starts_with('[') {
        true => format!("{line} is there already{place}: put these keys below it"),
        false => format!("the key `{key}` is there already{place}: remove one of them"),
    }
}

/// What is wrong with a value without quotes.
fn quotes(value: &str) -> Option<String> {
    let plain = value.trim_end_matches([';', ',']).trim();
    match plain.to_ascii_lowercase().as_str() {
        "" => return Some("the value is missing".to_owned()),
        "true" | "yes" | "on" => return Some("write `true`".to_owned()),
        "false" | "no" | "off" => return Some("write `false`".to_owned()),
        "null" | "nil" | "none" | "~" => {
            return Some("remove the line: a key that is not written has its default".to_owned());
        }
        _ => {}
    }
    match plain.chars().next() {
        Some(quote @ ('"' | '\'')) => (plain.matches(quote).count() % 2 == 1)
            .then(|| format!("the closing {quote} is missing")),
        Some('[') if !plain.contains(']') => {
            Some("`]` is missing at the end of the array".to_owned())
        }
        Some('{') if !plain.contains('}') => {
            Some("`}` is missing at the end of the table".to_owned())
        }
        Some('[' | '{') => None,
        _ => Some(format!("write it in quotes: {}", quoted(plain))),
    }
}

/// `root: public` and `root public`.
fn assignment(line: &str) -> Option<String> {
    let is_key = |c: char| c.is_ascii_alphanumeric() || "_.-\"".contains(c);
    let (key, value) = line.split_at(line.find(|c| !is_key(c))?);
    let value = value.trim_start_matches([':', ' ', '\t']).trim_end_matches([';', ',']).trim();
    (!key.is_empty() && !value.is_empty() && !value.contains(['{', '}'])).then(|| {
        let key = key.trim_matches('"');
        format!("a line of TOML is a key, `=` and a value: {}", assigned(key, &bare(value)))
    })
}

/// A value of another format, as one of TOML.
fn bare(value: &str) -> String {
    let value = value.trim_matches(['"', '\'']);
    let is_plain = value.parse::<i64>().is_ok() || matches!(value, "true" | "false");
    if is_plain { value.to_owned() } else { quoted(value) }
}
