//! Values of a wrong type: what to write instead, as far as the value tells it.

use super::written::{json_type, literal, quoted, section};
use crate::scalar::Written;
use crate::shape::Shape;
use toml::de::DeValue;

/// The key of a table that a single value is for.
const MAIN_KEYS: [&str; 5] = ["path", "file", "version", "max", "origins"];

/// `path` leads to the value.
pub(super) fn hint(shape: Shape, path: &[String], value: &DeValue<'_>) -> Option<String> {
    let variants = shape.variants();
    let is_index = |step: &str| step.bytes().all(|byte| byte.is_ascii_digit());
    let name = path.last().map_or("", String::as_str);
    match value {
        DeValue::Table(_) if path.len() == 2 && path[0] == "listen" && !is_index(name) => {
            return Some(format!(
                "write [[listen]] with its `address`, and [[listen.{name}]] below it"
            ));
        }
        DeValue::Table(_) if required_of_each(shape).is_some() => {
            let each = section(&[path, &["0".to_owned()]].concat());
            return Some(format!("write {each} for the first and for each further one"));
        }
        DeValue::Array(array)
            if array.iter().all(|one| one.get_ref().is_table())
                && variants.iter().any(|variant| variant.keys().next().is_some()) =>
        {
            return Some(format!("there is one: write {} with single brackets", section(path)));
        }
        _ => {}
    }
    if let Some(hint) = shape.hint() {
        return Some(hint.to_owned());
    }
    match value {
        DeValue::Integer(port) if variants.iter().any(|variant| variant.is_address()) => {
            return Some(format!("write \"0.0.0.0:{0}\" or \"[::]:{0}\"", port.as_str()));
        }
        DeValue::Table(_) => return None,
        _ => {}
    }
    let each = required_of_each(shape)
        .map(|required| format!("{}{required}", section(&[path, &["0".to_owned()]].concat())));
    match (corrected(shape, value), each) {
        (Some(value), Some(each)) => Some(format!("write {name} = {value}, or {each}")),
        (None, Some(each)) => Some(format!("write {each}")),
        // An element of an array has no name.
        (Some(value), None) if is_index(name) => Some(format!("write {value}")),
        (Some(value), None) => Some(format!("write {name} = {value}")),
        (None, None) => keys(shape, path),
    }
}

fn keys(shape: Shape, path: &[String]) -> Option<String> {
    let variants = shape.variants();
    let known: Vec<_> =
        variants.iter().flat_map(|variant| variant.keys().map(|(key, _)| key)).collect();
    (!known.is_empty()).then(|| format!("keys of {}: {}", section(path), known.join(", ")))
}

/// Whether a value of this type can be one of this shape.
pub(super) fn takes(shape: Shape, value: &DeValue<'_>) -> bool {
    let found = json_type(value);
    let variant = shape.variants().into_iter().find(|variant| {
        let types = variant.types();
        types.contains(&found) || (found == "integer" && types.contains(&"number"))
    });
    let Some(variant) = variant else { return false };
    let of_tables = variant.items().is_some_and(|items| items.keys().next().is_some());
    match value {
        DeValue::Array(array) => {
            let has_tables = array.iter().any(|one| one.get_ref().is_table());
            array.is_empty() || has_tables == of_tables
        }
        _ => true,
    }
}

/// For an array of tables: ` with …`, the keys that each must have, or nothing.
pub(super) fn required_of_each(shape: Shape) -> Option<String> {
    let of_tables = |variant: &Shape| variant.items().filter(|items| items.keys().next().is_some());
    let each = shape.variants().iter().find_map(of_tables)?;
    let keys: Vec<_> = each.required().map(|key| format!("`{key}`")).collect();
    Some(if keys.is_empty() { String::new() } else { format!(" with {}", keys.join(" and ")) })
}

/// What is to be written in place of a value of another type.
pub(super) fn corrected(shape: Shape, value: &DeValue<'_>) -> Option<String> {
    shape.variants().into_iter().find_map(|variant| in_variant(variant, value))
}

fn in_variant(variant: Shape, value: &DeValue<'_>) -> Option<String> {
    let types = variant.types();
    let switch = switch(value);
    if types.contains(&"boolean") && !types.contains(&"string") {
        return switch.map(|on| on.to_string());
    }
    if let Some(items) = variant.items().filter(|items| items.keys().next().is_none()) {
        return match (value, items.format()) {
            (DeValue::Boolean(true), Some(format)) if format.name == "path pattern" => {
                Some("[\"/**\"]".to_owned())
            }
            (DeValue::Boolean(_), _) => None,
            _ => literal(value)
                .filter(|_| !matches!(value, DeValue::Array(_)))
                .map(|one| format!("[{one}]")),
        };
    }
    if let (DeValue::Boolean(on), true) = (value, types.contains(&"string")) {
        let words = if *on { ["on", "auto", "default"] } else { ["off", "none", "never"] };
        let choices = variant.choices();
        let word = words.into_iter().find(|word| choices.iter().any(|(known, _)| known == word))?;
        return Some(quoted(word));
    }
    if let (DeValue::Float(_) | DeValue::Integer(_), true) = (value, types.contains(&"string")) {
        let text = literal(value)?;
        return accepts(variant, &text).then(|| quoted(&text));
    }
    if let (DeValue::String(text), true) = (value, types.contains(&"integer")) {
        return text.trim().parse::<i64>().ok().map(|number| number.to_string());
    }
    in_table(variant, value)
}

/// The value as one of a table.
fn in_table(variant: Shape, value: &DeValue<'_>) -> Option<String> {
    if let Some(format) = variant.free_key().and_then(Shape::format) {
        let one = literal(value)?;
        let text = one.trim_matches('"');
        return match format.name {
            "header name" => {
                let (name, value) = text.split_once(':').unwrap_or(("X-Frame-Options", "DENY"));
                Some(format!("{{ {} = {} }}", name.trim(), quoted(value.trim())))
            }
            "status" => Some(format!("{{ 404 = {one} }}")),
            "variable name" => Some("{ NAME = \"value\" }".to_owned()),
            "ini setting" => Some("{ memory_limit = \"256M\" }".to_owned()),
            _ => None,
        };
    }
    let fits = |inner: Shape| match value {
        DeValue::String(text) => takes(inner, value) && accepts(inner, text),
        _ => takes(inner, value),
    };
    if let Some((key, _)) =
        variant.keys().find(|(key, inner)| MAIN_KEYS.contains(key) && fits(*inner))
    {
        return Some(format!("{{ {key} = {} }}", literal(value)?));
    }
    None
}

/// Whether a text is a valid value.
fn accepts(shape: Shape, text: &str) -> bool {
    let one = |variant: Shape| match variant.format() {
        Some(format) => (format.inspect)(Written::Text(text)).is_ok(),
        None => variant.choices().is_empty() && variant.types().contains(&"string"),
    };
    shape.variants().into_iter().any(one)
}

/// What people write for true and false elsewhere.
fn switch(value: &DeValue<'_>) -> Option<bool> {
    let text = match value {
        DeValue::String(text) => text.to_ascii_lowercase(),
        DeValue::Integer(digits) => digits.as_str().to_owned(),
        _ => return None,
    };
    match text.as_str() {
        "true" | "yes" | "on" | "1" | "enabled" => Some(true),
        "false" | "no" | "off" | "0" | "disabled" => Some(false),
        _ => None,
    }
}
