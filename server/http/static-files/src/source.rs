//! Classifies files by name: script, PHP source, private or plain. Lexical only; called by
//! [`crate::Root`] for regular files that exist.

use crate::{mime, private};

/// Suffixes that archivers and pre-compression append to a name.
const WRAPPERS: [&[u8]; 5] = [b".gz", b".br", b".zst", b".bz2", b".xz"];

/// The class of a file by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    /// A script to run.
    Script,
    /// A PHP source or a left-over copy of one: neither run nor served.
    Source,
    /// A database, a backup, a log, a key, or a source named as a text or archive: served only if the
    /// configuration allows it.
    Private,
    /// Any other file.
    Plain,
}

/// Extensions that make `config.php.txt` a private copy. Pages and images (`Foo.php.html`,
/// `Foo.php.png`) are published on purpose.
const COPY_EXTENSIONS: [&[u8]; 7] = [b"txt", b"text", b"zip", b"tar", b"tgz", b"rar", b"7z"];

/// The root's suffix lists, in lower case.
#[derive(Debug)]
pub(crate) struct SourceNames {
    scripts: Vec<Box<[u8]>>,
    sources: Vec<Box<[u8]>>,
    detects_private: bool,
}

impl SourceNames {
    /// Suffixes are given with or without their leading dot, in any case.
    pub(crate) fn new(scripts: &[String], sources: &[String], detects_private: bool) -> Self {
        let lower = |suffixes: &[String]| {
            suffixes
                .iter()
                .map(|suffix| suffix.trim_start_matches('.'))
                .filter(|suffix| !suffix.is_empty())
                .map(|suffix| format!(".{}", suffix.to_ascii_lowercase()).into_bytes().into())
                .collect()
        };
        Self { scripts: lower(scripts), sources: lower(sources), detects_private }
    }

    /// Whether no name is a PHP name.
    pub(crate) fn is_empty(&self) -> bool {
        self.scripts.is_empty() && self.sources.is_empty()
    }

    /// Whether the name is a script or source.
    pub(crate) fn is_php(&self, name: &[u8]) -> bool {
        matches!(self.classify(name), NameKind::Script | NameKind::Source)
    }

    /// Whether the name ends in a suffix of scripts.
    pub(crate) fn is_script(&self, name: &[u8]) -> bool {
        self.scripts.iter().any(|suffix| ends_with(name, suffix))
    }

    /// Classifies the last component of a path.
    pub(crate) fn classify(&self, name: &[u8]) -> NameKind {
        if self.is_script(name) {
            return NameKind::Script;
        }
        let bare = unwrap(name);
        if self.is_source(bare) || self.is_copy_of_source(bare) {
            return NameKind::Source;
        }
        let is_private = || private::is_private(name) || private::is_private(bare);
        if self.detects_private && (is_private() || self.is_text_or_archive_of_source(bare)) {
            return NameKind::Private;
        }
        NameKind::Plain
    }

    fn is_source(&self, name: &[u8]) -> bool {
        self.scripts.iter().chain(&self.sources).any(|suffix| ends_with(name, suffix))
    }

    /// `config.php.bak`, `config.php.2024`: a source suffix inside of the name and an unknown extension.
    fn is_copy_of_source(&self, name: &[u8]) -> bool {
        mime::built_in(name).is_none() && self.has_source_suffix_within(name)
    }

    /// `config.php.txt`, `config.php.zip`.
    fn is_text_or_archive_of_source(&self, name: &[u8]) -> bool {
        let ending = memchr::memrchr(b'.', name).map_or(&b""[..], |dot| &name[dot + 1..]);
        COPY_EXTENSIONS.iter().any(|known| ending.eq_ignore_ascii_case(known))
            && self.has_source_suffix_within(name)
    }

    fn has_source_suffix_within(&self, name: &[u8]) -> bool {
        let Some(dot) = memchr::memrchr(b'.', name) else { return false };
        name[..dot].split(|&byte| byte == b'.').skip(1).any(|part| {
            let mut suffixes = self.scripts.iter().chain(&self.sources);
            suffixes.any(|suffix| suffix[1..].eq_ignore_ascii_case(part))
        })
    }
}

/// Removes compression suffixes, editors' `~` and trailing dots and spaces from the end of a name.
fn unwrap(mut name: &[u8]) -> &[u8] {
    loop {
        name = match name {
            [rest @ .., b'~' | b'.' | b' '] => rest,
            _ => match WRAPPERS.iter().find(|wrapper| ends_with(name, wrapper)) {
                Some(wrapper) => &name[..name.len() - wrapper.len()],
                None => return name,
            },
        }
    }
}

fn ends_with(name: &[u8], suffix: &[u8]) -> bool {
    name.len() > suffix.len() && name[name.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RootOptions;

    fn classify(name: &str) -> NameKind {
        let options = RootOptions::default();
        SourceNames::new(&options.php_suffixes, &options.source_suffixes, true)
            .classify(name.as_bytes())
    }

    #[test]
    fn scripts_are_recognised_by_suffix_in_any_case() {
        for name in ["index.php", "INDEX.PHP", "a.b.Php"] {
            assert_eq!(classify(name), NameKind::Script, "{name}");
        }
    }

    #[test]
    fn sources_and_their_copies_are_never_plain() {
        for name in [
            "a.phtml",
            "a.phar",
            "a.phps",
            "a.inc",
            "a.PHP5",
            "a.php~",
            "a.php.bak",
            "a.php.orig",
            "a.php.gz",
            "a.php.save.1",
            "a.php.",
            "a.php ",
            "a.inc.old",
            "a.php.zst.gz",
            "a.phar.gz",
        ] {
            assert_eq!(classify(name), NameKind::Source, "{name}");
        }
    }

    #[test]
    fn other_names_are_plain() {
        for name in
            ["a.txt", "php", "aphp", ".php", "a.phpx", "a.php.html", "a.php.png", "a.tar.gz", "inc"]
        {
            assert_eq!(classify(name), NameKind::Plain, "{name}");
        }
    }

    #[test]
    fn empty_lists_make_everything_plain() {
        let none = SourceNames::new(&[], &[], false);
        assert_eq!(none.classify(b"index.php"), NameKind::Plain);
        assert_eq!(none.classify(b"index.php.bak"), NameKind::Plain);
        assert_eq!(none.classify(b"db.sqlite"), NameKind::Plain);
    }

    #[test]
    fn compressed_private_names_and_sources_as_texts_are_private() {
        for name in [
            "dump.sql",
            "dump.sql.gz",
            "db.sqlite.bz2",
            "a.log.2.gz",
            "a.php.txt",
            "a.inc.ZIP",
            "a~",
        ] {
            assert_eq!(classify(name), NameKind::Private, "{name}");
        }
    }
}
