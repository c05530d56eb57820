//! Holds `docs/reference/admin-api.md` to [`crate::ENDPOINTS`].
//!
//! `OUTBOARD_REGENERATE=1 cargo test -p outboard-admin-api` writes the page.

use crate::ENDPOINTS;
use schemars::Schema;
use serde_json::{Map, Value};
use std::fmt::Write as _;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/admin-api.md");
const START: &str = "<!-- endpoints -->\n";
const END: &str = "<!-- end endpoints -->\n";

/// The sentence without the links of rustdoc.
fn plain(text: &str) -> String {
    text.replace("[`", "`").replace("`]", "`").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn property_type(schema: &Value) -> String {
    let name = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
    if let Some(target) = schema["$ref"].as_str() {
        return format!("`{}`", name(target));
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let present = options.iter().filter(|one| one["type"] != "null");
        return present.map(property_type).collect::<Vec<_>>().join(" or ");
    }
    let kind = match &schema["type"] {
        Value::String(kind) => kind.as_str(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).next().unwrap_or_default(),
        _ => "any",
    };
    match kind {
        "array" if schema["items"].is_object() => {
            format!("array of {}", property_type(&schema["items"]))
        }
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {} by name", property_type(&schema["additionalProperties"]))
        }
        kind => kind.to_owned(),
    }
}

fn table(page: &mut String, heading: &str, schema: &Value) {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    if properties.is_empty() {
        return;
    }
    let _ = writeln!(page, "| {heading} | type | meaning |\n|---|---|---|");
    for (name, property) in properties {
        let meaning = plain(property["description"].as_str().unwrap_or_default());
        let _ = writeln!(page, "| `{name}` | {} | {meaning} |", property_type(property));
    }
    page.push('\n');
}

fn endpoints() -> String {
    let mut page = String::from("\n");
    let mut types = Map::new();
    for endpoint in ENDPOINTS.iter().copied().flatten() {
        let value = |schema: fn() -> Schema| schema().to_value();
        let (parameters, reply) = (value(endpoint.parameters), value(endpoint.reply));
        let about = plain(parameters["description"].as_str().unwrap_or_default());
        let _ = writeln!(page, "### `{} {}`\n\n{about}\n", endpoint.method.as_str(), endpoint.path);
        table(&mut page, "parameter", &parameters);
        table(&mut page, "field of the reply", &reply);
        types.extend(reply["$defs"].as_object().cloned().unwrap_or_default());
    }
    page.push_str("## Types\n\n");
    for (name, schema) in &types {
        let about = plain(schema["description"].as_str().unwrap_or_default());
        let _ = writeln!(page, "### `{name}`\n\n{about}\n");
        table(&mut page, "field", schema);
    }
    page.truncate(page.trim_end().len());
    page.push_str("\n\n");
    page
}

#[test]
fn the_reference_is_what_the_code_says() {
    let page = std::fs::read_to_string(PAGE).expect("docs/reference/admin-api.md is there");
    let start = page.find(START).expect("a start mark") + START.len();
    let end = page.find(END).expect("an end mark");
    let wanted = format!("{}{}{}", &page[..start], endpoints(), &page[end..]);
    if std::env::var_os("OUTBOARD_REGENERATE").is_some() {
        std::fs::write(PAGE, wanted).expect("the page can be written");
        return;
    }
    assert!(
        page == wanted,
        "docs/reference/admin-api.md is not what the code says; run \
         OUTBOARD_REGENERATE=1 cargo test -p outboard-admin-api"
    );
}

#[test]
fn no_two_endpoints_share_a_path() {
    let endpoints = ENDPOINTS.iter().copied().flatten();
    let mut paths: Vec<_> = endpoints.clone().map(|one| (one.path, one.method.as_str())).collect();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), endpoints.count());
}
