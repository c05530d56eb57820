//! Keys, values and sections as hints write them, in TOML.

use toml::de::DeValue;

/// A value other than a table; an array only if it has one value.
pub(super) fn literal(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(quoted(text)),
        DeValue::Integer(digits) => Some(digits.as_str().to_owned()),
        DeValue::Float(digits) => Some(digits.as_str().to_owned()),
        DeValue::Boolean(yes) => Some(yes.to_string()),
        DeValue::Array(array) if array.len() == 1 => literal(array.iter().next()?.get_ref()),
        _ => None,
    }
}

/// As the schema names the type of a value.
pub(super) fn json_type(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "string",
        DeValue::Integer(_) => "integer",
        DeValue::Float(_) => "number",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "date",
        DeValue::Array(_) => "array",
        DeValue::Table(_) => "object",
    }
}

/// A text in quotes.
pub(super) fn quoted(text: &str) -> String {
    match text.contains(['"', '\\']) && !text.contains('\'') {
        true => format!("'{text}'"),
        false => toml::Value::String(text.to_owned()).to_string(),
    }
}

/// A key with its value; a key with a dot needs quotes, unless it is a path of keys.
pub(super) fn assigned(key: &str, value: &str) -> String {
    match key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        true => format!("{key} = {value}"),
        false => format!("{} = {value}", quoted(key)),
    }
}

/// The header of a table: `[app.blog.pool]`, or `[[app.blog.headers]]` for an element of an array.
pub(super) fn section(path: &[String]) -> String {
    let is_index = |at: usize| {
        path[at].bytes().all(|byte| byte.is_ascii_digit()) && !(at == 1 && path[0] == "app")
    };
    let names = (0..path.len()).filter(|at| !is_index(*at)).map(|at| path[at].as_str());
    let name = names.collect::<Vec<_>>().join(".");
    match path.len() {
        0 => "the file".to_owned(),
        length if is_index(length - 1) => format!("[[{name}]]"),
        _ => format!("[{name}]"),
    }
}
