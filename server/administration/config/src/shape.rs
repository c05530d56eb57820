//! The JSON schema of the configuration, and how the rest of the crate reads it.
//!
//! The schema is generated from the types in [`crate::raw`] and is the single description of what
//! a file may contain: [`crate::structure`] checks files by it, editors complete by it, and the
//! reference tables are printed from it. Beside the standard keywords it has
//!
//! * `format`: the name of a [`crate::scalar`] kind,
//! * `x-minimum`, `x-maximum`: bounds of such a kind, as people write them,
//! * `x-hint`: the hint for an invalid value,
//! * `x-alias`: what other servers call the key,
//! * `x-literal`: values of the key are not expanded, since `${` has a meaning of its own there.

use crate::scalar::{Address, Expression, Scalar};
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// The JSON schema of `outboard.toml` (draft 2020-12).
pub fn schema() -> Value {
    generated().clone()
}

pub(crate) fn generated() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = schemars::schema_for!(crate::raw::File).to_value();
        tidy(&mut schema);
        if let Some(top) = schema.as_object_mut() {
            top.insert("title".to_owned(), "outboard.toml".into());
        }
        schema
    })
}

/// Removes what the generator adds for Rust's sake: `null` for absent values (TOML has none),
/// defaults that only repeat the defaults of the table's own keys, and the line breaks of its
/// comments.
fn tidy(node: &mut Value) {
    match node {
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::Object(object) => {
            remove_null(object);
            bound_integer(object);
            let says_nothing = |value: &Value| value.is_null() || value.is_object() || value == "";
            if object.get("default").is_some_and(says_nothing) {
                object.remove("default");
            }
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            object.iter_mut().for_each(|(keyword, value)| match value {
                // Its members are keys of a table, of which one is called `default`.
                Value::Object(keys) if keyword == "properties" => keys.values_mut().for_each(tidy),
                _ => tidy(value),
            });
        }
        _ => {}
    }
}

/// The generator names an integer's width in `format`; here it becomes a bound like any other.
fn bound_integer(object: &mut Map<String, Value>) {
    let largest = match object.get("format").and_then(Value::as_str) {
        Some("uint16") => u32::from(u16::MAX),
        Some("uint32") => u32::MAX,
        _ => return,
    };
    object.remove("format");
    object.entry("maximum").or_insert_with(|| largest.into());
}

fn remove_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(variants)) = object.get_mut("anyOf") {
        variants.retain(|variant| variant.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(only)] = variants.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}

/// One node of the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    node: &'static Value,
}

impl Shape {
    /// The whole file.
    pub(crate) fn file() -> Shape {
        Shape { node: generated() }
    }

    /// A keyword of this node, or of the definition it refers to.
    pub(crate) fn keyword(self, name: &str) -> Option<&'static Value> {
        let mut node = self.node;
        loop {
            if let Some(value) = node.get(name) {
                return Some(value);
            }
            let reference = node.get("$ref")?.as_str()?;
            node = generated().pointer(reference.strip_prefix('#')?)?;
        }
    }

    fn child(self, name: &str) -> Option<Shape> {
        self.keyword(name).map(|node| Shape { node })
    }

    fn text(self, name: &str) -> Option<&'static str> {
        self.keyword(name).and_then(Value::as_str)
    }

    fn list(self, name: &str) -> &'static [Value] {
        self.keyword(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The shapes a value may have: usually this one alone.
    pub(crate) fn variants(self) -> Vec<Shape> {
        match self.list("anyOf") {
            [] => vec![self],
            variants => variants.iter().flat_map(|node| Shape { node }.variants()).collect(),
        }
    }

    /// The JSON types of this shape. A list of choices is a list of strings.
    pub(crate) fn types(self) -> Vec<&'static str> {
        match self.keyword("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            _ if !self.choices().is_empty() => vec!["string"],
            _ => Vec::new(),
        }
    }

    /// The words to choose from, each with its meaning where it has one.
    pub(crate) fn choices(self) -> Vec<(&'static str, Option<&'static str>)> {
        let plain = self.list("enum").iter().filter_map(|word| Some((word.as_str()?, None)));
        let described = self.list("oneOf").iter().flat_map(|node| {
            let shape = Shape { node };
            let meaning = shape.description();
            shape.choices().into_iter().map(move |(word, _)| (word, meaning))
        });
        let only = self.text("const").map(|word| (word, None));
        plain.chain(described).chain(only).collect()
    }

    /// The keys of a table, in alphabetical order.
    pub(crate) fn keys(self) -> impl Iterator<Item = (&'static str, Shape)> {
        let properties = self.keyword("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(key, node)| (key.as_str(), Shape { node }))
    }

    /// The shape of `key`.
    pub(crate) fn key(self, key: &str) -> Option<Shape> {
        self.keyword("properties")?.get(key).map(|node| Shape { node })
    }

    /// The shape of the values of a map with free keys.
    pub(crate) fn free_value(self) -> Option<Shape> {
        self.child("additionalProperties").filter(|shape| shape.node.is_object())
    }

    /// The shape of the keys of such a map.
    pub(crate) fn free_key(self) -> Option<Shape> {
        self.child("propertyNames")
    }

    /// The elements of an array.
    pub(crate) fn items(self) -> Option<Shape> {
        self.child("items")
    }

    /// The keys that must be there.
    pub(crate) fn required(self) -> impl Iterator<Item = &'static str> {
        self.list("required").iter().filter_map(Value::as_str)
    }

    /// The kind of scalar.
    pub(crate) fn format(self) -> Option<&'static crate::scalar::Format> {
        let name = self.text("format")?;
        crate::scalar::FORMATS.iter().find(|format| format.name == name)
    }

    /// Whether it is where a server listens.
    pub(crate) fn is_address(self) -> bool {
        self.format().is_some_and(|format| format.name == Address::NAME)
    }

    /// Its description.
    pub(crate) fn description(self) -> Option<&'static str> {
        self.text("description")
    }

    /// The hint for an invalid value.
    pub(crate) fn hint(self) -> Option<&'static str> {
        self.text("x-hint")
    }

    /// Whether `${` in a value is part of the value's own syntax.
    pub(crate) fn is_literal(self) -> bool {
        let literal = |shape: Shape| {
            shape.keyword("x-literal").is_some()
                || shape.format().is_some_and(|format| format.name == Expression::NAME)
        };
        self.variants().into_iter().any(literal)
    }

    /// Names of the key in other servers.
    pub(crate) fn aliases(self) -> impl Iterator<Item = &'static str> {
        self.list("x-alias").iter().filter_map(Value::as_str)
    }
}

#[cfg(test)]
mod tests;
