//! Hints for unknown keys: misspelled or from another server.

use crate::shape::Shape;

/// Settings of PHP that are often written beside the keys of an app.
const PHP_SETTINGS: [&str; 10] = [
    "auto_prepend_file",
    "display_errors",
    "error_reporting",
    "html_errors",
    "include_path",
    "max_input_vars",
    "memory_limit",
    "open_basedir",
    "short_open_tag",
    "upload_max_filesize",
];

/// Looks for `name` as a misspelling here, as a setting of PHP, as another server's word, and in other sections;
/// failing that, lists the known keys.
pub(super) fn hint(shape: Shape, path: &[String], name: &str) -> Option<String> {
    if let Some(key) = nearest(name, shape.keys().map(|(key, _)| key)) {
        return Some(format!("did you mean `{key}`?"));
    }
    if PHP_SETTINGS.contains(&name) {
        return Some(format!("write `{name}` in [{}]", php_ini(path)));
    }
    if let Some((section, key)) = elsewhere(name, path) {
        return Some(format!("write `{key}` in {section}"));
    }
    if let Some((alias, key)) = misspelt_alias(shape, name) {
        return Some(format!("`{alias}` is `{key}` in Outboard"));
    }
    let known: Vec<&str> = shape.keys().map(|(key, _)| key).collect();
    (!known.is_empty()).then(|| format!("known keys: {}", known.join(", ")))
}

/// The table of PHP's settings that is nearest to `path`.
fn php_ini(path: &[String]) -> String {
    match path {
        [app, name, ..] if app == "app" => format!("app.{name}.php.ini"),
        _ => "php.ini".to_owned(),
    }
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
        let prefix = word.len() >= 4 && known.starts_with(&word);
        (prefix || edits <= (known.len().max(word.len()) / 3).min(3)).then_some(edits)
    };
    known.filter_map(|known| Some((close(known)?, known))).min().map(|(_, known)| known)
}

/// Another server's word that `name` is probably meant to be, and the key for it here.
fn misspelt_alias(shape: Shape, name: &str) -> Option<(&'static str, &'static str)> {
    let aliases = || shape.keys().flat_map(|(key, shape)| shape.aliases().map(move |a| (a, key)));
    let alias = nearest(name, aliases().map(|(alias, _)| alias))?;
    aliases().find(|(theirs, _)| *theirs == alias)
}

/// The section that has the key under this name or under another server's name for it.
fn elsewhere(name: &str, path: &[String]) -> Option<(String, &'static str)> {
    let app = Shape::file().key("app").and_then(Shape::free_value)?;
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    let (section, key) = match steps[..] {
        [] => search(Shape::file(), "", name).or_else(|| search(app, "app.NAME", name)),
        // In an app the server-wide section of the same name comes first, then the app's others.
        ["app", app_name, ref inner @ ..] => same_section(inner, name)
            .or_else(|| search(app, &format!("app.{app_name}"), name))
            .or_else(|| search(Shape::file(), "", name)),
        _ => search(app, "app.NAME", name).or_else(|| search(Shape::file(), "", name)),
    }?;
    match section.as_str() {
        "" => Some(("the top of the file".to_owned(), key)),
        section => Some((format!("[{section}]"), key)),
    }
}

fn same_section(inner: &[&str], name: &str) -> Option<(String, &'static str)> {
    let [section] = inner else { return None };
    let (key, _) = Shape::file().key(section)?.keys().find(|(key, _)| *key == name)?;
    Some(((*section).to_owned(), key))
}

/// Depth first through tables (not through maps, arrays and apps).
fn search(table: Shape, section: &str, name: &str) -> Option<(String, &'static str)> {
    let named = |(key, shape): &(&'static str, Shape)| {
        *key == name || shape.aliases().any(|alias| alias == name)
    };
    if let Some((key, _)) = table.keys().find(named) {
        return Some((section.to_owned(), key));
    }
    table.keys().find_map(|(key, shape)| {
        let inner = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
        search(shape, &inner, name)
    })
}
