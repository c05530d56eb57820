//! Query strings: a flat struct of text, numbers, switches and lists to parameters and back.
//!
//! Called by [`crate::Endpoint`]. Invariant: what [`write`] produces, [`read`] turns into an equal
//! value.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Parameters of `fields`, percent-encoded. A list becomes a parameter per element, `true` becomes
/// `1`; what is absent, `false` or empty is left out.
pub(crate) fn write(fields: &impl Serialize) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(fields) else { return String::new() };
    let mut query = String::new();
    for (name, value) in &fields {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in values {
            let text = match value {
                Value::Null | Value::Bool(false) => continue,
                Value::Bool(true) => "1".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let separator = if query.is_empty() { "" } else { "&" };
            // Writing to a String does not fail.
            let _ = write!(query, "{separator}{name}={}", encode(&text));
        }
    }
    query
}

/// The fields of `T` from a query string.
pub(crate) fn read<T: DeserializeOwned + Serialize + schemars::JsonSchema>(
    query: &str,
) -> Result<T, String> {
    let schema = schemars::schema_for!(T);
    let mut fields = Map::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, "1"));
        let Some(property) = schema.get("properties").and_then(|all| all.get(name)) else {
            continue;
        };
        let text = decode(value);
        let is_a = |kind: &str| match property.get("type") {
            Some(Value::String(one)) => one == kind,
            Some(Value::Array(several)) => several.iter().any(|one| one == kind),
            _ => false,
        };
        let value = if is_a("array") {
            let list = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().expect("inserted as an array").push(text.into());
            continue;
        } else if is_a("boolean") {
            Value::Bool(text != "0" && text != "false")
        } else if is_a("integer") {
            let number = text.parse::<u64>();
            number.map_err(|_| format!("`{name}` is not a number: {text}"))?.into()
        } else {
            text.into()
        };
        fields.insert(name.to_owned(), value);
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

/// Every byte but RFC 3986's unreserved characters as `%XX`.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            // Writing to a String does not fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

/// `%XX` as a byte; anything else stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = (byte == b'%').then(|| tail.get(..2)).flatten();
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let value = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.unwrap_or(byte));
        rest = if value.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Audit, Purge};

    #[test]
    fn parameters_survive_the_way_there_and_back() {
        let purge = Purge {
            app: Some("a&b=c".to_owned()),
            url: Some("/café?q=1%2F2#x".to_owned()),
            prefix: None,
            tag: vec!["one".to_owned(), "two three".to_owned()],
            all: false,
            soft: true,
        };
        assert_eq!(read::<Purge>(&write(&purge)), Ok(purge));
        assert_eq!(write(&Purge::default()), "");
        let audit = Audit { app: None, sample: Some(7) };
        assert_eq!(read::<Audit>(&write(&audit)), Ok(audit));
    }

    #[test]
    fn queries_of_other_clients_are_read() {
        let purge = read::<Purge>("all&soft=0&tag=x&tag=y&unknown=1&&url=%zz%2").unwrap();
        assert!(purge.all && !purge.soft);
        assert_eq!(purge.tag, ["x", "y"]);
        assert_eq!(purge.url.as_deref(), Some("%zz%2"));
        assert_eq!(read::<Purge>("").unwrap(), Purge::default());
    }

    #[test]
    fn an_invalid_number_is_reported_with_its_parameter() {
        let error = read::<Audit>("sample=many").unwrap_err();
        assert_eq!(error, "`sample` is not a number: many");
        assert!(read::<Audit>("sample=-1").is_err());
    }
}
