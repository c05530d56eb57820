//! Directories for data that an application's own settings name and that its sandbox does not let it write to.
//!
//! Called by `outboard check`. Invariants: only files of a known name are read, up to [`MAX_BYTES`] of each; a
//! directory that does not exist is not reported. What is found is a hint: the sandbox itself decides by its rules
//! (docs/guide/sandbox.md).

use outboard_config::App;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Settings of WordPress, Moodle, Nextcloud and of frameworks, below the root or the directory above.
const FILES: [&str; 4] = ["wp-config.php", "config.php", "config/config.php", ".env"];

/// Settings in PHP with a directory. In `.env` any value may be one.
const NAMES: [&str; 6] =
    ["dataroot", "datadirectory", "WP_CONTENT_DIR", "UPLOADS", "WP_TEMP_DIR", "cachedir"];

/// Written to by all.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

const MAX_BYTES: u64 = 64 << 10;

/// Each such directory, and the file that names it.
pub(crate) fn denied(app: &App) -> Vec<(PathBuf, PathBuf)> {
    let Some(sandbox) = &app.sandbox else { return Vec::new() };
    let mut permitted = sandbox.write_paths.clone();
    if !sandbox.is_strict {
        permitted.extend(TEMPORARY.map(PathBuf::from));
        permitted.extend(own_directories(app));
    }
    let permitted: Vec<PathBuf> =
        permitted.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let directories = [Some(app.root.as_path()), app.root.parent()];
    let files = directories.into_iter().flatten().flat_map(|at| FILES.map(|name| at.join(name)));
    let mut found = Vec::new();
    for file in files {
        for path in named(&file) {
            let Ok(path) = path.canonicalize() else { continue };
            let is_denied = path.is_dir() && !permitted.iter().any(|own| path.starts_with(own));
            if is_denied && !found.iter().any(|(other, _)| *other == path) {
                found.push((path, file.clone()));
            }
        }
    }
    found
}

/// What the sandbox permits without a setting, as far as it depends on the root.
fn own_directories(app: &App) -> Vec<PathBuf> {
    let above = app.root.ancestors().skip(1).take(2);
    let is_public = |name: &str| {
        ["public", "web", "webroot", "pub", "htdocs", "httpdocs", "www"].contains(&name)
    };
    let has_private_part =
        app.root.file_name().and_then(|name| name.to_str()).is_some_and(is_public);
    let private = app.root.parent().filter(|_| has_private_part).map(Path::to_owned);
    let project = above.clone().find(|at| at.join("composer.json").exists()).map(Path::to_owned);
    let package = app.root.strip_prefix("/usr/share").ok().and_then(|below| below.iter().next());
    let package = package.map(|name| Path::new("/var/lib").join(name));
    let named = app.sendfile.roots.iter().chain(app.sendfile.accel.values());
    let named = named.chain(&app.static_files.symlink_targets).chain([&app.root]);
    named.cloned().chain(private).chain(project).chain(package).collect()
}

/// The absolute paths in a file of settings.
fn named(file: &Path) -> Vec<PathBuf> {
    let mut text = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text);
    let is_environment = file.ends_with(".env");
    text.lines().filter_map(|line| value(line.trim(), is_environment)).map(PathBuf::from).collect()
}

fn value(line: &str, is_environment: bool) -> Option<&str> {
    if ["#", "//", "*", "/*"].iter().any(|mark| line.starts_with(mark)) {
        return None;
    }
    if is_environment {
        let value = line.split_once('=')?.1.trim().trim_matches(['"', '\'']);
        return value.starts_with('/').then_some(value);
    }
    let rest = NAMES.iter().find_map(|name| line.split_once(name)).map(|(_, rest)| rest)?;
    let start = ["'/", "\"/"].iter().filter_map(|mark| rest.find(mark)).min()?;
    let quote = rest[start..].chars().next()?;
    rest[start + 1..].split(quote).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outboard_config::Config;

    #[test]
    fn settings_in_php_and_in_the_environment_are_read() {
        for (line, is_environment, found) in [
            ("$CFG->dataroot  = '/srv/moodledata';", false, Some("/srv/moodledata")),
            ("'datadirectory' => \"/mnt/nextcloud\",", false, Some("/mnt/nextcloud")),
            ("define('WP_CONTENT_DIR', '/srv/content');", false, Some("/srv/content")),
            ("// $CFG->dataroot = '/srv/moodledata';", false, None),
            ("define('UPLOADS', 'wp-content/media');", false, None),
            ("$dbname = '/srv/a';", false, None),
            ("STORAGE=\"/mnt/files\"", true, Some("/mnt/files")),
            ("# STORAGE=/mnt/files", true, None),
            ("APP_URL=http://a/", true, None),
        ] {
            assert_eq!(value(line, is_environment), found, "{line}");
        }
    }

    #[test]
    fn data_outside_of_the_sandbox_is_found_until_it_is_permitted() {
        let site = Path::new("/var/tmp").join(format!("outboard-data-{}", std::process::id()));
        std::fs::create_dir_all(site.join("www")).unwrap();
        // Any directory that is neither temporary nor the app's.
        let data = Path::new("/usr/share").canonicalize().unwrap();
        let file = site.join("www/config.php");
        std::fs::write(&file, format!("<?php $CFG->dataroot = '{}';", data.display())).unwrap();
        let denied_with = |sandbox: &str| {
            let text = format!("[app.site]\nroot = \"www\"\n{sandbox}\n");
            let config = Config::parse(&text, &site.join("outboard.toml")).unwrap();
            denied(&config.apps[0])
        };
        assert_eq!(denied_with(""), [(data.clone(), file)]);
        assert_eq!(denied_with("[app.site.sandbox]\nwrite_paths = [\"/usr/share\"]"), []);
        assert_eq!(denied_with("sandbox = \"off\""), []);
        std::fs::remove_dir_all(site).unwrap();
    }
}
