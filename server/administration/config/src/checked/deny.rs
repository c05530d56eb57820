//! Denied paths, and directories in which no script runs.
//!
//! The gateway checks each path of a request: as the client sent it, after rewrites, and that of
//! the resulting file or script. Invariant: a path is denied with everything below it, its
//! compressed copies, and regardless of case, so that no other spelling of a request reaches the
//! same file.

use crate::scalar::{Fault, PathPattern};
use regex::bytes::{RegexSet, RegexSetBuilder};

/// The rules of one app; see the module.
#[derive(Clone, Debug, Default)]
pub struct Deny {
    paths: RegexSet,
    no_php_in: RegexSet,
}

impl Deny {
    /// # Errors
    /// The patterns are too many or too long.
    pub(super) fn new(paths: &[PathPattern], no_php_in: &[PathPattern]) -> Result<Self, Fault> {
        let covering = paths.iter().map(PathPattern::covering);
        let below = no_php_in.iter().map(PathPattern::below);
        Ok(Deny { paths: set(covering)?, no_php_in: set(below)? })
    }

    /// Whether the decoded path, with a leading `/`, is denied.
    pub fn denies(&self, path: &[u8]) -> bool {
        !self.paths.is_empty() && self.paths.is_match(path)
    }

    /// Whether the script at this path must not run.
    pub fn forbids_script(&self, path: &[u8]) -> bool {
        !self.no_php_in.is_empty() && self.no_php_in.is_match(path)
    }
}

fn set(expressions: impl Iterator<Item = String>) -> Result<RegexSet, Fault> {
    RegexSetBuilder::new(expressions)
        .case_insensitive(true)
        .size_limit(SET_MAX_BYTES)
        .build()
        .map_err(|_| Fault::new("the patterns are too many or too long"))
}

/// More than thousands of patterns need.
const SET_MAX_BYTES: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::{Scalar, Written};

    fn deny(paths: &[&str], no_php_in: &[&str]) -> Deny {
        let patterns = |texts: &[&str]| -> Vec<PathPattern> {
            texts.iter().map(|text| PathPattern::read(Written::Text(text)).unwrap()).collect()
        };
        Deny::new(&patterns(paths), &patterns(no_php_in)).unwrap()
    }

    #[track_caller]
    fn denied(pattern: &str, paths: &[&str]) {
        let deny = deny(&[pattern], &[]);
        for path in paths {
            assert!(deny.denies(path.as_bytes()), "`{pattern}` leaves {path} open");
        }
    }

    #[track_caller]
    fn open(pattern: &str, paths: &[&str]) {
        let deny = deny(&[pattern], &[]);
        for path in paths {
            assert!(!deny.denies(path.as_bytes()), "`{pattern}` denies {path}");
        }
    }

    #[test]
    fn a_denied_path_is_denied_in_any_case() {
        denied(
            "/wp-content/uploads/**.php",
            &["/wp-content/uploads/a/x.PhP", "/WP-CONTENT/uploads/x.php"],
        );
        denied("*.SQL", &["/dump.sql", "/a/Dump.Sql"]);
        denied("/Äpfel/", &["/äpfel/x", "/ÄPFEL/x"]);
    }

    #[test]
    fn paths_below_a_denied_path_are_denied() {
        denied("/xmlrpc.php", &["/xmlrpc.php", "/xmlrpc.php/", "/xmlrpc.php/a/b"]);
        denied("/uploads/**.php", &["/uploads/x.php/", "/uploads/a/x.php/a.css"]);
        denied("/private", &["/private", "/private/", "/private/a/b"]);
        denied("*.sql", &["/dump.sql/", "/a/dump.sql/x"]);
        open("/private", &["/privateer", "/a/private"]);
        open("/xmlrpc.php", &["/xmlrpc.phpx", "/xmlrpc.ph", "/a/xmlrpc.php"]);
    }

    #[test]
    fn a_pattern_with_a_trailing_slash_means_paths_below() {
        denied("/private/", &["/private/", "/private/a"]);
        open("/private/", &["/private", "/privates/a"]);
    }

    #[test]
    fn compressed_copies_of_denied_files_are_denied() {
        denied("*.sql", &["/dump.sql.gz", "/dump.sql.BR", "/dump.sql.zst", "/dump.sql.xz/"]);
        open("*.sql", &["/dump.sql.html", "/dumpsql", "/dump.sqlx"]);
    }

    #[test]
    fn invalid_utf8_and_line_breaks_are_matched() {
        let deny = deny(&["/uploads/**.php", "/a/*.txt"], &["/uploads"]);
        for path in
            [&b"/uploads/\xff\xfe.php"[..], b"/uploads/a\nb.php", b"/a/\xc3.txt", b"/a/\n.txt"]
        {
            assert!(deny.denies(path), "{}", path.escape_ascii());
        }
        assert!(deny.forbids_script(b"/uploads/\xff.php"));
    }

    #[test]
    fn no_script_runs_below_no_php_in() {
        let deny = deny(&[], &["/wp-content/uploads", "/sites/*/files/", "cache"]);
        for path in [
            "/wp-content/uploads/x.php",
            "/WP-Content/Uploads/2026/11/x.php",
            "/sites/default/files/x.php",
            "/a/cache/b/x.php",
        ] {
            assert!(deny.forbids_script(path.as_bytes()), "{path}");
        }
        for path in ["/wp-content/uploads.php", "/wp-content/x.php", "/sites/a/b/files/x.php"] {
            assert!(!deny.forbids_script(path.as_bytes()), "{path}");
        }
        assert!(!deny.denies(b"/wp-content/uploads/x.jpg"));
    }
}
