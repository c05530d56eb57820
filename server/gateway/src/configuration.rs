//! The effective configuration as the admin API describes it.
//!
//! Called by the admin socket, and by `outboard config show` for a file.

use outboard_admin_api::config::{Configuration, Setting};
use outboard_config::{Config, Origin};
use std::path::Path;

/// The settings of a configuration; secrets have been left out by `outboard_config`.
pub fn of(config: &Config) -> Configuration {
    let text = |path: &Path| path.display().to_string();
    let settings = config.settings.iter().map(|setting| Setting {
        key: setting.key.clone(),
        value: setting.value.clone(),
        origin: origin(setting.origin).to_owned(),
        file: setting.file.as_deref().map(text),
        line: setting.line,
        sources: setting.sources.clone(),
    });
    Configuration {
        file: text(&config.file),
        files: config.files.iter().map(|path| text(path)).collect(),
        settings: settings.collect(),
    }
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::File => "file",
        Origin::Environment => "environment",
        Origin::SecretFile => "secret-file",
        Origin::Default => "default",
        Origin::CommandLine => "command-line",
    }
}
