//! Which file names are PHP: scripts to run, sources never to show, or plain files. Lexical only;
//! asked by [`crate::Root`] about regular files it has already found.

use crate::mime;

/// Suffixes that archivers and pre-compression add behind a name without hiding what it is.
const WRAPPERS: [&[u8]; 5] = [b".gz", b".br", b".zst", b".bz2", b".xz"];

/// What a name says about a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameKind {
    /// To be run.
    Script,
    /// PHP, or a left-over copy of it: neither run nor served.
    Source,
    /// Anything else.
    Plain,
}

/// The root's suffix lists, in lower case.
#[derive(Debug)]
pub(crate) struct SourceNames {
    scripts: Vec<Box<[u8]>>,
    sources: Vec<Box<[u8]>>,
}

impl SourceNames {
    /// Suffixes are given with or without their leading dot, in any case.
    pub(crate) fn new(scripts: &[String], sources: &[String]) -> Self {
        let lower = |suffixes: &[String]| {
            suffixes
                .iter()
                .map(|suffix| suffix.trim_start_matches('.'))
                .filter(|suffix| !suffix.is_empty())
                .map(|suffix| format!(".{}", suffix.to_ascii_lowercase()).into_bytes().into())
                .collect()
        };
        Self { scripts: lower(scripts), sources: lower(sources) }
    }

    /// Whether no name is anything but plain.
    pub(crate) fn is_empty(&self) -> bool {
        self.scripts.is_empty() && self.sources.is_empty()
    }

    /// Whether the name ends in a suffix that is run.
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
        NameKind::Plain
    }

    fn is_source(&self, name: &[u8]) -> bool {
        self.scripts.iter().chain(&self.sources).any(|suffix| ends_with(name, suffix))
    }

    /// `config.php.bak`, `config.php.2024`: a source suffix inside of the name and an ending that
    /// no table knows. `notes.php.txt` is somebody's choice and stays plain.
    fn is_copy_of_source(&self, name: &[u8]) -> bool {
        let Some(dot) = memchr::memrchr(b'.', name) else { return false };
        mime::built_in(name).is_none()
            && name[..dot].split(|&byte| byte == b'.').skip(1).any(|part| {
                self.scripts
                    .iter()
                    .chain(&self.sources)
                    .any(|suffix| suffix[1..].eq_ignore_ascii_case(part))
            })
    }
}

/// Takes compression suffixes, editors' `~` and trailing dots and spaces off the end of a name.
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
        SourceNames::new(&options.php_suffixes, &options.source_suffixes).classify(name.as_bytes())
    }

    #[test]
    fn scripts_are_known_by_suffix_in_any_case() {
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
            ["a.txt", "php", "aphp", ".php", "a.phpx", "a.php.txt", "a.php.png", "a.tar.gz", "inc"]
        {
            assert_eq!(classify(name), NameKind::Plain, "{name}");
        }
    }

    #[test]
    fn empty_lists_make_everything_plain() {
        let none = SourceNames::new(&[], &[]);
        assert_eq!(none.classify(b"index.php"), NameKind::Plain);
        assert_eq!(none.classify(b"index.php.bak"), NameKind::Plain);
    }
}
