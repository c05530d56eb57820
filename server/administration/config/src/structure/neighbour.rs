//! Hints for unknown keys: misspelled, of another section, or of another server.
//!
//! Called by the walk for each unknown key. Of several keys that it could be, one that takes the value comes first.

use super::written::{assigned, literal, section};
use super::{php_settings, wrong_type};
use crate::shape::Shape;
use std::net::IpAddr;
use toml::de::DeValue;

/// Nothing is looked for in deeper tables.
const DEPTH_MAX: usize = 4;

/// Tables of which another one with the same key is meant more often.
const RARE: [&str; 4] = ["tasks", "prefetch", "tracing", "kv"];

/// Words of other servers that are no key, because what they order is done anyway.
const NEEDLESS: [(&[&str], &str); 2] = [
    (
        &["fastcgi_pass", "php_fastcgi", "SetHandler", "php_server"],
        "remove it: PHP runs in this server, and scripts below the root run without it",
    ),
    (
        &["sendfile", "tcp_nopush", "tcp_nodelay", "file_server", "etag", "aio", "directio"],
        "remove it: files below the root are sent in the fastest way anyway",
    ),
];

/// `path` leads to the table of this shape that has the unknown key.
pub(super) fn hint(
    shape: Shape,
    path: &[String],
    name: &str,
    value: &DeValue<'_>,
) -> Option<String> {
    let here = || shape.keys().filter(|(_, shape)| wrong_type::takes(*shape, value));
    if let Some(key) = nearest(name, here().map(|(key, _)| key)) {
        return Some(format!("did you mean `{key}`?"));
    }
    if let Some(hint) = php_settings::hint(path, name, value).or_else(|| special(path, name, value))
    {
        return Some(hint);
    }
    if let Some(hint) = header_field(shape, name, value) {
        return Some(hint);
    }
    if let Some(found) = elsewhere(shape, path, name, value) {
        return Some(found.write(value));
    }
    if let Some(key) = nearest(name, shape.keys().map(|(key, _)| key)) {
        return Some(format!("did you mean `{key}`?"));
    }
    if let Some((alias, key)) = misspelt_alias(shape, name) {
        return Some(format!("`{alias}` is `{key}` in Outboard"));
    }
    let known: Vec<&str> = shape.keys().map(|(key, _)| key).collect();
    (!known.is_empty()).then(|| format!("known keys: {}", known.join(", ")))
}

/// A field in a rule for headers.
fn header_field(shape: Shape, name: &str, value: &DeValue<'_>) -> Option<String> {
    shape.key("set").filter(|set| set.free_key().is_some())?;
    let value = literal(value)?;
    match name {
        "name" | "field" => {
            Some(format!("write set = {{ {} = \"VALUE\" }}", value.trim_matches('"')))
        }
        "value" => Some(format!("write set = {{ NAME = {value} }}")),
        _ if name.starts_with(|first: char| first.is_ascii_uppercase()) => {
            Some(format!("write set = {{ {} }}", assigned(name, &value)))
        }
        _ => None,
    }
}

/// What is no key anywhere, but has a place.
fn special(path: &[String], name: &str, value: &DeValue<'_>) -> Option<String> {
    let app = match path {
        [first, name, ..] if first == "app" => Some(name.as_str()),
        _ => None,
    };
    let written = literal(value);
    let is_switch = matches!(value, DeValue::Boolean(_) | DeValue::String(_));
    if let Some((_, hint)) = NEEDLESS.iter().find(|(words, _)| is_switch && words.contains(&name)) {
        return Some((*hint).to_owned());
    }
    let listens = path.first().is_some_and(|first| first == "listen");
    match (name, value) {
        ("port", _) if listens => {
            Some("the port is a part of `address`, such as \"0.0.0.0:80\"".to_owned())
        }
        ("port", DeValue::Integer(_) | DeValue::String(_)) if path.len() < 3 => Some(format!(
            "write listen = \"0.0.0.0:{}\" at the top of the file, above the first [table]",
            written?.trim_matches('"')
        )),
        ("host" | "hostname" | "bind" | "interface", DeValue::String(text)) if !listens => {
            let address = text.parse::<IpAddr>().ok()?;
            Some(format!(
                "write listen = \"{}\" at the top of the file, above the first [table]",
                std::net::SocketAddr::new(address, 8080)
            ))
        }
        ("hsts" | "strict_transport_security", _) => Some(format!(
            "write [[app.{}.headers]] with set = {{ Strict-Transport-Security = \"max-age=31536000\" }}",
            app.unwrap_or("NAME")
        )),
        (name, DeValue::String(_)) if path.len() == 2 && app.is_some() && is_variable(name) => {
            Some(format!("write php.env = {{ {} }}", assigned(name, &written?)))
        }
        // A site, as other servers name it.
        (name, DeValue::Table(table)) if path.is_empty() => {
            let is_app = ["root", "document_root", "hosts", "server_name"];
            is_app.iter().any(|key| table.contains_key(*key)).then(|| format!("write [app.{name}]"))
        }
        _ => None,
    }
}

/// `APP_ENV`.
fn is_variable(name: &str) -> bool {
    name.contains('_') && name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}

/// The known word that `word` is probably meant to be.
pub(super) fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    // Comparing takes quadratic time; nothing this long is a misspelling.
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase().replace('-', "_");
    let close = |known: &str| {
        let edits = strsim::damerau_levenshtein(&word, known);
        let (short, long) = (known.len().min(word.len()), known.len().max(word.len()));
        let begins = (word.len() >= 3 && known.starts_with(&word))
            || (known.len() >= 4 && word.starts_with(known) && long - short <= 3);
        (begins || edits <= (short / 3).min(3)).then_some(edits)
    };
    known.filter_map(|known| Some((close(known)?, known))).min().map(|(_, known)| known)
}

