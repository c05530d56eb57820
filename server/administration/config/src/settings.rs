//! The effective configuration: every key, its value and where the value comes from.
//!
//! Built by [`crate::parse_on`]; printed by `outboard config show`, for a file and for a running server.
//! Invariant: it has no secret (see [`crate::secret`]), so that it can be printed and sent.

use crate::diagnostic::{Diagnostic, Diagnostics, Kind, Position};
use crate::expansion::ValueSource;
use crate::places::Places;
use crate::secret;
use crate::source::Source;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The key, such as `app.shop.rewrite.0.match`.
    pub key: String,
    /// Its value; secrets are replaced.
    pub value: Value,
    /// The kind of place that the value comes from.
    pub origin: Origin,
    /// The file that has the key.
    pub file: Option<PathBuf>,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    /// The environment variables and files that the value was read from.
    pub sources: Vec<String>,
    /// The place of the value, for errors.
    pub(crate) at: Option<Position>,
}

/// A setting whose value is valid, but not on this machine.
#[derive(Debug)]
pub struct Unusable {
    /// The key, such as `app.shop.user`.
    pub key: String,
    /// What is missing.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// Settings that cannot be used, as errors of their file.
pub(crate) fn unusable(
    settings: &[Setting],
    path: &Path,
    list: Vec<Unusable>,
) -> Result<(), Diagnostics> {
    let error = |one: Unusable| Diagnostic {
        kind: Kind::Path,
        position: settings
            .iter()
            .find(|known| known.key == one.key)
            .and_then(|known| known.at.clone()),
        key: Some(one.key),
        message: one.message,
        hint: Some(one.hint),
    };
    let list: Vec<Diagnostic> = list.into_iter().map(error).collect();
    if list.is_empty() { Ok(()) } else { Err(Diagnostics::new(path, list)) }
}

/// The kind of place that a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The configuration.
    File,
    /// An environment variable, which the configuration names.
    Environment,
    /// A file, which the configuration names.
    SecretFile,
    /// The default.
    Default,
    /// The command line.
    CommandLine,
}

/// Replaces the value of a key by one of the command line.
pub(crate) fn replace(settings: &mut Vec<Setting>, key: &str, value: &str) {
    settings.retain(|setting| setting.key != key);
    settings.push(Setting {
        key: key.to_owned(),
        value: value.into(),
        origin: Origin::CommandLine,
        file: None,
        line: None,
        sources: Vec::new(),
        at: None,
    });
    settings.sort_by(|one, other| one.key.cmp(&other.key));
}

/// What the settings are built from.
pub(crate) struct Settings<'a> {
    pub(crate) places: &'a Places,
    pub(crate) source: &'a Source<'a>,
    pub(crate) secrets: &'a [String],
    pub(crate) file: &'a Path,
}

impl Settings<'_> {
    /// Every key of the tree, sorted.
    pub(crate) fn of(&self, root: &Value) -> Vec<Setting> {
        let mut all = Vec::new();
        self.collect(&mut Vec::new(), root, &mut all);
        all.sort_by(|one, other| one.key.cmp(&other.key));
        all
    }

    // The tree is that of the schema, so its depth is bounded.
    fn collect(&self, path: &mut Vec<String>, value: &Value, all: &mut Vec<Setting>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Null => return,
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
            Value::Array(list) if list.iter().any(Value::is_object) => {
                list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
            }
            leaf => return all.push(self.setting(path, leaf)),
        };
        for (key, value) in children {
            path.push(key);
            self.collect(path, value, all);
            path.pop();
        }
    }

    fn setting(&self, path: &[String], value: &Value) -> Setting {
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        let sources = self.sources(&keys, value);
        let is_file = |source: &ValueSource| matches!(source, ValueSource::File(_));
        let at = self.places.key(&keys).filter(|_| self.places.wrote(&keys));
        let at = at.map(|span| self.source.position(span));
        let value_at = self.places.value(&keys).filter(|_| at.is_some());
        let value_at = value_at.map(|span| self.source.position(span));
        let origin = match &at {
            None => Origin::Default,
            Some(_) if sources.is_empty() => Origin::File,
            Some(_) if sources.iter().any(is_file) => Origin::SecretFile,
            Some(_) => Origin::Environment,
        };
        let file = |included: Option<PathBuf>| included.unwrap_or_else(|| self.file.to_owned());
        Setting {
            key: path.join("."),
            value: self.redacted(path, value),
            origin,
            line: at.as_ref().map(|at| at.line),
            file: at.map(|at| file(at.file)),
            sources: sources.into_iter().map(name).collect(),
            at: value_at,
        }
    }

    /// Those of the value, and of its elements.
    fn sources(&self, path: &[&str], value: &Value) -> Vec<ValueSource> {
        let mut all = self.places.sources(path).to_vec();
        for at in 0..value.as_array().map_or(0, Vec::len) {
            let at = at.to_string();
            all.extend_from_slice(self.places.sources(&[path, &[at.as_str()]].concat()));
        }
        all
    }

    fn redacted(&self, path: &[String], value: &Value) -> Value {
        match value {
            Value::String(_) | Value::Array(_) if secret::is_at(path) => secret::REDACTED.into(),
            Value::Array(list) => {
                list.iter().map(|one| secret::redact_value(one, self.secrets)).collect()
            }
            other => secret::redact_value(other, self.secrets),
        }
    }
}

