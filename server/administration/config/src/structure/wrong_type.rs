//! Hints for values of a wrong type: brackets of TOML that are missing, a port alone, a table that has keys.

use crate::shape::Shape;
use toml::de::DeValue;

/// `path` leads to the value.
pub(super) fn hint(shape: Shape, path: &[String], value: &DeValue<'_>) -> Option<String> {
    if let Some(hint) = shape.hint() {
        return Some(hint.to_owned());
    }
    let variants = shape.variants();
    let takes =
        |json_type: &str| variants.iter().any(|variant| variant.types().contains(&json_type));
    let of_tables = |variant: &Shape| variant.items().is_some_and(|items| !keys(items).is_empty());
    match value {
        DeValue::Table(_) if variants.iter().any(of_tables) => {
            Some(format!("write [[{0}]] for the first and for each further one", path.join(".")))
        }
        DeValue::Table(_) => None,
        DeValue::Integer(port) if variants.iter().any(|variant| variant.is_address()) => {
            Some(format!("write \"0.0.0.0:{0}\" or \"[::]:{0}\"", port.as_str()))
        }
        DeValue::String(_) if takes("array") => Some("write it in brackets: [\"...\"]".to_owned()),
        _ => {
            let known = variants.iter().flat_map(|variant| keys(*variant)).collect::<Vec<_>>();
            (!known.is_empty())
                .then(|| format!("keys of [{}]: {}", path.join("."), known.join(", ")))
        }
    }
}

/// Those of a table.
fn keys(shape: Shape) -> Vec<&'static str> {
    shape.variants().into_iter().flat_map(|variant| variant.keys().map(|(key, _)| key)).collect()
}