/// Another server's word that `name` is probably meant to be, and the key for it here.
fn misspelt_alias(shape: Shape, name: &str) -> Option<(&'static str, &'static str)> {
    let aliases = || shape.keys().flat_map(|(key, shape)| shape.aliases().map(move |a| (a, key)));
    let alias = nearest(name, aliases().map(|(alias, _)| alias))?;
    aliases().find(|(theirs, _)| *theirs == alias)
}

/// A key, by the table that has it.
struct Place {
    /// With an empty step after the name of an array of tables.
    section: Vec<String>,
    key: &'static str,
    shape: Shape,
    /// Other keys that an element of an array of tables must have.
    others: Vec<String>,
}

impl Place {
    fn write(&self, value: &DeValue<'_>) -> String {
        let place = match self.section.as_slice() {
            [] => "at the top of the file, above the first [table]".to_owned(),
            path if self.others.is_empty() => format!("in {}", section(path)),
            path => format!("in {}, with {}", section(path), self.others.join(" and ")),
        };
        if wrong_type::takes(self.shape, value) {
            return format!("write `{}` {place}", self.key);
        }
        let required = wrong_type::required_of_each(self.shape);
        if let Some(required) = required.filter(|_| !matches!(value, DeValue::Boolean(_))) {
            let path: Vec<String> =
                [&self.section[..], &[self.key.to_owned(), "0".to_owned()]].concat();
            return format!("write {}{required}", section(&path));
        }
        match wrong_type::corrected(self.shape, value) {
            Some(value) => format!("write {} {place}", assigned(self.key, &value)),
            None => format!("write `{}` {place}", self.key),
        }
    }
}

/// The key of this name, or of another server's, in this section or the nearest other one.
fn elsewhere(shape: Shape, path: &[String], name: &str, value: &DeValue<'_>) -> Option<Place> {
    let file = Shape::file();
    let app = file.key("app").and_then(Shape::free_value)?;
    let section = |steps: &[&str]| steps.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>();
    let in_app = |name: &str| (app, section(&["app", name]));
    let own = (shape, path.to_vec());
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    let places = match steps[..] {
        [] => vec![(file, Vec::new()), in_app("NAME")],
        // In an app the server-wide section of the same name comes before the app's others.
        ["app", app_name, ref inner @ ..] => {
            let same = match inner {
                [one] => file
                    .key(one)
                    .filter(|same| same.key(name).is_some())
                    .map(|same| (same, section(inner))),
                _ => None,
            };
            [Some(own), same, Some(in_app(app_name)), Some((file, Vec::new()))]
                .into_iter()
                .flatten()
                .collect()
        }
        ["php" | "pool" | "limits" | "static", ..] => vec![own, in_app("NAME"), (file, Vec::new())],
        _ => vec![own, (file, Vec::new()), in_app("NAME")],
    };
    places.into_iter().find_map(|(table, path)| search(table, path, name, value))
}

/// The nearest key below a table; one that does not take the value is as far away as two tables more. A word of
/// another server means a table before an element of an array.
fn search(table: Shape, path: Vec<String>, name: &str, value: &DeValue<'_>) -> Option<Place> {
    let is_named = |key: &str, shape: Shape, path: &[String]| {
        // In a table with a free name, words of other servers mean something else.
        let is_free = path.last().is_some_and(|step| step == "NAME") && path.len() > 2;
        key == name || (!is_free && shape.aliases().any(|alias| alias == name))
    };
    let mut best: Option<(usize, Place)> = None;
    let mut level = vec![(table, path)];
    for depth in 0..DEPTH_MAX {
        let mut next = Vec::new();
        for (table, path) in level {
            let is_element = path.last().is_some_and(|step| step == "0");
            for (key, shape) in table.keys() {
                if path.is_empty() && key == "app" {
                    continue;
                }
                let is_alias = key != name;
                let distance = 2 * depth
                    + if wrong_type::takes(shape, value) { 0 } else { 4 }
                    + usize::from(is_alias && is_element)
                    + usize::from(path.last().is_some_and(|last| RARE.contains(&last.as_str())));
                if is_named(key, shape, &path)
                    && best.as_ref().is_none_or(|(known, _)| distance < *known)
                {
                    let others =
                        table.required().filter(|other| is_element && depth > 0 && *other != key);
                    let others = others.map(|other| format!("`{other}`")).collect();
                    best = Some((distance, Place { section: path.clone(), key, shape, others }));
                }
                next.extend(tables(shape).map(|(inner, index)| {
                    let mut path = path.clone();
                    path.extend([Some(key.to_owned()), index].into_iter().flatten());
                    (inner, path)
                }));
            }
        }
        level = next;
    }
    best.map(|(_, place)| place)
}

/// The tables that a key can be or have: itself or, in its place, the elements of an array, and those of free names.
fn tables(shape: Shape) -> impl Iterator<Item = (Shape, Option<String>)> {
    let has_keys = |table: &Shape| table.keys().next().is_some();
    let variants = shape.variants();
    let items = variants.iter().filter_map(|one| one.items()).flat_map(Shape::variants);
    let elements: Vec<Shape> = items.filter(has_keys).collect();
    let own = if elements.is_empty() { variants.clone() } else { Vec::new() };
    let named = variants.into_iter().filter_map(Shape::free_value);
    let step = |name: &str| Some(name.to_owned());
    let all = own.into_iter().map(|one| (one, None));
    let all = all.chain(elements.into_iter().map(move |one| (one, step("0"))));
    let all = all.chain(named.map(move |one| (one, step("NAME"))));
    all.filter(|(table, _)| table.keys().next().is_some())
}
