//! The names of private files: databases and their dumps, backups, logs, keys. Lexical only; called by
//! [`crate::source`].
//!
//! The list has names that applications protect by a `.htaccess`, and left-overs of editors and
//! manual edits. Files that sites usually publish (archives, `package.json`) are not in it.

/// Suffixes of names.
const SUFFIXES: [&[u8]; 27] = [
    // Databases and dumps.
    b".sqlite",
    b".sqlite2",
    b".sqlite3",
    b".db",
    b".db3",
    b".sql",
    b".dump",
    // Copies by editors, patch(1) and hand.
    b".bak",
    b".backup",
    b".old",
    b".orig",
    b".save",
    b".swp",
    b".swo",
    b"~",
    // Logs.
    b".log",
    // Keys and key stores.
    b".pem",
    b".key",
    b".p12",
    b".pfx",
    b".ppk",
    b".jks",
    b".kdbx",
    // Files that reveal the parts of an application.
    b"composer.json",
    b"composer.lock",
    b"error_log",
    b"access_log",
];

/// Suffixes that SQLite appends to a database's name (sqlite.org/tempfiles.html).
const OF_SQLITE: [&[u8]; 3] = [b"-journal", b"-wal", b"-shm"];

/// Archives whose names tell their content, such as `dump.sql.zip`.
const ARCHIVES: [&[u8]; 4] = [b".zip", b".7z", b".rar", b".tar"];

/// Whether the last component of a path, without compression suffixes, is a private name.
pub(crate) fn is_private(name: &[u8]) -> bool {
    let name = without_number(name);
    let mut wrapped = OF_SQLITE.iter().chain(&ARCHIVES);
    SUFFIXES.iter().any(|suffix| ends_with(name, suffix))
        || wrapped.find_map(|suffix| before(name, suffix)).is_some_and(is_private)
        || (name.len() > 2 && name.starts_with(b"#") && name.ends_with(b"#"))
        || is_container_plan(name)
}

/// `docker-compose.yml`, `docker-compose.prod.yaml`, `compose.yml`.
fn is_container_plan(name: &[u8]) -> bool {
    let Some(stem) = before(name, b".yml").or_else(|| before(name, b".yaml")) else { return false };
    let stem = stem.to_ascii_lowercase();
    stem.starts_with(b"docker-compose") || stem == b"compose" || stem.starts_with(b"compose.")
}

/// `app.log.2` is `app.log`, as logrotate(8) names it.
fn without_number(name: &[u8]) -> &[u8] {
    let bare = name.trim_ascii_end();
    let digits = bare.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match bare[..bare.len() - digits] {
        [ref stem @ .., b'.' | b'-'] if digits > 0 && ends_with(stem, b"log") => stem,
        _ => bare,
    }
}

fn before<'n>(name: &'n [u8], suffix: &[u8]) -> Option<&'n [u8]> {
    ends_with(name, suffix).then(|| &name[..name.len() - suffix.len()])
}

fn ends_with(name: &[u8], suffix: &[u8]) -> bool {
    name.len() >= suffix.len() && name[name.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_dumps_backups_logs_and_keys_are_private() {
        for name in [
            "db.sqlite",
            "my_wiki.SQLITE3",
            "db.sqlite-wal",
            "db.sqlite-journal",
            "app.db-shm",
            "Thumbs.db",
            "dump.sql",
            "dump.sql.zip",
            "settings.bak",
            "index.html.old",
            "a.orig",
            "page.html~",
            "#index.html#",
            "notes.txt.swp",
            "debug.log",
            "debug.LOG.1",
            "app.log-20261122",
            "error_log",
            "composer.json",
            "Composer.lock",
            "docker-compose.yml",
            "docker-compose.override.yaml",
            "compose.yaml",
            "server.key",
            "server.pem",
        ] {
            assert!(is_private(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_sites_publish_is_not() {
        for name in [
            "index.html",
            "data.json",
            "package.json",
            "package-lock.json",
            "site.css",
            "backup.tar.gz",
            "changelog",
            "catalog",
            "blog",
            "mysql",
            "sql.html",
            "old.png",
            "key.svg",
            "a#b#",
            "#",
            "##",
            "compose.js",
            "decompose.yml",
            "openapi.yml",
            "readme.txt",
            "jquery-3.7.1",
            "1",
            "",
        ] {
            assert!(!is_private(name.as_bytes()), "{name}");
        }
    }
}
