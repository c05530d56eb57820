//! The PHP hosts that are installed: `outboard-php` in the directory of `outboard`, or
//! `outboard-phpX.Y` of a package, in `../lib/outboard`.
//!
//! Used by the commands that start PHP. Invariant: a version that is configured is either there, or missing
//! under the name of its package.

use outboard_config::Config;
use outboard_gateway::server::Load;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "outboard-php";

/// The host of apps that name none: the one that was built with this gateway, else the newest.
pub(crate) fn default() -> PathBuf {
    let own = own_directory();
    let beside = own.join(NAME);
    if beside.exists() { beside } else { newest(&library(&own)).unwrap_or(beside) }
}

/// Sets the host of each app that names a version of PHP.
pub(crate) fn with_versions(load: Load) -> Load {
    let library = library(&own_directory());
    Arc::new(move |open| {
        let mut config = load(open)?;
        set_hosts(&mut config, &library);
        Ok(config)
    })
}

fn set_hosts(config: &mut Config, library: &Path) {
    for app in &mut config.apps {
        if let Some(version) = &app.php.version {
            app.php.host_binary = Some(in_library(library, version));
        }
    }
}

/// Where the host of a version of PHP is, if it is installed.
pub(crate) fn of_version(version: &str) -> PathBuf {
    in_library(&library(&own_directory()), version)
}

fn in_library(library: &Path, version: &str) -> PathBuf {
    library.join(format!("{NAME}{version}"))
}

/// What to do about a version that is missing.
pub(crate) fn how_to_install(version: &str) -> String {
    format!(
        "install the package {NAME}{version}, or build it with OUTBOARD_PHP_CONFIG=php-config{version} cargo build \
         --release -p outboard-php, and write its path in php.host_binary"
    )
}

fn own_directory() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().unwrap_or(Path::new(".")).to_owned()
}

/// The directory of the packages' hosts, for programs in `bin`.
fn library(programs: &Path) -> PathBuf {
    programs.parent().unwrap_or(Path::new("/")).join("lib/outboard")
}

fn newest(library: &Path) -> Option<PathBuf> {
    let found = std::fs::read_dir(library).ok()?.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((version_of(&name)?, entry.path()))
    });
    found.max().map(|(_, path)| path)
}

/// The version in the name of a host: `(8, 2)` of `outboard-php8.2`.
fn version_of(name: &str) -> Option<(u32, u32)> {
    let (major, minor) = name.strip_prefix(NAME)?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_host_is_the_default_by_number_and_not_by_letter() {
        let dir = std::env::temp_dir().join(format!("outboard-hosts-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(newest(&dir), None);
        for name in ["outboard-php8.9", "outboard-php8.10", "outboard-php9.x", "other99.1"] {
            std::fs::write(dir.join(name), "").unwrap();
        }
        let found = newest(&dir);
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(found, Some(dir.join("outboard-php8.10")));
    }

    #[test]
    fn a_version_names_the_host_of_its_package() {
        let text = "[app.a]\nroot = \"/tmp\"\nphp.version = \"8.4\"\n[app.b]\nroot = \"/tmp\"\n\
                    hosts = [\"b\"]\n";
        let mut config = Config::parse(text, Path::new("/tmp/x.toml")).expect("a valid file");
        set_hosts(&mut config, &library(Path::new("/usr/bin")));
        let host = |at: usize| config.apps[at].php.host_binary.as_deref();
        assert_eq!(host(0), Some(Path::new("/usr/lib/outboard/outboard-php8.4")));
        assert_eq!(host(1), None);
    }
}
