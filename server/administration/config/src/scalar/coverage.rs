//! [`Coverage`]: everything that a path pattern protects.
//!
//! Invariant: it contains the paths that match, everything below them and their compressed copies,
//! regardless of case, so that no other spelling of a request leads to the same file.

use super::kind::Fault;
use super::pattern::PathPattern;
use regex::bytes::{Regex, RegexBuilder};

/// See the module.
#[derive(Clone, Debug)]
pub struct Coverage(Inner);

#[derive(Clone, Debug)]
enum Inner {
    /// A pattern without wildcards from the start of the path, without a trailing slash. Most patterns
    /// are of this kind, and this is much faster.
    Literal(Box<[u8]>),
    Expression(Box<Regex>),
}

impl Coverage {
    /// That of a pattern; of `/a/` it contains `/a`, which often leads to the same script.
    ///
    /// # Errors
    /// The pattern is too long.
    pub(crate) fn of(pattern: &PathPattern) -> Result<Self, Fault> {
        let text = pattern.as_str();
        let is_literal = text.starts_with('/') && text.is_ascii() && !text.contains(['*', '?']);
        if is_literal {
            return Ok(Self(Inner::Literal(text.trim_end_matches('/').as_bytes().into())));
        }
        RegexBuilder::new(&pattern.covering_with_directory())
            .case_insensitive(true)
            .size_limit(super::expression::REGEX_MAX_BYTES)
            .build()
            .map(|regex| Self(Inner::Expression(Box::new(regex))))
            .map_err(|_| Fault::new("the pattern is too long"))
    }

    /// Whether it contains a decoded path with a leading slash.
    pub fn contains(&self, path: &[u8]) -> bool {
        match &self.0 {
            Inner::Expression(regex) => regex.is_match(path),
            Inner::Literal(start) => {
                path.split_at_checked(start.len()).is_some_and(|(own, rest)| {
                    own.eq_ignore_ascii_case(start) && is_end(without_coding(rest))
                })
            }
        }
    }
}

fn is_end(rest: &[u8]) -> bool {
    rest.is_empty() || rest.starts_with(b"/")
}

/// Without the extension of a compressed copy.
fn without_coding(rest: &[u8]) -> &[u8] {
    let codings = [&b".gz"[..], b".br", b".zst", b".bz2", b".xz"];
    let found = codings.iter().find(|coding| {
        rest.get(..coding.len()).is_some_and(|start| start.eq_ignore_ascii_case(coding))
    });
    found.map_or(rest, |coding| &rest[coding.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::kind::{Scalar, Written};

    #[track_caller]
    fn check(pattern: &str, inside: &[&str], outside: &[&str]) {
        let read = PathPattern::read(Written::Text(pattern)).unwrap();
        let coverage = Coverage::of(&read).unwrap();
        for path in inside {
            assert!(coverage.contains(path.as_bytes()), "`{pattern}` leaves {path} open");
        }
        for path in outside {
            assert!(!coverage.contains(path.as_bytes()), "`{pattern}` contains {path}");
        }
    }

    #[test]
    fn a_pattern_covers_its_path_and_all_below_in_any_case() {
        let inside = ["/admin", "/admin/", "/ADMIN/a/b", "/admin.gz", "/Admin.BR/x"];
        let outside = ["/", "/adm", "/administrator", "/a/admin/", "/admin.html", "/admin.gzip"];
        check("/admin/", &inside, &outside);
        check("/admin", &inside, &outside);
        check("/admi[n]", &[], &inside);
    }

    #[test]
    fn wildcards_cover_the_same_as_literals() {
        check("/adm*/", &["/admin", "/Admin/x", "/adm.gz/"], &["/", "/a/admin/"]);
        check("*.sql", &["/a.SQL", "/x/a.sql.gz", "/a.sql/x"], &["/a.sqlx", "/sql"]);
        check("/wp-login.php", &["/WP-login.php/a", "/wp-login.php"], &["/wp-login.phpx"]);
    }

    #[test]
    fn the_root_covers_everything() {
        check("/", &["/", "/a", "/a/b.php"], &[]);
    }

    #[test]
    fn the_fast_way_contains_the_same_paths_as_the_expression() {
        let ends = ["", "/", "/x", "x", ".gz", ".GZ/", ".gz.br", ".zip", "%", "\n", "/\n", ".gzx"];
        for literal in ["/a", "/a/", "/A.b+c(", "/", "/a//", "/a.gz"] {
            let pattern = PathPattern::read(Written::Text(literal)).unwrap();
            let fast = Coverage::of(&pattern).unwrap();
            assert!(matches!(fast.0, Inner::Literal(_)), "{literal}");
            let slow = RegexBuilder::new(&pattern.covering_with_directory())
                .case_insensitive(true)
                .build()
                .unwrap();
            for start in ["", "/", "/a", "/A", "/a.b+c(", "/A.B+C(", "/a/", "/b", "/a.gz", "//a"] {
                for end in ends {
                    let path = format!("{start}{end}");
                    let bytes = path.as_bytes();
                    assert_eq!(fast.contains(bytes), slow.is_match(bytes), "`{literal}`: {path:?}");
                }
            }
        }
    }

    #[test]
    fn everything_that_matches_is_contained_with_all_that_leads_there() {
        let paths = [
            "/",
            "/a",
            "/a/b",
            "/a/b.sql",
            "/vendor/",
            "/vendor/x.php",
            "/up/2024/x.php",
            "/ü.txt",
        ];
        for text in
            ["*.sql", "/vendor/", "/a/*", "/a/**", "/up/**.php", "b", "/?", "ü.txt", "**", "/"]
        {
            let pattern = PathPattern::read(Written::Text(text)).unwrap();
            let coverage = Coverage::of(&pattern).unwrap();
            for path in paths.iter().filter(|path| pattern.matches(path.as_bytes())) {
                let upper = path.to_uppercase();
                for spelled in
                    [(*path).to_owned(), upper, format!("{path}/x"), format!("{path}/.gz")]
                {
                    assert!(
                        coverage.contains(spelled.as_bytes()),
                        "`{text}` leaves {spelled} open"
                    );
                }
                if !path.ends_with('/') {
                    assert!(
                        coverage.contains(format!("{path}.gz").as_bytes()),
                        "`{text}`: {path}.gz"
                    );
                }
            }
        }
    }
}
