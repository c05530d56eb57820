//! Reads `outboard.toml` into a validated [`Config`].
//!
//! A file goes through five steps. Each step reports all errors that it finds before the next one
//! starts:
//!
//! 1. `includes`: reads the files that it includes.
//! 2. `structure`: parses and merges them, expands `${…}` (`expansion`), and validates the result
//!    against the schema; invalid parts are reported and left out.
//! 3. `inherit`: copies the top-level sections into the apps.
//! 4. `raw`: deserialises the tree into typed values.
//! 5. `checked`: validates what depends on several keys or on the file system, and builds the
//!    [`Config`].
//!
//! The public API is [`Config`], [`Diagnostics`], their types and `schema`. No input makes this
//! crate panic.

#![forbid(unsafe_code)]

mod checked;
mod diagnostic;
mod directory;
mod disk;
mod expansion;
mod htaccess;
mod includes;
mod inherit;
mod places;
mod raw;
#[cfg(test)]
mod reference;
mod scalar;
mod secret;
mod settings;
mod shape;
mod source;
mod structure;

pub use checked::*;
pub use diagnostic::{Diagnostic, Diagnostics, Kind, Position};
pub use htaccess::HtaccessFiles;
pub use scalar::{
    Count, Coverage, HostPattern, MemoryBudget, Network, PathPattern, Schedule, TimeZone,
    UrlTemplate, query_pairs,
};
pub use settings::{Origin, Setting, Unusable};
pub use shape::schema;

pub use disk::Open;
use disk::{Disk, RealDisk, reason};
use expansion::{Expansion, ValueSource};
use settings::Settings;
use source::Source;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Real configurations are smaller; a device or a log file given by accident is larger.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// What `outboard serve --domain` is called with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains {
    /// The names that are served.
    pub names: Vec<String>,
    /// The address of HTTPS.
    pub https: String,
    /// The address of HTTP.
    pub http: String,
    /// See `[acme]` of the configuration file.
    pub email: Option<String>,
    /// The URL of another authority, or `local`.
    pub directory: Option<String>,
    /// An authority that is trusted for the connection; an absolute path.
    pub ca: Option<String>,
    /// The directory of certificates; an absolute path.
    pub storage: Option<String>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: &Path) -> Result<Config, Diagnostics> {
        Self::load_by(path, &|path| File::open(path))
    }

    /// Reads a file, and checks the files in it, through `open`, which may have more privileges.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_by(path: &Path, open: Open<'_>) -> Result<Config, Diagnostics> {
        let bytes = read(path, open).map_err(|error| {
            let hint = match error.kind() {
                io::ErrorKind::NotFound => Some("check the file name".to_owned()),
                _ => None,
            };
            unreadable(path, format!("cannot be read: {}", reason(&error)), hint)
        })?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => parse_on(&RealDisk { open }, text, path),
            Err(error) => Err(not_utf8(path, &bytes, error.valid_up_to())),
        }
    }

    /// Reads a text. `path_for_messages` names it in messages; relative paths are resolved
    /// against its directory.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, path_for_messages: &Path) -> Result<Config, Diagnostics> {
        parse_on(&RealDisk::OWN, text, path_for_messages)
    }

    /// The configuration of `outboard serve DIR`: one app for every host, on one
    /// listener. Its root is `dir`, or the `public` (`web`, `htdocs`, `webroot`) in it that holds
    /// an index.php.
    ///
    /// # Errors
    /// A directory that cannot be served or a bad address.
    pub fn for_directory(dir: &Path, listen: &str) -> Result<Config, Diagnostics> {
        Self::of_directory(dir, listen, "production")
    }

    /// The same in development mode.
    ///
    /// # Errors
    /// As [`Config::for_directory`].
    pub fn for_development(dir: &Path, listen: &str) -> Result<Config, Diagnostics> {
        Self::of_directory(dir, listen, "development")
    }

    /// The configuration of `outboard serve --domain NAME DIR`: one app for these names over HTTPS, with
    /// certificates that the server obtains itself, and redirects from HTTP.
    ///
    /// # Errors
    /// As [`Config::for_directory`].
    pub fn for_domains(dir: &Path, domains: &Domains) -> Result<Config, Diagnostics> {
        let quoted = |name: &str, value: &Option<String>| {
            value
                .as_ref()
                .map_or(String::new(), |value| format!("{name} = {}\n", toml_string(value)))
        };
        let names: Vec<String> = domains.names.iter().map(|name| toml_string(name)).collect();
        let (https, http) = (toml_string(&domains.https), toml_string(&domains.http));
        let head = format!(
            "[[listen]]\naddress = {https}\ntls = \"auto\"\nhttp3 = true\n\
             [[listen]]\naddress = {http}\nredirect_to_https = true\n\
             [acme]\nterms_agreed = true\n{}{}{}{}",
            quoted("email", &domains.email),
            quoted("directory", &domains.directory),
            quoted("ca", &domains.ca),
            quoted("storage", &domains.storage),
        );
        Self::of_app(dir, &head, &format!("hosts = [{}]\n", names.join(", ")))
    }

    fn of_directory(dir: &Path, listen: &str, environment: &str) -> Result<Config, Diagnostics> {
        let (listen, environment) = (toml_string(listen), toml_string(environment));
        let head = format!("listen = {listen}\nenvironment = {environment}\n");
        Self::of_app(dir, &head, "")
    }

    /// One app whose root is found in `dir`, behind these tables and with these keys.
    fn of_app(dir: &Path, head: &str, keys: &str) -> Result<Config, Diagnostics> {
        let absolute = std::path::absolute(dir).map_err(|error| {
            unreadable(dir, format!("the path cannot be made absolute: {}", reason(&error)), None)
        })?;
        let root = directory::root_of(&absolute, &RealDisk::OWN);
        let Some(root) = root.to_str().map(toml_string) else {
            return Err(unreadable(dir, "the path is not UTF-8".to_owned(), None));
        };
        let text = format!("{head}[app.default]\nroot = {root}\n{keys}");
        parse_on(&RealDisk::OWN, &text, &absolute)
            .map_err(|diagnostics| diagnostics.without_positions(dir))
    }
}

