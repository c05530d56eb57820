//! What all endpoints have in common, by their schemas.

use crate::{Description, ENDPOINTS, Method};
use schemars::Schema;
use serde_json::Value;
use std::collections::BTreeSet;

fn endpoints() -> impl Iterator<Item = &'static Description> {
    ENDPOINTS.iter().copied().flatten()
}

fn value(schema: fn() -> Schema) -> Value {
    schema().to_value()
}

/// The types of a property but `null`.
fn types(property: &Value) -> Vec<&str> {
    let types = match &property["type"] {
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect::<Vec<_>>(),
    };
    types.into_iter().filter(|one| *one != "null").collect()
}

/// Calls `visit` with every object of a schema and where it is.
fn walk(schema: &Value, at: &str, visit: &mut dyn FnMut(&str, &Value)) {
    visit(at, schema);
    let parts: Vec<(String, &Value)> = match schema {
        Value::Object(all) => all.iter().map(|(name, part)| (name.clone(), part)).collect(),
        Value::Array(all) => {
            all.iter().enumerate().map(|(n, part)| (n.to_string(), part)).collect()
        }
        _ => Vec::new(),
    };
    for (name, part) in parts {
        walk(part, &format!("{at}/{name}"), visit);
    }
}

#[test]
fn parameters_are_what_a_query_can_hold() {
    for endpoint in endpoints() {
        let schema = value(endpoint.parameters);
        let Some(properties) = schema["properties"].as_object() else { continue };
        for (name, property) in properties {
            let at = format!("{}: {name}", endpoint.path);
            match types(property)[..] {
                ["string" | "boolean"] => {}
                // A query has unsigned numbers only.
                ["integer"] => assert_eq!(property["minimum"], 0, "{at}"),
                ["array"] => assert_eq!(property["items"]["type"], "string", "{at}"),
                ref other => panic!("{at} is of type {other:?}"),
            }
        }
    }
}

#[test]
fn names_of_parameters_need_no_encoding() {
    for endpoint in endpoints() {
        let schema = value(endpoint.parameters);
        let names = schema["properties"].as_object().into_iter().flat_map(|all| all.keys());
        for name in names {
            let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(is_plain, "{}: {name}", endpoint.path);
        }
    }
}

#[test]
fn a_switch_is_off_by_default() {
    // `false` is not sent: a switch that is on by default could not be turned off.
    for endpoint in endpoints() {
        let schema = value(endpoint.parameters);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if types(property) == ["boolean"] {
                assert_eq!(property["default"], false, "{}: {name}", endpoint.path);
            }
        }
    }
}

#[test]
fn unknown_fields_of_newer_servers_are_permitted() {
    for endpoint in endpoints() {
        for schema in [value(endpoint.parameters), value(endpoint.reply)] {
            walk(&schema, endpoint.path, &mut |at, part| {
                assert_ne!(part["additionalProperties"], false, "{at}");
            });
        }
    }
}

#[test]
fn every_field_of_a_reply_has_a_description() {
    for endpoint in endpoints() {
        walk(&value(endpoint.reply), endpoint.path, &mut |at, part| {
            let is_field = at.rsplit('/').nth(1) == Some("properties");
            let text = part["description"].as_str().unwrap_or_default();
            assert!(!is_field || text.ends_with('.'), "{at}: {text:?}");
        });
    }
}

#[test]
fn every_reply_is_an_object() {
    for endpoint in endpoints() {
        assert_eq!(value(endpoint.reply)["type"], "object", "{}", endpoint.path);
        assert_eq!(value(endpoint.parameters)["type"], "object", "{}", endpoint.path);
    }
}

#[test]
fn paths_are_absolute_and_lowercase() {
    for endpoint in endpoints() {
        let path = endpoint.path;
        let is_plain = path.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'/');
        assert!(is_plain && path.starts_with('/') && !path.ends_with('/'), "{path}");
        assert!(!path.contains("//"), "{path}");
    }
}

#[test]
fn requests_that_only_read_are_those_by_get() {
    let by_get = endpoints().filter(|one| one.method == Method::Get).map(|one| one.path);
    let expected = [
        "/bans",
        "/cache/get",
        "/cache/list",
        "/cache/stats",
        "/certificates",
        "/config",
        "/dashboard/state",
        "/kv/stats",
        "/opcache",
        "/status",
        "/upstreams",
    ];
    assert_eq!(by_get.collect::<BTreeSet<_>>(), BTreeSet::from(expected));
}