fn name(source: ValueSource) -> String {
    match source {
        ValueSource::Variable(name) => name,
        ValueSource::File(path) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::FullDisk;

    fn setting(text: &str, key: &str) -> Setting {
        let config = crate::parse_on(&FullDisk, text, Path::new("/srv/outboard.toml")).unwrap();
        let found = config.settings.iter().find(|setting| setting.key == key);
        found.unwrap_or_else(|| panic!("no {key}")).clone()
    }

    #[test]
    fn every_value_has_its_origin() {
        let text =
            "[limits]\nbody = 1\n[app.a]\nroot = \"${CARGO_PKG_NAME}\"\nuser = \"${file:u}\"\n";
        let of = |key| {
            let found = setting(text, key);
            (found.origin, found.line, found.sources.join(","))
        };
        assert_eq!(of("limits.connections"), (Origin::Default, None, String::new()));
        assert_eq!(of("limits.body"), (Origin::File, Some(2), String::new()));
        assert_eq!(of("app.a.limits.body"), (Origin::File, Some(2), String::new()));
        let variable = "CARGO_PKG_NAME".to_owned();
        assert_eq!(of("app.a.root"), (Origin::Environment, Some(4), variable));
        assert_eq!(of("app.a.user"), (Origin::SecretFile, Some(5), "/srv/u".to_owned()));
    }

    #[test]
    fn secrets_are_left_out() {
        let text = "[app.a]\nroot = \"a\"\nuser = \"${file:u}\"\nphp.env.DB_PASSWORD = \"x\"\n\
                    php.env.URL = \"mysql://me:pw@db/x\"\nphp.env.NAME = \"x\"\n\
                    [[app.a.access]]\nbasic_auth.users.ann = \"$2y$04$abcdefghijklmnopqrstuuVzU0q8E7xq0vNRJ0xj0Q1J8gJ5w3k3K\"\n";
        assert_eq!(setting(text, "app.a.user").value, secret::REDACTED);
        let hash = "app.a.access.0.basic_auth.users.ann";
        assert_eq!(setting(text, hash).value, secret::REDACTED);
        assert_eq!(setting(text, "app.a.php.env.DB_PASSWORD").value, secret::REDACTED);
        assert_eq!(setting(text, "app.a.php.env.URL").value, "mysql://[redacted]@db/x");
        assert_eq!(setting(text, "app.a.php.env.NAME").value, "x");
    }

    #[test]
    fn the_command_line_replaces_an_origin() {
        let text = "user = \"x\"\n[app.a]\nroot = \"a\"\n";
        let path = Path::new("/srv/outboard.toml");
        let mut config = crate::parse_on(&FullDisk, text, path).unwrap();
        config.set_by_command_line("user", "y");
        let user: Vec<_> = config.settings.iter().filter(|one| one.key == "user").collect();
        assert_eq!((user.len(), user[0].origin), (1, Origin::CommandLine));
        assert_eq!(user[0].value, "y");
    }
}
