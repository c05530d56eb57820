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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn inherited(root: Value) -> Value {
        let Value::Object(mut root) = root else { panic!("a table") };
        into_apps(&mut root);
        root["app"].clone()
    }

    #[test]
    fn an_app_gets_the_keys_that_it_has_not_set() {
        let apps = inherited(json!({
            "limits": { "body": "1m", "body_timeout": "7s" },
            "php": { "ini": { "memory_limit": "1M", "display_errors": true } },
            "app": {
                "one": { "limits": { "body": "2m" }, "php": { "ini": { "memory_limit": "2M" } } },
                "two": {},
            },
        }));
        assert_eq!(apps["one"]["limits"], json!({ "body": "2m", "body_timeout": "7s" }));
        let ini = json!({ "memory_limit": "2M", "display_errors": true });
        assert_eq!(apps["one"]["php"]["ini"], ini);
        assert_eq!(apps["two"]["limits"], json!({ "body": "1m", "body_timeout": "7s" }));
    }

    #[test]
    fn a_list_of_an_app_replaces_that_of_the_section() {
        let apps = inherited(json!({
            "php": { "extensions": [".php", ".inc"] },
            "app": { "one": { "php": { "extensions": [".phtml"] } } },
        }));
        assert_eq!(apps["one"]["php"]["extensions"], json!([".phtml"]));
    }

    #[test]
    fn keys_of_the_server_are_not_those_of_an_app() {
        for section in INHERITED {
            let app = Shape::file().key("app").and_then(Shape::free_value).unwrap();
            let [of_app, of_server] = [app, Shape::file()].map(|shape| shape.key(section).unwrap());
            for (key, _) in of_server.keys().filter(|(key, _)| of_app.key(key).is_none()) {
                let root = json!({ section: { key: 1 }, "app": { "one": {} } });
                assert_eq!(inherited(root)["one"][section], json!({}), "{section}.{key}");
            }
        }
    }

    #[test]
    fn sections_without_an_app_stay_as_they_are() {
        let Value::Object(mut root) = json!({ "limits": { "body": "1m" } }) else { panic!() };
        let before = root.clone();
        into_apps(&mut root);
        assert_eq!(root, before);
    }
}
