//! Statements of both servers: what becomes of each, and files that are damaged or hostile.

mod conditions;
mod hostile;
mod httpd;
mod includes;
mod nginx;

use outboard_import::{ImportError, Imported, Kind, import};
use std::io;
use std::path::Path;

/// Translates the text of a file, which includes no others.
fn translated(kind: Kind, text: &str) -> Result<Imported, ImportError> {
    let read = |path: &Path| match path.to_str() {
        Some("/etc/site.conf") => Ok(text.to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    import(Path::new("/etc/site.conf"), Some(kind), &read)
}

/// The whole configuration, and the reasons of what was left out.
fn whole(kind: Kind, text: &str) -> (toml::Table, Vec<String>) {
    let imported = translated(kind, text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let reasons = imported.omissions.into_iter().map(|one| one.reason).collect();
    (imported.toml.parse().expect("it is TOML"), reasons)
}

/// The keys of the only app, but for those of every app.
fn app(kind: Kind, text: &str) -> (toml::Table, Vec<String>) {
    let (mut config, reasons) = whole(kind, text);
    let mut apps = config.remove("app").expect("there is an app");
    let apps = std::mem::take(apps.as_table_mut().unwrap());
    assert_eq!(apps.len(), 1, "{apps}");
    let mut app = apps.into_iter().next().unwrap().1.as_table().unwrap().clone();
    assert_eq!(app.remove("root"), Some("/srv/www".into()));
    if app.get("front_controller") == Some(&"none".into()) {
        app.remove("front_controller");
    }
    (app, reasons)
}

/// Asserts the keys of the app that these statements become, and parts of the reasons.
#[track_caller]
fn assert_app(found: (toml::Table, Vec<String>), expected: &str, reasons: &[&str], text: &str) {
    let (app, omitted) = found;
    let expected: toml::Table = expected.parse().expect("it is TOML");
    assert_eq!(app, expected, "{text}\n{app}");
    assert_eq!(omitted.len(), reasons.len(), "{text}\n{omitted:#?}");
    for (reason, part) in omitted.iter().zip(reasons) {
        assert!(reason.contains(part), "{text}\n{omitted:#?}");
    }
}