fn parse_on(disk: &dyn Disk, text: &str, path: &Path) -> Result<Config, Diagnostics> {
    let absolute = std::path::absolute(path).map_err(|error| {
        unreadable(path, format!("the path cannot be made absolute: {}", reason(&error)), None)
    })?;
    let directory = absolute.parent().unwrap_or(Path::new("/"));
    let expansion = Expansion { disk, directory, variable: &|name| std::env::var_os(name) };
    let gathered = includes::gather(text, path, &absolute, expansion);
    let source = &gathered.source;
    let mut tree = structure::read(source, expansion, gathered.diagnostics);
    inherit::into_apps(&mut tree.root);
    let root = serde_json::Value::Object(tree.root);
    let raw: raw::File = match serde_json::from_value(root) {
        Ok(raw) => raw,
        // The schema is generated from the types, so a file that passed the first step does not
        // get here; this reports an error instead of panicking should they ever differ.
        Err(error) => return Err(unreadable(path, error.to_string(), None).redacted(&tree.secrets)),
    };
    let places = &tree.places;
    let diagnostics = tree.diagnostics;
    let mut context = checked::Context {
        source,
        places,
        disk,
        file: &absolute,
        directory,
        diagnostics,
        networks: checked::Networks::new(),
    };
    let mut config = checked::file(&raw, &mut context);
    match context.diagnostics {
        none if none.is_empty() => {
            config.files.extend(gathered.files);
            config.files.extend(places.all_sources().filter_map(ValueSource::file));
            if let Some(development) = &mut config.development {
                development.configuration_files = config.files.clone();
            }
            // Only a failing `Serialize` of a key would be an error, and then nothing is shown.
            let values = serde_json::to_value(&raw).unwrap_or_default();
            let settings = Settings { places, source, secrets: &tree.secrets, file: &absolute };
            config.settings = Arc::new(settings.of(&values));
            Ok(config)
        }
        list => Err(Diagnostics::new(path, list).redacted(&tree.secrets)),
    }
}

fn read(path: &Path, open: Open<'_>) -> io::Result<Vec<u8>> {
    let file = open(&std::path::absolute(path)?)?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

fn unreadable(path: &Path, message: String, hint: Option<String>) -> Diagnostics {
    let kind = Kind::Unreadable;
    Diagnostics::new(path, vec![Diagnostic { kind, position: None, key: None, message, hint }])
}

/// Points at the first byte that is not UTF-8.
fn not_utf8(path: &Path, bytes: &[u8], at: usize) -> Diagnostics {
    let text = String::from_utf8_lossy(bytes);
    let source = Source::new(&text);
    let diagnostic = Diagnostic {
        kind: Kind::Unreadable,
        // Up to the first bad byte the lossy text is the text itself.
        position: Some(source.position(at..at + 1)),
        key: None,
        message: "invalid UTF-8".to_owned(),
        hint: Some("save it as UTF-8".to_owned()),
    };
    Diagnostics::new(path, vec![diagnostic])
}

fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
