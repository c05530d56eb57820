//! Copies top-level sections into the apps, for keys that an app does not set.
//!
//! Works on the validated tree, before serde: there a key that is not set is simply absent.

use crate::shape::Shape;
use serde_json::{Map, Value};

/// The sections that apps inherit, key by key.
pub(crate) const INHERITED: [&str; 5] = ["limits", "log", "php", "pool", "static"];

/// Copies into every app what it inherits.
pub(crate) fn into_apps(root: &mut Map<String, Value>) {
    let app_shape = Shape::file().key("app").and_then(Shape::free_value);
    for section in INHERITED {
        let Some(general) = root.get(section).cloned() else { continue };
        let Some(shape) = app_shape.and_then(|app| app.key(section)) else { continue };
        let apps = root.get_mut("app").and_then(Value::as_object_mut);
        for app in apps.into_iter().flatten().filter_map(|(_, app)| app.as_object_mut()) {
            let own = app.entry(section).or_insert_with(|| Value::Object(Map::new()));
            overlay(own, &general, shape);
        }
    }
}

/// Adds to `own` the keys that only `general` has and an app may have.
fn overlay(own: &mut Value, general: &Value, shape: Shape) {
    let (Value::Object(own), Value::Object(general)) = (own, general) else { return };
    for (key, value) in general {
        let Some(inner) = shape.key(key).or_else(|| shape.free_value()) else { continue };
        match own.get_mut(key) {
            Some(mine) => overlay(mine, value, inner),
            None => {
                own.insert(key.clone(), value.clone());
            }
        }
    }
}
