//! What holds for every key of the schema.

use super::*;
use crate::scalar::{FORMATS, Written};
use std::collections::BTreeSet;

/// Calls `visit` with every key of every table, by its path. A table that contains itself is visited once.
fn each(shape: Shape, path: &str, depth: usize, visit: &mut dyn FnMut(&str, Shape)) {
    assert!(depth < 20, "{path} has no end");
    for variant in shape.variants() {
        for (key, inner) in variant.keys() {
            let path = format!("{path}.{key}");
            visit(&path, inner);
            each(inner, &path, depth + 1, visit);
        }
        let unnamed = [(variant.items(), "[]"), (variant.free_value(), "NAME")];
        for (inner, name) in unnamed {
            if let Some(inner) = inner {
                let path = format!("{path}.{name}");
                visit(&path, inner);
                each(inner, &path, depth + 1, visit);
            }
        }
    }
}

fn each_key(mut visit: impl FnMut(&str, Shape)) {
    each(Shape::file(), "", 0, &mut visit);
}

#[test]
fn every_key_is_described_and_has_a_type() {
    let mut count = 0;
    each_key(|path, shape| {
        count += 1;
        let is_named = !path.ends_with("[]") && !path.ends_with("NAME");
        let is_described = shape.description().is_some_and(|text| !text.is_empty());
        assert!(is_described || !is_named, "{path} has no description");
        let has_type = shape.variants().iter().all(|variant| !variant.types().is_empty());
        assert!(has_type, "{path} has no type");
    });
    assert!(count > 300, "{count} keys");
}

#[test]
fn nothing_of_rust_is_in_the_schema() {
    fn check(node: &Value, path: &str) {
        match node {
            Value::Object(object) => {
                let types = object.get("type");
                let is_null = |kind: &Value| kind == "null";
                let allows =
                    types.and_then(Value::as_array).is_some_and(|all| all.iter().any(is_null));
                assert!(!allows && !types.is_some_and(is_null), "{path} may be null");
                let format = object.get("format").and_then(Value::as_str);
                let is_known = |name: &str| FORMATS.iter().any(|format| format.name == name);
                assert!(format.is_none_or(is_known), "{path} has the format {format:?}");
                let text = object.get("description").and_then(Value::as_str).unwrap_or_default();
                assert!(!text.contains('\n'), "{path} has a line break");
                assert!(
                    !object.get("default").is_some_and(Value::is_null),
                    "{path} has no default"
                );
                object.iter().for_each(|(key, value)| check(value, &format!("{path}/{key}")));
            }
            Value::Array(list) => list.iter().for_each(|value| check(value, path)),
            _ => {}
        }
    }
    check(generated(), "");
    assert_eq!(schema()["title"], "outboard.toml");
}

#[test]
fn bounds_and_defaults_are_values_of_their_key() {
    fn written(value: &Value) -> Option<Written<'_>> {
        match value {
            Value::String(text) => Some(Written::Text(text)),
            Value::Number(number) => number.as_i64().map(Written::Integer),
            Value::Bool(yes) => Some(Written::Boolean(*yes)),
            _ => None,
        }
    }
    let mut bounds = 0;
    each_key(|path, shape| {
        let formats: Vec<_> = shape.variants().into_iter().filter_map(Shape::format).collect();
        let [format] = formats[..] else { return };
        let inspect = |name: &str| {
            let value = written(shape.keyword(name)?)?;
            Some(
                (format.inspect)(value)
                    .map_err(|fault| format!("{path} {name}: {}", fault.message)),
            )
        };
        let [least, most] = ["x-minimum", "x-maximum"]
            .map(|name| inspect(name).map(|read| read.unwrap().expect("a bound is on a scale")));
        bounds += usize::from(least.is_some() || most.is_some());
        assert!(least.is_none_or(|least| most.is_none_or(|most| least < most)), "{path}");
        // Zero stands for "unlimited" or "off" where that is documented, below the bound or not.
        if let Some(Ok(Some(default))) =
            inspect("default").filter(|_| shape.keyword("default") != Some(&Value::from(0)))
        {
            let fits = least.is_none_or(|least| default >= least || default == 0);
            assert!(fits && most.is_none_or(|most| default <= most), "{path}: {default}");
        }
    });
    assert!(bounds > 20, "{bounds} keys with bounds");
}

#[test]
fn a_word_of_another_server_is_not_another_key_of_its_table() {
    fn check(shape: Shape, path: &str, depth: usize) {
        for (key, inner) in shape.keys() {
            for alias in inner.aliases() {
                let is_other = alias != key && shape.key(alias).is_some();
                assert!(!is_other, "{path}.{key}: `{alias}` is another key");
                assert!(!alias.is_empty() && alias.trim() == alias, "{path}.{key}: `{alias}`");
            }
            if depth < 10 {
                inner.variants().into_iter().for_each(|variant| {
                    check(variant, &format!("{path}.{key}"), depth + 1);
                });
            }
        }
    }
    check(Shape::file(), "", 0);
}

#[test]
fn required_keys_exist() {
    let mut required = 0;
    each_key(|path, shape| {
        for variant in shape.variants() {
            for key in variant.required() {
                required += 1;
                assert!(variant.key(key).is_some(), "{path} requires `{key}`");
            }
        }
    });
    assert!(required > 5, "{required} required keys");
}

#[test]
fn choices_are_words_that_differ() {
    each_key(|path, shape| {
        for variant in shape.variants() {
            let words: Vec<&str> = variant.choices().into_iter().map(|(word, _)| word).collect();
            let set: BTreeSet<&str> = words.iter().copied().collect();
            assert_eq!(set.len(), words.len(), "{path}: {words:?}");
            assert!(words.is_empty() || variant.types().contains(&"string"), "{path}");
        }
    });
}

#[test]
fn integers_have_the_bounds_of_their_type() {
    for (format, maximum) in [("uint16", 65_535_u32), ("uint32", u32::MAX)] {
        let Value::Object(mut object) = serde_json::json!({ "format": format }) else { panic!() };
        bound_integer(&mut object);
        assert_eq!(Value::Object(object), serde_json::json!({ "maximum": maximum }));
    }
    let own = serde_json::json!({ "format": "uint16", "maximum": 9 });
    let Value::Object(mut object) = own else { panic!() };
    bound_integer(&mut object);
    assert_eq!(object["maximum"], 9, "a narrower one stays");
}
